import { getCreate2Address, hexlify, keccak256, randomBytes, toBeHex } from "ethers"
import { describe, expect, it } from "vitest"
import * as PasskeyHash from "../../../src/application/endpoints/operations/PasskeyHash.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as WalletCalls from "../../../src/domain/wallet/WalletCalls.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { Address, errorsOf, useStack } from "../../support/stack/Stack.js"

/** A token of another chain: calls with data to an address without code are refused and not sent. */

const exchanges: Array<ReadonlyArray<string>> = []
const listed = Address.unsafe(toBeHex(0x8001, 20))
/** Creates a contract of one byte, STOP, at a separate address for each salt: `make(bytes32)`. */
const maker = Address.unsafe(hexlify(randomBytes(20)))
const childCode = "0x60016000f3"
const makerCode = "0x6460016000f36000526004356005601b6000f560005260206000f3"

const stack = useStack(
  { profile: { precompiles: [listed] }, onExchange: (methods) => void exchanges.push(methods) },
  async (stack) => {
    await stack.create("a", "b")
    await stack.provider.send("anvil_setCode", [maker, makerCode])
  }
)

const nobody = () => Address.unsafe(hexlify(randomBytes(20)))
const call = (to: Address.Address, more: Partial<Operation> = {}): Operation =>
  stack.transfer("a", stack.signer.address, "1", { to, ...more })
const value = { funcSignature: "receive()", funcParams: [], value: 1n }
/** An operation that creates a contract, and where. */
const making = () => {
  const salt = hexlify(randomBytes(32))
  return {
    salt,
    operation: call(maker, { funcSignature: "make(bytes32)", funcParams: [salt] }),
    child: Address.unsafe(getCreate2Address(maker, salt, keccak256(childCode)))
  }
}
const execute = (...operations: ReadonlyArray<Operation>) => stack.ask(stack.execute(operations))
const text = (to: string) =>
  `no contract at ${to} on chain ${stack.anvil.chainId}: a call with data would do nothing there; check the address and the chain`

/** A refusal before any transaction was sent. */
const refused = async (effect: Parameters<typeof stack.refused>[0]) => {
  const before = await stack.nonce()
  const failure = await stack.refused(effect)
  expect(await stack.nonce()).toBe(before)
  return failure
}

describe("a call with data to an address without code", () => {
  it("is the only one refused, with the address and the chain", async () => {
    const to = nobody()
    expect(await refused(stack.execute([call(to)]))).toMatchObject({
      _tag: "Unprocessable",
      code: "no_contract",
      message: text(to),
      details: [{ path: "operations[0]", message: text(to) }],
      extra: { returnData: [{ "0": { success: false, error: text(to), txHash: null } }] }
    })
  })

  it("fails separately, together with its dependents", async () => {
    const [to, receiver] = [nobody(), nobody()]
    const result = await execute(
      call(receiver, value),
      call(to),
      call(receiver, { ...value, dependsOn: 1 }),
      call(to, { salt: "b" })
    )
    expect(result.status).toBe(4)
    expect(errorsOf(result)).toEqual([null, text(to), "dependency failed: operation 1", text(to)])
    expect(await stack.provider.getBalance(receiver)).toBe(1n)
  })

  it("is reported by /estimateGas and /passkeyHash", async () => {
    const to = nobody()
    const mixed = await stack.estimate([call(to), call(to, { salt: "b", ...value })])
    expect(mixed).toMatchObject({ status: 0, error: `operations[0]: ${text(to)}` })
    expect(mixed.userOps.map(({ aggrIndexes }) => aggrIndexes)).toEqual([[1]])
    const passkeys = { salt: "p", walletCustody: 5 as const }
    const passkeyPubKey = [Authenticator.make().spki.toString("base64")]
    await Journey.make(stack, "v0.7").created({ ...passkeys, passkeyPubKey })
    const { rpc, entryPoint } = stack.settings
    const operations = [call(to, passkeys), call(to, { ...passkeys, ...value })]
    const hashing = PasskeyHash.run(stack.caller(), { operations, settings: { rpc, entryPoint } })
    const { results, status } = await stack.ask(hashing)
    expect([status, results.map(({ error }) => error)]).toEqual([1, [text(to), null]])
  })

  it("is refused by /transactSigner, and value alone is not", async () => {
    const to = nobody()
    const request = { to, funcSignature: "transfer(address,uint256)", funcParams: [to, "1"] }
    expect(await refused(stack.transact(request))).toMatchObject({
      code: "no_contract",
      details: [{ path: "to", message: text(to) }],
      extra: { returnData: [{ "0": { success: false, error: text(to), txHash: null } }] }
    })
    expect((await stack.ask(stack.transact({ to, value: 3n }))).status).toBe(1)
    expect(await stack.provider.getBalance(to)).toBe(3n)
  })

  it("is refused in an op encoded elsewhere, at any place of its batch", async () => {
    const { userOps } = await stack.estimate([call(nobody(), value)])
    const decoded = UserOperation.decode("v0.7", Hex.unsafe(userOps[0]?.encodedUserOp ?? "0x"))
    if (decoded._tag === "Failure") throw new Error(decoded.failure)
    const posted = (callData: Hex.Hex) => {
      const op = { ...decoded.success, callData, callGasLimit: 500_000n }
      const chainId = BigInt(stack.anvil.chainId)
      const userOpHash = UserOperation.hash("v0.7", stack.settings.entryPoint, chainId, op)
      const encodedUserOp = UserOperation.encode("v0.7", op)
      return stack.post([{ encodedUserOp, userOpHash, signingHash: "" }], "userOpHash")
    }
    const good = {
      target: Address.unsafe(String(stack.token.target)),
      value: 0n,
      data: Hex.unsafe("0x18160ddd")
    }
    const lost = { target: nobody(), value: 0n, data: Hex.unsafe("0xa9059cbb") }
    const { child, salt } = making()
    const made = { target: maker, value: 0n, data: Hex.unsafe(`0x11111111${salt.slice(2)}`) }
    for (const callData of [
      WalletCalls.execute(lost.target, lost.value, lost.data),
      WalletCalls.executeBatch([good, lost]),
      WalletCalls.executeBatch([{ ...made, target: child }, made])
    ])
      expect((await refused(posted(callData))).code).toBe("no_contract")
    // One of its own calls creates the contract that a later one calls.
    const both = await stack.ask(posted(WalletCalls.executeBatch([made, { ...made, target: child }])))
    expect(both.status).toBe(1)
  })

  it("is refused in a request of several slices before it is accepted", async () => {
    const to = nobody()
    const operations = Array.from({ length: 300 }, (_, index) =>
      call(to, index === 299 ? { salt: "b" } : value)
    )
    const later = stack.execute(operations, {}, { ...stack.caller(), isAsynchronous: true })
    expect(await refused(later)).toMatchObject({
      code: "no_contract",
      details: [{ path: "operations[299]" }]
    })
  })
})

