import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type ChainClient, callOf } from "../../../src/application/ports/chain/ChainRpc.js"
import { LaneJournal } from "../../../src/application/ports/journal/LaneJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as GetRequest from "../../../src/application/usecases/operations/GetRequest.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { unfinished } from "../../support/journal/Make.js"
import * as Hits from "../../support/stack/Hits.js"
import { Address, type LifeOptions, type Stack, startStack } from "../../support/stack/Stack.js"

let stack: Stack
let hits: Hits.Hits
const salts = ["one", "two", "three", "four"]
beforeAll(async () => {
  stack = await startStack()
  hits = await Hits.make(stack)
  await stack.create(...salts)
})
afterEach(() => hits.automine(true))
afterAll(() => stack.stop())

const within = async (life: LifeOptions, test: (runtime: Hits.Runtime) => Promise<void>) => {
  const runtime = stack.begin(life)
  try {
    await test(runtime)
  } finally {
    await runtime.dispose()
  }
}

const saltOf = (n: number): string => salts[n % salts.length] ?? ""

/** Keeps the lane busy with a transaction that waits, so that what comes now has to queue up. */
const busy = async (runtime: Hits.Runtime, name: string) => {
  await hits.automine(false)
  const first = runtime.runPromise(hits.execute(stack.caller(), hits.hit("one", hashOf(`busy ${name}`))))
  const [waiting] = await hits.pooled(1)
  return { first, waiting }
}

/** The same node, whose answers to bundles with any of these ids are replaced by a revert that names nobody. */
const poisoned = (id: string, seen: { simulations: number }): NonNullable<LifeOptions["wrapChain"]> => {
  const clients = new WeakMap<ChainClient, ChainClient>()
  const reverted = { success: false, data: Hex.empty }
  const isPoisoned = (data: string) => data.startsWith("0x765e827f") && data.includes(id.slice(2))
  const spoil = (client: ChainClient): ChainClient => ({
    ...client,
    simulate: (calls) => {
      if (calls.some(({ data }) => data.startsWith("0x765e827f"))) seen.simulations += 1
      return calls.some(({ data }) => isPoisoned(data))
        ? Effect.succeed(calls.map(() => ({ ...reverted, gasUsed: 0n, logs: [] })))
        : client.simulate(calls)
    },
    call: (call, overrides, at) =>
      isPoisoned(callOf(call).data) ? Effect.succeed(reverted) : client.call(call, overrides, at)
  })
  return ({ connect }) => ({
    connect: (url, trust) =>
      Effect.map(connect(url, trust), (client) => {
        const known = clients.get(client) ?? spoil(client)
        clients.set(client, known)
        return known
      })
  })
}

/** Ops of the lane that are accepted and in no transaction yet. */
const waitingOps = (runtime: Hits.Runtime) =>
  runtime.runPromise(
    Effect.gen(function* () {
      const requestJournal = yield* RequestJournal
      const laneJournal = yield* LaneJournal
      const requests = yield* Effect.forEach(yield* Effect.orDie(unfinished(laneJournal)), (id) =>
        Effect.orDie(requestJournal.request(id))
      )
      return requests.flatMap((request) => request?.ops.filter(({ state }) => state === "accepted") ?? [])
    })
  )

const opHashes = ({ returnData }: ExecuteOperations.Response): ReadonlyArray<string> =>
  returnData.map((element, index) => element[index]?.userOpHash ?? "")

