import { getCreate2Address, hexlify, keccak256, randomBytes, toBeHex } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as PasskeyHash from "../../../src/application/usecases/operations/PasskeyHash.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as WalletCalls from "../../../src/domain/wallet/WalletCalls.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

/** A token of another chain: calls with data to an address without code are refused, and nothing of them is sent. */

let stack: Stack
const exchanges: Array<ReadonlyArray<string>> = []
const listed = Address.unsafe(toBeHex(0x8001, 20))
/** Creates a contract of one byte, STOP, at an address of its own for each salt: `make(bytes32)`. */
const maker = Address.unsafe(hexlify(randomBytes(20)))
const childCode = "0x60016000f3"
const makerCode = "0x6460016000f36000526004356005601b6000f560005260206000f3"

beforeAll(async () => {
  stack = await startStack({
    profile: { precompiles: [listed] },
    onExchange: (methods) => void exchanges.push(methods)
  })
  await stack.create("a", "b")
  await stack.provider.send("anvil_setCode", [maker, makerCode])
})
afterAll(() => stack.stop())

const nobody = () => Address.unsafe(hexlify(randomBytes(20)))
const call = (to: Address.Address, more: Partial<Operation> = {}): Operation => ({
  salt: "a",
  walletCustody: 1,
  to,
  funcSignature: "transfer(address,uint256)",
  funcParams: [stack.signer.address, "1"],
  ...more
})
/** An operation that creates a contract, and where. */
const making = (more: Partial<Operation> = {}) => {
  const salt = hexlify(randomBytes(32))
  const operation: Operation = {
    salt: "a",
    walletCustody: 1,
    to: maker,
    funcSignature: "make(bytes32)",
    funcParams: [salt],
    ...more
  }
  return { operation, child: Address.unsafe(getCreate2Address(maker, salt, keccak256(childCode))) }
}
const execution = (operations: ReadonlyArray<Operation>, more: object = {}) =>
  ExecuteOperations.run({ ...stack.caller(), ...more }, { operations, settings: stack.settings })
const text = (to: string) =>
  `no contract at ${to} on chain ${stack.anvil.chainId}: a call with data would do nothing there; check the address and the chain`

/** A refusal before anything was sent. */
const refused = async (effect: Parameters<Stack["refused"]>[0]) => {
  const sent = () => stack.provider.getTransactionCount(stack.signer.address)
  const before = await sent()
  const failure = await stack.refused(effect)
  expect(await sent()).toBe(before)
  return failure
}

