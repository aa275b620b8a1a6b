import { hexlify, id, randomBytes } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as ReadContracts from "../../../src/application/usecases/chain/ReadContracts.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

/** What elements say of reverts that no definition decodes, or that have nothing to say. */

let stack: Stack
let reverter: Address.Address
/** A proxy (EIP-1167) of the reverter: what its own code has tells nothing of its functions. */
const proxy = Address.unsafe(hexlify(randomBytes(20)))
beforeAll(async () => {
  stack = await startStack()
  reverter = Address.unsafe(await stack.reverter.getAddress())
  await stack.create("a")
  await stack.provider.send("anvil_setCode", [
    proxy,
    `0x363d3d373d3d3d363d73${reverter.slice(2)}5af43d82803e903d91602b57fd5bf3`
  ])
})
afterAll(() => stack.stop())

const call = (funcSignature: string, more: Partial<Operation> = {}): Operation => ({
  salt: "a",
  walletCustody: 1,
  to: reverter,
  funcSignature,
  ...more
})
const selector = (signature: string) => id(signature).slice(0, 10)

const bytes = hexlify(randomBytes(500))
const noFunction = (signature: string) =>
  `the contract at ${reverter} has no function with the selector ${selector(signature)}: check the signature`
const cases: ReadonlyArray<readonly [string, () => Operation, () => string]> = [
  ["without a reason", () => call("failWithoutReason()"), () => "reverted without a reason"],
  ["for want of gas", () => call("failOutOfGas()"), () => "ran out of gas"],
  [
    "of a function that is not there",
    () => call("noSuch(uint256)", { funcParams: ["1"] }),
    () => noFunction("noSuch(uint256)")
  ],
  [
    "of a function that is not there, with value",
    () => call("noSuch()", { value: 1n }),
    () => noFunction("noSuch()")
  ],
  [
    "of a function that takes no value",
    () => call("failOnValue()", { value: 1n }),
    () =>
      `the function ${selector("failOnValue()")} of the contract at ${reverter} takes no value: it is not payable`
  ],
  [
    "with value and without a reason",
    () => call("failWithoutReason()", { value: 1n }),
    () => "reverted without a reason"
  ],
  [
    "of value alone",
    () => call("receive()", { value: 1n }),
    () => `the contract at ${reverter} takes no value without a call: it has no receive()`
  ],
  ["behind a proxy", () => call("noSuch()", { to: proxy }), () => "reverted without a reason"]
]

describe("a call that fails silently", () => {
  it.each(cases)("%s says so in every endpoint", async (_, operation, reason) => {
    const { funcParams = [], funcSignature, to, value = 0n } = operation()
    const { settings } = stack
    const failure = await stack.refused(
      ExecuteOperations.run(stack.caller(), { operations: [operation()], settings })
    )
    expect(failure.details).toEqual([{ path: "operations[0]", message: reason() }])
    const estimate = await stack.ask(EstimateGas.run(stack.caller(), { operations: [operation()], settings }))
    expect(estimate.error).toBe(`operations[0]: ${reason()}`)
    const direct = await stack.refused(
      TransactSigner.run(stack.caller(), {
        to,
        funcSignature,
        funcParams,
        value,
        settings: { rpc: settings.rpc, signer: settings.signer }
      })
    )
    expect(direct.details).toEqual([{ path: "", message: reason() }])
    if (value > 0n) return
    const [read] = await stack.ask(
      ReadContracts.run(stack.caller(), {
        reads: [{ to, funcSignature, funcParams, returnSignature: "uint256" }],
        rpc: settings.rpc
      })
    )
    expect(read).toEqual({ readIndex: 0, results: [], errors: reason() })
  })
})

describe("revert data that no definition decodes", () => {
  const raw = () => call("failRaw(bytes)", { funcParams: [bytes] })

  it("are whole in the element of each endpoint", async () => {
    const { settings } = stack
    const error = expect.stringMatching(/^reverted with 0x[0-9a-f]{136}\.\.\. \(500 bytes\)$/)
    expect(
      await stack.refused(ExecuteOperations.run(stack.caller(), { operations: [raw()], settings }))
    ).toMatchObject({
      details: [{ path: "operations[0]", message: error, data: bytes }],
      extra: { returnData: [{ "0": { error, data: bytes } }] }
    })
    const mixed = await stack.ask(
      ExecuteOperations.run(stack.caller(), {
        operations: [raw(), call("bump(bytes32)", { funcParams: [`0x${"01".repeat(32)}`] })],
        settings
      })
    )
    expect(mixed.returnData).toMatchObject([{ "0": { data: bytes } }, { "1": { success: true } }])
    expect(mixed.returnData[1]?.["1"]).not.toHaveProperty("data")
    expect(await stack.ask(EstimateGas.run(stack.caller(), { operations: [raw()], settings }))).toMatchObject(
      { status: 0, data: bytes }
    )
    expect(
      await stack.refused(
        TransactSigner.run(stack.caller(), {
          to: reverter,
          funcSignature: "failRaw(bytes)",
          funcParams: [bytes],
          settings: { rpc: settings.rpc, signer: settings.signer }
        })
      )
    ).toMatchObject({ extra: { returnData: [{ "0": { error, data: bytes } }] } })
    const one = {
      to: reverter,
      funcSignature: "failRaw(bytes)",
      funcParams: [bytes],
      returnSignature: "bool"
    }
    expect(
      await stack.ask(ReadContracts.run(stack.caller(), { reads: [one, one], rpc: settings.rpc }))
    ).toMatchObject([
      { errors: error, data: bytes },
      { errors: error, data: bytes }
    ])
  })

  it("are not there where a definition decodes them", async () => {
    const failure = await stack.refused(
      ExecuteOperations.run(stack.caller(), {
        operations: [call("failCustomEmpty()")],
        settings: { ...stack.settings, useABI: ["error JustRefused()"] }
      })
    )
    expect(failure.details).toEqual([{ path: "operations[0]", message: "JustRefused()" }])
  })
})
