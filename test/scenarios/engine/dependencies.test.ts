import * as Effect from "effect/Effect"
import { id as hashOf, Interface } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { sponsored } from "../../support/stack/Sponsored.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"

const ether = 10n ** 18n
let stack: Stack
let counter: Address.Address
let reverter: Address.Address
beforeAll(async () => {
  stack = await startStack()
  counter = Address.unsafe(await stack.counter.getAddress())
  reverter = Address.unsafe(await stack.reverter.getAddress())
  await stack.create("one", "two", "three")
})
afterAll(() => stack.stop())

let requests = 0
/** An id that nothing was counted for yet. */
const fresh = (name: string) => {
  requests += 1
  return hashOf(`${name} ${requests}`)
}
const call = (
  salt: string,
  funcSignature: string,
  funcParams: ReadonlyArray<string>,
  dependsOn?: number
): Operation => ({
  salt,
  walletCustody: 1,
  to: counter,
  funcSignature,
  funcParams,
  ...(dependsOn !== undefined && { dependsOn })
})
const hit = (salt: string, id: string, dependsOn?: number) =>
  call(salt, "hit(bytes32) returns (uint256)", [id], dependsOn)
const fail = (salt: string, dependsOn?: number): Operation => ({
  ...call(salt, "failWithReason(string)", ["no"], dependsOn),
  to: reverter
})
const execute = (operations: ReadonlyArray<Operation>, settings = {}) =>
  ExecuteOperations.run(stack.caller(), { operations, settings: { ...stack.settings, ...settings } })
const countOf = async (id: string): Promise<number> => Number(await stack.counter.getFunction("count")(id))
const sentBy = () => stack.provider.getTransactionCount(stack.signer.address)

const pending = async (): Promise<number> => Number((await stack.provider.send("txpool_status", [])).pending)

const hits = new Interface(["event Hit(bytes32 indexed id, address indexed caller, uint256 count)"])
/** The ids that a transaction counted, in order. */
const counted = async (txHash: string): Promise<ReadonlyArray<string>> => {
  const receipt = await stack.provider.getTransactionReceipt(txHash)
  return (receipt?.logs ?? []).flatMap((log) => {
    const event = log.address.toLowerCase() === counter.toLowerCase() ? hits.parseLog(log) : null
    return event === null ? [] : [String(event.args[0])]
  })
}
/** What the answer says of each operation: null when it succeeded, else why not. */
const errors = (result: {
  readonly returnData: ReadonlyArray<{
    readonly [index: number]: { readonly success: boolean; readonly error: string | null }
  }>
}) =>
  result.returnData.map((element, index) => {
    const own = element[index]
    return own?.success === true ? null : own?.error
  })

describe.each(entryPointVersions)("operations that depend on others, on EntryPoint %s", (version) => {
  const settings = { entryPoint: Address.unsafe(entryPoints[version]) }

  it("are executed behind them, in one transaction, whatever place they have in the request", async () => {
    const [a, b, c, d] = [fresh("a"), fresh("b"), fresh("c"), fresh("d")]
    const before = await sentBy()
    const result = await stack.ask(
      execute([hit("two", c, 1), hit("one", b, 3), hit("one", d), hit("three", a)], settings)
    )
    expect(errors(result)).toEqual([null, null, null, null])
    expect(result.status).toBe(1)
    expect(result.returnData.map((element, index) => element[index]?.result)).toEqual(["1", "1", "1", "1"])
    expect(result.txHashes).toEqual([result.txHash])
    expect(await counted(result.txHash)).toEqual([d, a, b, c])
    expect(await sentBy()).toBe(before + 1)
  })

  it("fail with the one that fails in the simulation, and the others go", async () => {
    const [a, b, c] = [fresh("a"), fresh("b"), fresh("c")]
    const result = await stack.ask(
      execute([fail("one"), hit("two", a, 0), hit("one", b), hit("three", c, 1)], settings)
    )
    expect(result.status).toBe(4)
    expect(errors(result)).toEqual([
      "no",
      "dependency failed: operation 0",
      null,
      "dependency failed: operation 1"
    ])
    expect(await counted(result.txHash)).toEqual([b])
    expect(await countOf(a)).toBe(0)
  })

  it("fail on the chain with the one that fails there, when the state has changed in between", async () => {
    const [gate, a, b, c, d] = [fresh("gate"), fresh("a"), fresh("b"), fresh("c"), fresh("d")]
    await stack.provider.send("evm_setAutomine", [false])
    try {
      const answer = stack.ask(
        execute(
          [
            call("one", "hitIfOpen(bytes32,bytes32)", [gate, a]),
            hit("two", b, 0),
            hit("one", c, 1),
            hit("one", d)
          ],
          { ...settings, useABI: ["error Closed(bytes32 id)"] }
        )
      )
      await expect.poll(pending, { timeout: 10_000 }).toBe(1)
      // A better price: it comes first in the block.
      const closing = await stack.counter
        .connect(keyOf(8).connect(stack.provider))
        .getFunction("setClosed")
        .send(gate, true, { maxPriorityFeePerGas: 50n * 10n ** 9n, maxFeePerGas: 90n * 10n ** 9n })
      await stack.provider.send("evm_mine", [])
      expect((await closing.wait())?.status).toBe(1)
      const result = await answer
      expect(result.status).toBe(4)
      expect(errors(result)).toEqual([
        `Closed(id: ${a})`,
        "dependency failed: operation 0",
        "dependency failed: operation 1",
        null
      ])
      expect(await counted(result.txHash)).toEqual([d])
      expect(result.txHashes.length).toBe(1)
    } finally {
      await stack.provider.send("evm_setAutomine", [true])
    }
  })
})