describe("a call with data to an address without code", () => {
  it("is refused alone, with the address and the chain", async () => {
    const to = nobody()
    expect(await refused(execution([call(to)]))).toMatchObject({
      _tag: "Unprocessable",
      code: "no_contract",
      message: text(to),
      details: [{ path: "operations[0]", message: text(to) }],
      extra: { returnData: [{ "0": { success: false, error: text(to), txHash: null } }] }
    })
  })

  it("fails alone among others, and what depends on it with it", async () => {
    const to = nobody()
    const receiver = nobody()
    const result = await stack.ask(
      execution([
        call(receiver, { funcSignature: "receive()", funcParams: [], value: 5n }),
        call(to),
        call(receiver, { funcSignature: "receive()", funcParams: [], value: 7n, dependsOn: 1 }),
        call(to, { salt: "b" })
      ])
    )
    expect(result.status).toBe(4)
    const errors = result.returnData.map((element, index) => element[index]?.error)
    expect(errors).toEqual([null, text(to), "dependency failed: operation 1", text(to)])
    expect(await stack.provider.getBalance(receiver)).toBe(5n)
  })

  it("is told by /estimateGas and /passkeyHash", async () => {
    const to = nobody()
    const estimate = await stack.ask(
      EstimateGas.run(stack.caller(), { operations: [call(to)], settings: stack.settings })
    )
    expect(estimate).toMatchObject({ status: 0, userOps: [], error: `operations[0]: ${text(to)}` })
    const value = { funcSignature: "receive()", funcParams: [], value: 1n }
    const mixed = await stack.ask(
      EstimateGas.run(stack.caller(), {
        operations: [call(to), call(to, { salt: "b", ...value })],
        settings: stack.settings
      })
    )
    expect(mixed.userOps.map(({ aggrIndexes }) => aggrIndexes)).toEqual([[1]])
    const passkeys = { salt: "p", walletCustody: 5 as const }
    await Journey.make(stack, "v0.7").created({
      ...passkeys,
      passkeyPubKey: [Authenticator.make().spki.toString("base64")]
    })
    const { rpc, entryPoint } = stack.settings
    const operations = [call(to, passkeys), call(to, { ...passkeys, ...value })]
    const hashes = await stack.ask(
      PasskeyHash.run(stack.caller(), { operations, settings: { rpc, entryPoint } })
    )
    expect(hashes.status).toBe(1)
    expect(hashes.results.map(({ error }) => error)).toEqual([text(to), null])
  })

  it("is refused by /transactSigner, and value alone is not", async () => {
    const to = nobody()
    const request = { to, funcSignature: "transfer(address,uint256)", funcParams: [to, "1"] }
    const settings = { rpc: stack.settings.rpc, signer: stack.settings.signer }
    expect(await refused(TransactSigner.run(stack.caller(), { ...request, settings }))).toMatchObject({
      code: "no_contract",
      details: [{ path: "to", message: text(to) }],
      extra: { returnData: [{ "0": { success: false, error: text(to), txHash: null } }] }
    })
    const paid = await stack.ask(TransactSigner.run(stack.caller(), { to, value: 3n, settings }))
    expect(paid.status).toBe(1)
    expect(await stack.provider.getBalance(to)).toBe(3n)
  })

  it("is refused in an op that was encoded elsewhere, at any place of its batch", async () => {
    const to = nobody()
    const good = WalletCalls.execute(Address.unsafe(String(stack.token.target)), 0n, Hex.unsafe("0x18160ddd"))
    const [handed] = (
      await stack.ask(
        EstimateGas.run(stack.caller(), {
          operations: [call(nobody(), { funcSignature: "receive()", funcParams: [], value: 1n })],
          settings: stack.settings
        })
      )
    ).userOps
    const decoded = UserOperation.decode("v0.7", Hex.unsafe(handed?.encodedUserOp ?? "0x"))
    if (decoded._tag === "Left") throw new Error(decoded.left)
    const [inner] = WalletCalls.read(good)
    const lost = { target: to, value: 0n, data: Hex.unsafe("0xa9059cbb") }
    const { child, operation } = making()
    const made = {
      target: maker,
      value: 0n,
      data: Hex.unsafe(`0x11111111${String(operation.funcParams?.[0]).slice(2)}`)
    }
    const posted = (callData: Hex.Hex) => {
      const op = { ...decoded.right, callData, callGasLimit: 500_000n }
      const userOpHash = UserOperation.hash(
        "v0.7",
        stack.settings.entryPoint,
        BigInt(stack.anvil.chainId),
        op
      )
      return ExecuteEncoded.run(stack.caller(), {
        operations: [
          {
            encodedUserOp: UserOperation.encode("v0.7", op),
            userOpHash,
            walletCustody: 1,
            signature: Hex.unsafe(stack.signer.signingKey.sign(userOpHash).serialized)
          }
        ],
        settings: stack.settings
      })
    }
    for (const callData of [
      WalletCalls.execute(lost.target, lost.value, lost.data),
      WalletCalls.executeBatch(inner === undefined ? [] : [inner, lost]),
      WalletCalls.executeBatch([{ ...made, target: child }, made])
    ])
      expect((await refused(posted(callData))).code).toBe("no_contract")
    // One of its own calls creates the contract that a later one calls.
    const both = await stack.ask(posted(WalletCalls.executeBatch([made, { ...made, target: child }])))
    expect(both.status).toBe(1)
  })

  it("is refused in a request of several slices before it is accepted", async () => {
    const to = nobody()
    const value = { funcSignature: "receive()", funcParams: [], value: 1n }
    const operations = Array.from({ length: 300 }, (_, index) =>
      call(to, index === 299 ? { salt: "b" } : value)
    )
    expect(await refused(execution(operations, { isAsynchronous: true }))).toMatchObject({
      code: "no_contract",
      details: [{ path: "operations[299]" }]
    })
  })
})