describe("operations of several requests", () => {
  it("leave together, and each request gets its own slice of the one transaction", async () => {
    await within({ profile: { maxInFlight: 1 } }, async (runtime) => {
      const before = await hits.nonce()
      const { first } = await busy(runtime, "slices")
      const ids = Array.from(
        { length: 6 },
        (_, n) => [hashOf(`slice ${n}`), hashOf(`second of ${n}`)] as const
      )
      const answers = ids.map(([a, b], n) =>
        runtime.runPromise(hits.execute(stack.caller(), hits.hit(saltOf(n), a), hits.hit(saltOf(n), b)))
      )
      // The lane has room for one: all six have to be in the queue before the block.
      await expect
        .poll(async () => (await waitingOps(runtime)).length, { timeout: 15_000 })
        .toBe(ids.length * 2)
      await hits.mine()
      await first
      await hits.pooled(1)
      await hits.mine()
      const results = await Promise.all(answers)
      expect(new Set(results.map(({ txHash }) => txHash)).size).toBe(1)
      for (const [n, result] of results.entries()) {
        expect(result.status).toBe(1)
        expect(result.txHashes).toHaveLength(1)
        const own = (result.logs as ReadonlyArray<{ readonly topics: ReadonlyArray<string> }>).flatMap(
          ({ topics }) => topics
        )
        for (const [m, [a, b]] of ids.entries()) {
          expect(own.includes(a), `${n} has the log of ${m}`).toBe(m === n)
          expect(own.includes(b), `${n} has the log of ${m}`).toBe(m === n)
        }
        const hashes = result.returnData.map((element, index) => element[index]?.userOpHash ?? "")
        const told = own.filter((topic) => results.some((other) => opHashes(other).includes(topic)))
        expect(new Set(told)).toEqual(new Set(hashes))
      }
      expect(await hits.nonce()).toBe(before + 2)
      expect(await Promise.all(ids.flat().map(hits.countOf))).toEqual(ids.flat().map(() => 1))
    })
  }, 60_000)

  it("are not hurt by one among them that reverts the bundle without being named", async () => {
    const bad = hashOf("poison")
    const seen = { simulations: 0 }
    await within({ profile: { maxInFlight: 1 }, wrapChain: poisoned(bad, seen) }, async (runtime) => {
      const { first } = await busy(runtime, "poison")
      const ids = Array.from({ length: 5 }, (_, n) => hashOf(`innocent ${n}`))
      const innocent = ids.map((id, n) =>
        runtime.runPromise(hits.execute(stack.caller(), hits.hit(saltOf(n), id)))
      )
      const caller = stack.caller()
      const guilty = runtime.runPromiseExit(hits.execute(caller, hits.hit("two", bad)))
      await expect
        .poll(async () => (await waitingOps(runtime)).length, { timeout: 15_000 })
        .toBe(ids.length + 1)
      await hits.automine(true)
      await hits.mine()
      await first
      expect((await Promise.all(innocent)).map(({ status }) => status)).toEqual(ids.map(() => 1))
      expect((await guilty)._tag).toBe("Failure")
      // It was refused: nothing of the others' transactions is told of it.
      const told = await runtime.runPromise(GetRequest.run(caller, { requestId: caller.requestId }))
      expect(told).toMatchObject({ state: "final", httpStatus: 422, txHashes: [] })
      expect(JSON.stringify(told.answer)).not.toMatch(/"(?:gasUsed|effectiveGasPrice|logs)"|"txHash":"/)
      expect(await Promise.all(ids.map(hits.countOf))).toEqual(ids.map(() => 1))
      expect(await hits.countOf(bad)).toBe(0)
      expect(seen.simulations).toBeLessThan(20)
    })
  }, 60_000)

  it("through different EntryPoints are not mixed", async () => {
    await within({ profile: { maxInFlight: 1 } }, async (runtime) => {
      const { first } = await busy(runtime, "mixed")
      const ids = Array.from({ length: 4 }, (_, n) => hashOf(`entry point ${n}`))
      const points = [entryPoints["v0.7"], entryPoints["v0.8"]].map(Address.unsafe)
      const answers = ids.map((id, n) =>
        runtime.runPromise(
          ExecuteOperations.run(stack.caller(), {
            operations: [hits.hit(saltOf(n), id)],
            settings: { ...stack.settings, entryPoint: points[n % 2] ?? stack.settings.entryPoint }
          })
        )
      )
      await expect.poll(async () => (await waitingOps(runtime)).length, { timeout: 15_000 }).toBe(ids.length)
      await hits.automine(true)
      await hits.mine()
      await first
      const results = await Promise.all(answers)
      for (const [n, { status, txHash }] of results.entries()) {
        expect(status).toBe(1)
        expect((await stack.provider.getTransaction(txHash))?.to).toBe(points[n % 2])
      }
      expect(new Set(results.map(({ txHash }) => txHash)).size).toBe(2)
    })
  }, 60_000)
})

describe("a lone request on an idle lane", () => {
  it("is sent at once, though nothing is polled for a minute", async () => {
    await within({ profile: { pollIntervalMillis: 60_000 } }, async (runtime) => {
      await hits.automine(false)
      const fiber = runtime.runFork(hits.execute(stack.caller(), hits.hit("one", hashOf("lone"))))
      await hits.pooled(1)
      await hits.mine()
      expect(await hits.countOf(hashOf("lone"))).toBe(1)
      expect(fiber.unsafePoll()).toBeNull()
    })
  }, 30_000)
})

describe("the bound on transactions in flight", () => {
  it.each([1, 3, 16])(
    "of %i holds for bundles and the key's own transactions together",
    async (maxInFlight) => {
      let most = 0
      await within(
        {
          profile: { maxInFlight, receiptTimeoutMillis: 60_000 },
          wrapJournal: (journal) => ({
            ...journal,
            recordSigned: (signed) =>
              Effect.tap(journal.recordSigned(signed), () =>
                Effect.map(journal.openOf(signed), (open) => {
                  most = Math.max(most, open.filter(({ state }) => state === "signed").length)
                })
              )
          })
        },
        async (runtime) => {
          const before = await hits.nonce()
          const ids = Array.from({ length: 24 }, (_, n) => hashOf(`in flight ${maxInFlight} ${n}`))
          const { rpc, signer } = stack.settings
          await hits.automine(false)
          let left = ids.length
          const answers = Promise.all(
            ids.map(async (id, n) => {
              const { status } = await runtime.runPromise(
                n % 6 === 0
                  ? hits.execute(stack.caller(), hits.hit(saltOf(n), id))
                  : TransactSigner.run(stack.caller(), {
                      to: hits.counter,
                      funcSignature: "hit(bytes32)",
                      funcParams: [id],
                      settings: { rpc, signer }
                    })
              )
              left -= 1
              return status
            })
          )
          await hits.pooled(maxInFlight)
          await expect
            .poll(
              async () => {
                await hits.mine()
                return left
              },
              { timeout: 50_000, interval: 50 }
            )
            .toBe(0)
          expect(await answers).toEqual(ids.map(() => 1))
          expect(most).toBe(maxInFlight)
          expect(await Promise.all(ids.map(hits.countOf))).toEqual(ids.map(() => 1))
          expect(await hits.nonce()).toBeLessThanOrEqual(before + ids.length)
        }
      )
    },
    90_000
  )
})