describe("operations that depend on others", () => {
  it("may be many on one, and on those again", async () => {
    const ids = Array.from({ length: 12 }, (_, n) => fresh(`tree ${n}`))
    const salts = ["one", "two", "three"]
    const operations = ids.map((id, n) =>
      hit(salts[n % 3] ?? "one", id, n === 5 ? undefined : n < 5 ? n + 1 : Math.floor(n / 2))
    )
    const result = await stack.ask(execute(operations))
    expect(errors(result)).toEqual(ids.map(() => null))
    const order = await counted(result.txHash)
    expect([...order].sort()).toEqual([...ids].sort())
    for (const [index, { dependsOn }] of operations.entries())
      if (dependsOn !== undefined)
        expect(order.indexOf(String(ids[dependsOn]))).toBeLessThan(order.indexOf(String(ids[index])))
  })

  it("of many requests at once go with those that they depend on, each once", async () => {
    const rounds = Array.from({ length: 8 }, (_, n) => [fresh(`first ${n}`), fresh(`second ${n}`)] as const)
    const results = await Promise.all(
      rounds.map(([a, b]) => stack.ask(execute([hit("two", b, 1), hit("one", a)])))
    )
    expect(results.map(({ status }) => status)).toEqual(rounds.map(() => 1))
    for (const [index, [a, b]] of rounds.entries()) {
      const txHash = String(results[index]?.txHash)
      expect((await counted(txHash)).filter((id) => id === a || id === b)).toEqual([a, b])
    }
  })

  it("are sent without what depends on them, when that fails alone", async () => {
    const [a, b] = [fresh("a"), fresh("b")]
    const result = await stack.ask(execute([hit("one", a), fail("two", 0), hit("one", b, 1)]))
    expect(errors(result)).toEqual([null, "no", "dependency failed: operation 1"])
    expect(await counted(result.txHash)).toEqual([a])
  })

  it("may be paid for by the operator, each for itself", async () => {
    const sponsor = await sponsored(stack)
    const accounts = ["poor", "poorer"].map((salt) => ({ salt, walletCustody: 1 as const }))
    const { settings } = sponsor
    await stack.ask(CreateWallets.run(stack.caller(), { accounts, settings }))
    const [a, b, c] = [fresh("a"), fresh("b"), fresh("c")]
    const result = await stack.ask(
      execute([hit("poorer", b, 1), hit("poor", a), fail("poor"), hit("poorer", c, 2)], settings)
    )
    expect(errors(result)).toEqual([null, null, "no", "dependency failed: operation 2"])
    expect(await counted(result.txHash)).toEqual([a, b])
    expect(await stack.provider.getBalance(stack.predict("poorer"))).toBe(0n)
  })

  it("fail with one whose wallet can not act, and with one that it has no money for", async () => {
    const [a, b, c] = [fresh("a"), fresh("b"), fresh("c")]
    const result = await stack.ask(
      execute([
        hit("nowhere", a),
        hit("one", b, 0),
        { ...hit("two", c), value: 1_000n * ether },
        hit("one", c, 2),
        hit("one", c)
      ])
    )
    expect(errors(result)).toEqual([
      "wallet not deployed",
      "dependency failed: operation 0",
      expect.stringContaining("insufficient funds"),
      "dependency failed: operation 2",
      null
    ])
  })

  it.each([
    [[1, 0], 0, "operations depend on each other: 0 -> 1 -> 0"],
    [[null, 1], 1, "an operation can not depend on itself"],
    [[null, 2], 1, "expected the index of another operation, 0 to 1"],
    [[-1, null], 0, "expected the index of another operation, 0 to 1"],
    [[null, 0, 4, 2, 3], 2, "operations depend on each other: 2 -> 4 -> 3 -> 2"]
  ])("%j is 400, and nobody is asked", async (on, index, message) => {
    const failure = await stack.refused(
      execute(
        on.map((each) => hit("one", hashOf("x"), each ?? undefined)),
        { rpc: "http://127.0.0.1:1" }
      )
    )
    expect(failure).toMatchObject({ _tag: "InvalidRequest", message: "invalid request" })
    expect(failure.details).toEqual([{ path: `operations[${index}].dependsOn`, message }])
  })

  it.each([
    ["names no ledger", null, "the network profile names no ledger"],
    ["names one that is not there", Address.unsafe(`0x${"1e".repeat(20)}`), "there is no ledger at 0x1E"]
  ])("are 400 with what to do, where the operator %s", async (_, ledger, message) => {
    const other = stack.begin({ profile: { ledger } })
    try {
      const failure = await other.runPromise(
        Effect.flip(execute([hit("one", hashOf("x")), hit("one", hashOf("x"), 0)]))
      )
      expect({ tag: failure._tag, details: "details" in failure ? failure.details : [] }).toEqual({
        tag: "InvalidRequest",
        details: [{ path: "operations[1].dependsOn", message: expect.stringContaining(message) }]
      })
      const id = fresh("alone")
      expect((await other.runPromise(execute([hit("one", id)]))).status).toBe(1)
    } finally {
      await other.dispose()
    }
  })
})