describe("a contract that an operation of the request creates", () => {
  it("is called by later operations, by its dependents, and by issued ops", async () => {
    const first = making()
    const calls = [call(first.child, { salt: "b" }), call(first.child), call(nobody())]
    expect(errorsOf(await execute(first.operation, ...calls))).toEqual([null, null, null, expect.any(String)])
    expect(await stack.provider.getCode(first.child)).toBe("0x00")
    const second = making()
    const depending = call(second.child, { dependsOn: 1 })
    expect((await execute(depending, second.operation)).status).toBe(1)
    const third = making()
    const estimated = await stack.estimate([third.operation, call(third.child)])
    expect(estimated).toMatchObject({ status: 1, error: null })
  })

  it("is not there for an operation before that one", async () => {
    const { child, operation } = making()
    expect(errorsOf(await execute(call(child), operation))).toEqual([text(child), null])
  })
})

describe("an address without code that answers", () => {
  it("is a precompile or an address that the network's profile lists", async () => {
    const at = (number: number) => Address.unsafe(toBeHex(number, 20))
    for (const to of [at(4), at(0x1ff), listed]) expect((await execute(call(to))).status, to).toBe(1)
    for (const to of [at(0), at(0x200)])
      expect((await refused(stack.execute([call(to)]))).code).toBe("no_contract")
  })

  it("may have later code, also by delegation, while that code is there", async () => {
    for (const code of ["0x00", `0xef0100${String(stack.token.target).slice(2)}`]) {
      const to = nobody()
      const supply = call(to, { funcSignature: "totalSupply()", funcParams: [] })
      expect((await refused(stack.execute([supply]))).code).toBe("no_contract")
      await stack.provider.send("anvil_setCode", [to, code])
      expect((await execute(supply)).status).toBe(1)
      if (code === "0x00") continue
      await stack.provider.send("anvil_setCode", [to, "0x"])
      expect((await refused(stack.execute([supply]))).code).toBe("no_contract")
    }
  })
})

it("costs no exchange with the node beyond those of a known contract", async () => {
  const to = nobody()
  const asked = async () => {
    const from = exchanges.length
    await stack.estimate([call(to)])
    const batches = exchanges.slice(from)
    return { batches: batches.length, codes: batches.flat().filter((name) => name === "eth_getCode").length }
  }
  await stack.provider.send("anvil_setCode", [to, "0x00"])
  const first = await asked()
  expect([first, await asked()]).toEqual([
    { ...first, codes: 1 },
    { ...first, codes: 0 }
  ])
})
