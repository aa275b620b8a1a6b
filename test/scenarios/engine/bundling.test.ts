import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { expect, it } from "vitest"
import type * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import { LaneJournal } from "../../../src/application/ports/journal/LaneJournal.js"
import { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import { Address, type LifeOptions, type Runtime, useStack } from "../../support/stack/Stack.js"

const salts = ["one", "two", "three", "four"]
const stack = useStack({}, (stack) => stack.create(...salts))
const saltOf = (n: number): string => salts[n % salts.length] ?? ""

/** Ops that are accepted and in no transaction yet. */
const waitingOps = (runtime: Runtime) =>
  runtime.runPromise(
    Effect.gen(function* () {
      const { busy } = yield* LaneJournal
      const { ready } = yield* OpJournal
      return (yield* Effect.forEach(yield* busy, ({ lane }) => ready(lane, 100))).flat()
    })
  )

const opHashes = ({ returnData }: ExecuteOperations.Response): ReadonlyArray<string> =>
  returnData.map((element, index) => element[index]?.userOpHash ?? "")

it("operations of several requests leave together, and each request gets its own slice of the one transaction", () =>
  stack.living({ profile: { maxInFlight: 1 } }, async (runtime) => {
    const before = await stack.nonce()
    await stack.automine(false)
    const first = runtime.runPromise(stack.execute([stack.hit("one", hashOf("busy"))]))
    await stack.pooled(1)
    const ids = Array.from({ length: 6 }, (_, n) => [hashOf(`slice ${n}`), hashOf(`second of ${n}`)] as const)
    const answers = ids.map((own, n) =>
      runtime.runPromise(stack.execute(own.map((id) => stack.hit(saltOf(n), id))))
    )
    // The lane has room for one: all six have to be in the queue before the block.
    await expect.poll(async () => (await waitingOps(runtime)).length, { timeout: 15_000 }).toBe(12)
    await stack.mine()
    await first
    await stack.pooled(1)
    await stack.mine()
    const results = await Promise.all(answers)
    expect(new Set(results.map(({ txHash }) => txHash)).size).toBe(1)
    for (const [n, result] of results.entries()) {
      expect(result.status).toBe(1)
      expect(result.txHashes).toHaveLength(1)
      const own = (result.logs as ReadonlyArray<{ readonly topics: ReadonlyArray<string> }>).flatMap(
        ({ topics }) => topics
      )
      expect(ids.flat().filter((id) => own.includes(id))).toEqual(ids[n])
      const told = own.filter((topic) => results.some((other) => opHashes(other).includes(topic)))
      expect(new Set(told)).toEqual(new Set(opHashes(result)))
    }
    expect(await stack.nonce()).toBe(before + 2)
    expect(await stack.counts(...ids.flat())).toEqual(ids.flat().map(() => 1))
  }))

it("a lone request on an idle lane is sent immediately, though the next poll is a minute away", () =>
  stack.living({ profile: { pollIntervalMillis: 60_000 } }, async (runtime) => {
    await stack.automine(false)
    const fiber = runtime.runFork(stack.execute([stack.hit("one", hashOf("lone"))]))
    await stack.pooled(1)
    await stack.mine()
    expect(await stack.counts(hashOf("lone"))).toEqual([1])
    expect(fiber.pollUnsafe()).toBeUndefined()
  }))

it("the bound on transactions in flight holds for bundles and the key's own transactions together", async () => {
  const maxInFlight = 3
  let most = 0
  const life: LifeOptions = {
    profile: { maxInFlight, receiptTimeoutMillis: 60_000 },
    wrapJournal: (journal) => ({
      ...journal,
      record: (recording) =>
        Effect.tap(journal.record(recording), () =>
          Effect.map(journal.openOf(recording), (open) => {
            most = Math.max(most, open.filter(({ state }) => state === "signed").length)
          })
        )
    })
  }
  await stack.living(life, async (runtime) => {
    const before = await stack.nonce()
    const ids = Array.from({ length: 24 }, (_, n) => hashOf(`in flight ${maxInFlight} ${n}`))
    const to = Address.unsafe(String(stack.counter.target))
    await stack.automine(false)
    let left = ids.length
    const answers = Promise.all(
      ids.map(async (id, n) => {
        const { status } = await runtime.runPromise<{ status: number }, unknown>(
          n % 6 === 0
            ? stack.execute([stack.hit(saltOf(n), id)])
            : stack.transact({ to, funcSignature: "hit(bytes32)", funcParams: [id] })
        )
        left -= 1
        return status
      })
    )
    await stack.pooled(maxInFlight)
    const mined = () => stack.mine().then(() => left)
    await expect.poll(mined, { timeout: 50_000, interval: 50 }).toBe(0)
    expect(await answers).toEqual(ids.map(() => 1))
    expect(most).toBe(maxInFlight)
    expect(await stack.counts(...ids)).toEqual(ids.map(() => 1))
    expect(await stack.nonce()).toBeLessThanOrEqual(before + ids.length)
  })
}, 90_000)