describe("what does not fit into one transaction", () => {
  const caps = { maxFeePerGas: 500_000_000_000n, maxPriorityFeePerGas: 100_000_000_000n }
  let small: ReturnType<Stack["begin"]>
  beforeAll(() => {
    small = stack.begin({ profile: { caps: { ...caps, transactionGas: 1_400_000n } } })
  })
  afterAll(() => small.dispose())

  it("together is 422 with nothing sent of it, and the others go", async () => {
    const ids = Array.from({ length: 12 }, (_, n) => fresh(`long ${n}`))
    const alone = fresh("alone")
    const before = await sentBy()
    const chain = ids.map((id, n) => hit("one", id, n === 0 ? undefined : n - 1))
    const result = await small.runPromise(execute([...chain, hit("one", alone)]))
    expect(result.status).toBe(4)
    expect(errors(result)).toEqual([
      ...ids.map(
        () => "the operations that depend on each other need more gas than one transaction may have"
      ),
      null
    ])
    expect(await counted(result.txHash)).toEqual([alone])
    expect(await sentBy()).toBe(before + 1)
    const failure = await small.runPromise(Effect.flip(execute(chain)))
    expect(failure).toMatchObject({ _tag: "Unprocessable", code: "too_large_to_bundle" })
    expect(await sentBy()).toBe(before + 1)
  })

  it("goes in several, none of which parts what depends on each other", async () => {
    // Every other one belongs together: in the order of the request all of them would have to go at once.
    const ids = Array.from({ length: 12 }, (_, n) => fresh(`two trees ${n}`))
    const operations = ids.map((id, n) => hit(n % 2 === 0 ? "one" : "two", id, n < 2 ? undefined : n - 2))
    const result = await small.runPromise(execute(operations))
    expect(errors(result)).toEqual(ids.map(() => null))
    expect(result.txHashes.length).toBe(2)
    const parts = await Promise.all(result.txHashes.map(counted))
    const trees = [0, 1].map((odd) => ids.filter((_, n) => n % 2 === odd))
    expect(parts).toEqual(trees)
  })
})
