import * as Effect from "effect/Effect"
import { id as hashOf, Interface } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { sponsored } from "../../support/stack/Sponsored.js"
import { Address, errorsOf, keyOf, type Runtime, useStack } from "../../support/stack/Stack.js"

const stack = useStack({}, (stack) => stack.create("one", "two", "three"))

let requests = 0
/** Unused counter ids. */
const fresh = (count: number): ReadonlyArray<string> => {
  requests += 1
  return Array.from({ length: count }, (_, n) => hashOf(`${requests} ${n}`))
}
const on = (dependsOn: number | undefined): Partial<Operation> =>
  dependsOn === undefined ? {} : { dependsOn }
const hit = (salt: string, id = "", dependsOn?: number) => stack.hit(salt, id, on(dependsOn))
const fail = (salt: string, dependsOn?: number) =>
  stack.hit(salt, "", {
    to: Address.unsafe(String(stack.reverter.target)),
    funcSignature: "failWithReason(string)",
    funcParams: ["no"],
    ...on(dependsOn)
  })

const hits = new Interface(["event Hit(bytes32 indexed id, address indexed caller, uint256 count)"])
/** The ids that a transaction counted, in order. */
const counted = async (txHash: string): Promise<ReadonlyArray<string>> => {
  const receipt = await stack.provider.getTransactionReceipt(txHash)
  return (receipt?.logs ?? []).flatMap((log) => {
    const event = log.address === stack.counter.target ? hits.parseLog(log) : null
    return event === null ? [] : [String(event.args[0])]
  })
}

describe("operations that depend on others", () => {
  it.each(entryPointVersions)(
    "are executed after their dependencies, in one transaction of %s, whatever their place in the request",
    async (version) => {
      const [a, b, c, d] = fresh(4)
      const before = await stack.nonce()
      const operations = [hit("two", c, 1), hit("one", b, 3), hit("one", d), hit("three", a)].map((each) => ({
        ...each,
        funcSignature: "hit(bytes32) returns (uint256)"
      }))
      const result = await stack.ask(
        stack.execute(operations, { entryPoint: Address.unsafe(entryPoints[version]) })
      )
      expect(errorsOf(result)).toEqual([null, null, null, null])
      expect(result).toMatchObject({ status: 1, txHashes: [result.txHash] })
      expect(result.returnData.map((element, n) => element[n]?.result)).toEqual(["1", "1", "1", "1"])
      expect(await counted(result.txHash)).toEqual([d, a, b, c])
      expect(await stack.nonce()).toBe(before + 1)
    }
  )

  it("fail with a dependency that fails in the simulation, and the others go", async () => {
    const [a, b, c] = fresh(3)
    const result = await stack.ask(
      stack.execute([fail("one"), hit("two", a, 0), hit("one", b), hit("three", c, 1)])
    )
    expect(result.status).toBe(4)
    expect(errorsOf(result)).toEqual([
      "no",
      "dependency failed: operation 0",
      null,
      "dependency failed: operation 1"
    ])
    expect(await counted(result.txHash)).toEqual([b])
  })

  it("fail on the chain with a dependency that fails there, when the state has changed in between", async () => {
    const [gate = "", a = "", b, c, d] = fresh(5)
    await stack.automine(false)
    const gated = { funcSignature: "hitIfOpen(bytes32,bytes32)", funcParams: [gate, a] }
    const answer = stack.ask(
      stack.execute([stack.hit("one", "", gated), hit("two", b, 0), hit("one", c, 1), hit("one", d)], {
        useABI: ["error Closed(bytes32 id)"]
      })
    )
    await stack.pooled(1)
    // A better price: it comes first in the block.
    const closing = await stack.counter
      .connect(keyOf(8).connect(stack.provider))
      .getFunction("setClosed")
      .send(gate, true, { maxPriorityFeePerGas: 50n * 10n ** 9n, maxFeePerGas: 90n * 10n ** 9n })
    await stack.mine()
    expect((await closing.wait())?.status).toBe(1)
    const result = await answer
    expect(result).toMatchObject({ status: 4, txHashes: [result.txHash] })
    expect(errorsOf(result)).toEqual([
      `Closed(id: ${a})`,
      "dependency failed: operation 0",
      "dependency failed: operation 1",
      null
    ])
    expect(await counted(result.txHash)).toEqual([d])
  })

  it("go with their dependencies, each once, from many concurrent requests", async () => {
    const rounds = Array.from({ length: 8 }, () => fresh(2))
    const results = await Promise.all(
      rounds.map(([a, b]) => stack.ask(stack.execute([hit("two", b, 1), hit("one", a)])))
    )
    expect(results.map(({ status }) => status)).toEqual(rounds.map(() => 1))
    for (const [index, round] of rounds.entries()) {
      const ids = await counted(String(results[index]?.txHash))
      expect(ids.filter((id) => round.includes(id))).toEqual(round)
    }
  })

  it("may have the operator as payer, each separately", async () => {
    const { settings } = await sponsored(stack)
    await stack.ask(stack.createWallets(["poor", "poorer"], settings))
    const [a, b, c] = fresh(3)
    const operations = [hit("poorer", b, 1), hit("poor", a), fail("poor"), hit("poorer", c, 2)]
    const result = await stack.ask(stack.execute(operations, settings))
    expect(errorsOf(result)).toEqual([null, null, "no", "dependency failed: operation 2"])
    expect(await counted(result.txHash)).toEqual([a, b])
    expect(await stack.provider.getBalance(stack.predict("poorer"))).toBe(0n)
  })

  it("fail together with an operation whose wallet cannot act or lacks the funds for it", async () => {
    const [a, b] = fresh(2)
    const costly = stack.hit("two", hashOf("costly"), { value: 10n ** 21n })
    const result = await stack.ask(
      stack.execute([hit("nowhere", a), hit("one", b, 0), costly, hit("one", b, 2), hit("one", b)])
    )
    expect(errorsOf(result)).toEqual([
      "wallet not deployed",
      "dependency failed: operation 0",
      expect.stringContaining("insufficient funds"),
      "dependency failed: operation 2",
      null
    ])
  })

  it("on each other are 400 before any query", async () => {
    const operations = [hit("one", hashOf("x"), 1), hit("one", hashOf("x"), 0)]
    const failure = await stack.refused(stack.execute(operations, { rpc: "http://127.0.0.1:1" }))
    expect(failure).toMatchObject({
      _tag: "InvalidRequest",
      message: "invalid request",
      details: [{ path: "operations[0].dependsOn", message: "operations depend on each other: 0 -> 1 -> 0" }]
    })
  })

  it.each([
    ["names no ledger", null, "the network profile names no ledger"],
    ["names a missing operation", Address.unsafe(`0x${"1e".repeat(20)}`), "there is no ledger at 0x1E"]
  ])("are 400 with the remedy, where the operator %s", (_, ledger, message) =>
    stack.living({ profile: { ledger } }, async (other) => {
      const [id] = fresh(1)
      expect(
        await other.runPromise(Effect.flip(stack.execute([hit("one", id), hit("one", id, 0)])))
      ).toMatchObject({
        _tag: "InvalidRequest",
        details: [{ path: "operations[1].dependsOn", message: expect.stringContaining(message) }]
      })
      expect((await other.runPromise(stack.execute([hit("one", id)]))).status).toBe(1)
    })
  )
})

