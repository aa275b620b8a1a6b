import { hexlify, id, randomBytes } from "ethers"
import { describe, expect, it } from "vitest"
import * as ReadContracts from "../../../src/application/endpoints/chain/ReadContracts.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import { Address, useStack } from "../../support/stack/Stack.js"

/** Errors of elements whose reverts no definition decodes, or that are empty. */

/** A proxy (EIP-1167) of the reverter: its own code shows none of its functions. */
const proxy = Address.unsafe(hexlify(randomBytes(20)))
const stack = useStack({}, async (stack) => {
  await stack.create("a")
  const code = `0x363d3d373d3d3d363d73${String(stack.reverter.target).slice(2)}5af43d82803e903d91602b57fd5bf3`
  await stack.provider.send("anvil_setCode", [proxy, code])
})

const reverter = () => Address.unsafe(String(stack.reverter.target))
const call = (funcSignature: string, more: Partial<Operation> = {}) =>
  stack.hit("a", "", { to: reverter(), funcSignature, funcParams: [], ...more })
const selector = (signature: string) => id(signature).slice(0, 10)
const noFunction = (signature: string) => () =>
  `the contract at ${reverter()} has no function with the selector ${selector(signature)}: check the signature`

const cases: ReadonlyArray<readonly [string, string, Partial<Operation>, () => string]> = [
  ["without a reason", "failWithoutReason()", {}, () => "reverted without a reason"],
  ["for want of gas", "failOutOfGas()", {}, () => "ran out of gas"],
  [
    "of a function that is not there",
    "noSuch(uint256)",
    { funcParams: ["1"] },
    noFunction("noSuch(uint256)")
  ],
  ["of a function that is not there, with value", "noSuch()", { value: 1n }, noFunction("noSuch()")],
  [
    "of a function that takes no value",
    "failOnValue()",
    { value: 1n },
    () =>
      `the function ${selector("failOnValue()")} of the contract at ${reverter()} takes no value: it is not payable`
  ],
  [
    "with value and without a reason",
    "failWithoutReason()",
    { value: 1n },
    () => "reverted without a reason"
  ],
  [
    "of only value",
    "receive()",
    { value: 1n },
    () => `the contract at ${reverter()} takes no value without a call: it has no receive()`
  ],
  ["behind a proxy", "noSuch()", { to: proxy }, () => "reverted without a reason"]
]

describe("a call that fails silently", () => {
  it.each(cases)("%s is reported by every endpoint", async (_, name, more, reason) => {
    const { funcParams = [], funcSignature, to, value = 0n } = call(name, more)
    const execution = await stack.refused(stack.execute([call(name, more)]))
    expect(execution.details).toEqual([{ path: "operations[0]", message: reason() }])
    expect((await stack.estimate([call(name, more)])).error).toBe(`operations[0]: ${reason()}`)
    const direct = await stack.refused(stack.transact({ to, funcSignature, funcParams, value }))
    expect(direct.details).toEqual([{ path: "", message: reason() }])
    if (value > 0n) return
    const reads = [{ to, funcSignature, funcParams, returnSignature: "uint256" }]
    expect(await stack.ask(ReadContracts.run(stack.caller(), { reads, rpc: stack.settings.rpc }))).toEqual([
      { readIndex: 0, results: [], errors: reason() }
    ])
  })
})

describe("revert data that no definition decodes", () => {
  it("are whole in the element of each endpoint", async () => {
    const data = hexlify(randomBytes(500))
    const raw = call("failRaw(bytes)", { funcParams: [data] })
    const error = expect.stringMatching(/^reverted with 0x[0-9a-f]{136}\.\.\. \(500 bytes\)$/)
    const returnData = [{ "0": { error, data } }]
    expect(await stack.refused(stack.execute([raw]))).toMatchObject({
      details: [{ path: "operations[0]", message: error, data }],
      extra: { returnData }
    })
    const good = call("bump(bytes32)", { funcParams: [`0x${"01".repeat(32)}`] })
    const mixed = await stack.ask(stack.execute([raw, good]))
    expect(mixed.returnData).toMatchObject([{ "0": { data } }, { "1": { success: true } }])
    expect(mixed.returnData[1]?.["1"]).not.toHaveProperty("data")
    expect(await stack.estimate([raw])).toMatchObject({ status: 0, data })
    const { funcParams = [], funcSignature, to } = raw
    const direct = stack.transact({ to, funcSignature, funcParams })
    expect(await stack.refused(direct)).toMatchObject({ extra: { returnData } })
    const one = { to, funcSignature, funcParams, returnSignature: "bool" }
    expect(
      await stack.ask(ReadContracts.run(stack.caller(), { reads: [one, one], rpc: stack.settings.rpc }))
    ).toMatchObject([
      { errors: error, data },
      { errors: error, data }
    ])
  })

  it("is absent where a definition decodes it", async () => {
    const useABI = ["error JustRefused()"]
    const { details } = await stack.refused(stack.execute([call("failCustomEmpty()")], { useABI }))
    expect(details).toEqual([{ path: "operations[0]", message: "JustRefused()" }])
  })
})
