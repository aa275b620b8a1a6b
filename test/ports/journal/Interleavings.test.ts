import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as fc from "fast-check"
import * as Journals from "../../support/journal/Journals.js"
import { adaptersOn } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

/** What one request does; the numbers say how long it lets others go first between its steps. */
interface Plan {
  readonly wallet: number
  readonly reserve: bigint
  readonly end: "settles" | "signerRefuses" | "leavesBeforeAcceptance" | "isTooSlow"
  readonly pauses: ReadonlyArray<number>
}

const plan: fc.Arbitrary<Plan> = fc.record({
  wallet: fc.constantFrom(1, 2),
  reserve: fc.bigInt(2n ** 64n, 2n ** 66n),
  end: fc.constantFrom("settles", "settles", "signerRefuses", "leavesBeforeAcceptance", "isTooSlow"),
  pauses: fc.array(fc.nat(6), { minLength: 8, maxLength: 8 })
})

const available = 2n ** 67n
const keyCount = 4n

const spin = (times: number) => Effect.repeatN(Effect.yieldNow(), times)

/** Who holds what, as the requests themselves see it. Each entry is made after the journal's yes. */
class Ledger {
  readonly keys = new Map<string, string>()
  readonly nonces = new Map<string, string>()
  readonly money = new Map<number, Map<string, bigint>>()
  readonly signed: Array<bigint> = []
  accepted = 0
  reserved = 0

  take(map: Map<string, string>, name: string, owner: string): void {
    expect(map.get(name), `${name} is given to ${owner}`).toBeUndefined()
    map.set(name, owner)
  }

  hold(wallet: number, owner: string, reserve: bigint): void {
    const held = this.money.get(wallet) ?? new Map<string, bigint>()
    this.money.set(wallet, held.set(owner, reserve))
    const total = [...held.values()].reduce((sum, it) => sum + it, 0n)
    expect(total <= available, `${total} of ${available} held`).toBe(true)
  }
}

const request = (ledger: Ledger, lane: Effect.Semaphore, plan: Plan, n: number) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const id = `r${n}`
    const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = plan.pauses
    yield* spin(a)
    const space = Make.space(plan.wallet)
    const leased = yield* Make.lease(journal, {
      ...space,
      holder: id,
      keys: { from: 0n, to: keyCount - 1n },
      count: 1,
      ttlMillis: 3_600_000
    })
    const nonceKey = leased?.[0]
    if (nonceKey === undefined) return
    const key = `${plan.wallet} ${nonceKey}`
    ledger.take(ledger.keys, key, id)
    yield* spin(b)
    // Given back in the same step of the ledger that the journal's answer may follow: before the call.
    const giveUp = (undo: Effect.Effect<void, unknown>) =>
      Effect.suspend(() => {
        ledger.keys.delete(key)
        ledger.money.get(plan.wallet)?.delete(id)
        return undo
      })
    if (plan.end === "leavesBeforeAcceptance") return yield* giveUp(journal.release(id))
    const sequence = BigInt([...ledger.nonces.keys()].filter((it) => it.startsWith(`${key} `)).length)
    const ops = [Make.op({ space, nonceKey, sequence, reserve: plan.reserve, userOpHash: Make.word(n + 1) })]
    const result = yield* journal.accept(Make.acceptance(id, ops, { funds: Make.fundsOf(ops, available) }))
    if (result._tag !== "accepted") {
      expect(result._tag).toBe("reserved")
      ledger.reserved++
      return yield* giveUp(journal.release(id))
    }
    ledger.accepted++
    ledger.hold(plan.wallet, id, plan.reserve)
    yield* spin(c)
    const sent = yield* lane.withPermits(1)(
      Effect.gen(function* () {
        const allocation = yield* journal.allocate(
          Make.allocation(id, { ops: [0], chainNonce: 5n, maxCost: 1n })
        )
        if (allocation._tag !== "allocated") return yield* Effect.dieMessage("no funds")
        yield* spin(d)
        if (plan.end === "signerRefuses") {
          yield* journal.unallocate(Make.lane, allocation.nonce)
          return null
        }
        // The process went on without a word: the lane's next work takes the nonce over.
        if (plan.end === "isTooSlow") return null
        yield* journal.recordSigned(Make.signed(allocation.nonce))
        ledger.signed.push(allocation.nonce)
        return allocation.nonce
      })
    )
    yield* spin(e)
    if (sent === null) return yield* giveUp(journal.abandon(id, [0]))
    ledger.take(ledger.nonces, `${key} ${sequence}`, id)
    yield* spin(f)
    const settlement = [Make.landed(Make.word(n + 1), sent, { success: n % 2 === 0 })]
    yield* giveUp(journal.settle(Make.mined(sent), settlement, true))
    yield* journal.settle(Make.mined(sent), settlement, true)
  })

const run = (plans: ReadonlyArray<Plan>, layer: Layer.Layer<Journals.Ports>) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const ledger = new Ledger()
    const lane = yield* Effect.makeSemaphore(1)
    yield* Effect.all(
      plans.map((plan, n) => request(ledger, lane, plan, n)),
      { concurrency: "unbounded" }
    )
    expect(ledger.signed).toEqual(ledger.signed.map((_, n) => 5n + BigInt(n)))
    // Everything is over: nothing holds a key or money any more, and the next nonce follows without a gap.
    for (const wallet of [1, 2]) {
      const keys = { from: 0n, to: keyCount - 1n }
      const count = Number(keyCount)
      const all = { ...Make.leaseRequest("end", { keys, count }), ...Make.space(wallet) }
      expect(yield* Make.lease(journal, all)).toEqual([0n, 1n, 2n, 3n])
    }
    const whole = [1, 2].map((wallet, index) =>
      Make.op({ index, space: Make.space(wallet), nonceKey: 99n, reserve: available })
    )
    expect(
      yield* journal.accept(Make.acceptance("end", whole, { funds: Make.fundsOf(whole, available) }))
    ).toEqual({ _tag: "accepted" })
    expect(yield* journal.allocate(Make.allocation("end", { chainNonce: 5n }))).toEqual({
      _tag: "allocated",
      nonce: 5n + BigInt(ledger.signed.length)
    })
    return ledger
  }).pipe(Effect.provide(layer))

describe("interleavings of concurrent requests", { timeout: 240_000 }, () => {
  for (const { layer, name } of adaptersOn(Postgres.perFile()))
    it(`in ${name} no key, nonce or wei has two owners and no nonce is left out`, async () => {
      const total = { accepted: 0, reserved: 0, signed: 0 }
      await fc.assert(
        fc.asyncProperty(fc.array(plan, { minLength: 2, maxLength: 24, size: "max" }), async (plans) => {
          const ledger = await Effect.runPromise(run(plans, layer))
          total.accepted += ledger.accepted
          total.reserved += ledger.reserved
          total.signed += ledger.signed.length
        }),
        { numRuns: 20 }
      )
      expect(Math.min(total.accepted, total.reserved, total.signed)).toBeGreaterThan(0)
    })
})