describe("a contract that an earlier operation of the request creates", () => {
  it("is called", async () => {
    const { child, operation } = making()
    const result = await stack.ask(
      execution([operation, call(child, { salt: "b" }), call(child), call(nobody())])
    )
    expect(result.returnData.map((element, index) => element[index]?.success)).toEqual([
      true,
      true,
      true,
      false
    ])
    expect(await stack.provider.getCode(child)).toBe("0x00")
  })

  it("is called by operations that depend on the one that creates it", async () => {
    const { child, operation } = making()
    expect((await stack.ask(execution([call(child, { dependsOn: 1 }), operation]))).status).toBe(1)
  })

  it("is not there for an operation before that one", async () => {
    const { child, operation } = making()
    const result = await stack.ask(execution([call(child), operation]))
    expect(result.returnData.map((element, index) => element[index]?.error)).toEqual([text(child), null])
  })

  it("is called by ops that are handed out", async () => {
    const { child, operation } = making()
    const estimate = await stack.ask(
      EstimateGas.run(stack.caller(), { operations: [operation, call(child)], settings: stack.settings })
    )
    expect(estimate).toMatchObject({ status: 1, error: null })
  })
})

describe("an address without code that answers", () => {
  it("is a precompile, or one that the network's profile lists", async () => {
    const identity = Address.unsafe(toBeHex(4, 20))
    for (const to of [identity, Address.unsafe(toBeHex(0x1ff, 20)), listed])
      expect((await stack.ask(execution([call(to)]))).status, to).toBe(1)
    for (const to of [toBeHex(0, 20), toBeHex(0x200, 20)])
      expect((await refused(execution([call(Address.unsafe(to))]))).code).toBe("no_contract")
  })

  it("is an EOA that delegates to code, as long as it does", async () => {
    const eoa = nobody()
    const set = (code: string) => stack.provider.send("anvil_setCode", [eoa, code])
    await set(`0xef0100${String(stack.token.target).slice(2)}`)
    const supply = call(eoa, { funcSignature: "totalSupply()", funcParams: [] })
    expect((await stack.ask(execution([supply]))).status).toBe(1)
    await set("0x")
    expect((await refused(execution([supply]))).code).toBe("no_contract")
  })

  it("is one where a contract has come since", async () => {
    const to = nobody()
    expect((await refused(execution([call(to)]))).code).toBe("no_contract")
    await stack.provider.send("anvil_setCode", [to, "0x00"])
    expect((await stack.ask(execution([call(to)]))).status).toBe(1)
  })
})

it("costs no exchange with the node beyond those of a known contract", async () => {
  const asked = async (to: Address.Address) => {
    const from = exchanges.length
    await stack.ask(EstimateGas.run(stack.caller(), { operations: [call(to)], settings: stack.settings }))
    return exchanges.slice(from)
  }
  const to = nobody()
  await stack.provider.send("anvil_setCode", [to, "0x00"])
  const first = await asked(to)
  const again = await asked(to)
  const codes = (batches: ReadonlyArray<ReadonlyArray<string>>) =>
    batches.flat().filter((method) => method === "eth_getCode").length
  expect([codes(first), codes(again)]).toEqual([1, 0])
  expect(first.length).toBe(again.length)
})