describe("operations that exceed one transaction", () => {
  const caps = { maxFeePerGas: 500_000_000_000n, maxPriorityFeePerGas: 100_000_000_000n }
  let small: Runtime
  beforeAll(() => {
    small = stack.begin({ profile: { caps: { ...caps, transactionGas: 1_400_000n } } })
  })
  afterAll(() => small.dispose())

  it("are 422 and unsent when they depend on each other, and the others go", async () => {
    const [alone, ...ids] = fresh(13)
    const before = await stack.nonce()
    const chain = ids.map((id, n) => hit("one", id, n === 0 ? undefined : n - 1))
    const result = await small.runPromise(stack.execute([...chain, hit("one", alone)]))
    expect(result.status).toBe(4)
    const error = "the operations that depend on each other need more gas than one transaction may have"
    expect(errorsOf(result)).toEqual([...ids.map(() => error), null])
    expect(await counted(result.txHash)).toEqual([alone])
    const failure = await small.runPromise(Effect.flip(stack.execute(chain)))
    expect(failure).toMatchObject({ _tag: "Unprocessable", code: "too_large_to_bundle" })
    expect(await stack.nonce()).toBe(before + 1)
  })

  it("go in several transactions, which keep dependent operations together", async () => {
    // Alternating operations depend on each other: in the request's order all of them would need one transaction.
    const ids = fresh(12)
    const operations = ids.map((id, n) => hit(n % 2 === 0 ? "one" : "two", id, n < 2 ? undefined : n - 2))
    const result = await small.runPromise(stack.execute(operations))
    expect(errorsOf(result)).toEqual(ids.map(() => null))
    const trees = [0, 1].map((odd) => ids.filter((_, n) => n % 2 === odd))
    expect(await Promise.all(result.txHashes.map(counted))).toEqual(trees)
  })
})
