import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type Budget, Budgets, type Part, type Reservation } from "../../src/application/ports/Budgets.js"
import * as Keccak from "../../src/domain/primitives/Keccak.js"
import { alice, bob } from "../support/journal/Make.js"
import * as Time from "../support/Time.js"

type Service = Context.Service.Shape<typeof Budgets>

const chainId = 31_337n
const minute = 60_000
const day = 86_400_000

const budget: Budget = { accountId: alice, chainId, name: "sponsor" }
const deposit: Budget = { accountId: null, chainId, name: "deposit" }

const entry = (id: string, wei: bigint, rest: Partial<Reservation> = {}): Reservation => ({
  ...budget,
  id,
  wei,
  limit: 100n,
  maxOpen: null,
  window: "day",
  expiresAt: 10 * minute,
  ...rest
})

const lacks = (available: bigint, name = "sponsor") => ({ budget: name, reason: "limit", available })

/** `database`: each time that its layer is built, another process opens the same budgets. */
export const suite = (
  name: string,
  database: Effect.Effect<Layer.Layer<Budgets>, never, Scope.Scope>
): void => {
  const open = (layer: Layer.Layer<Budgets>): Effect.Effect<Service, never, Scope.Scope> =>
    Effect.map(Layer.build(Layer.fresh(layer)), Context.get(Budgets))
  const fact = (text: string, body: (budgets: Service) => Effect.Effect<void, unknown>) =>
    it.effect(text, () => Effect.flatMap(Effect.flatMap(database, open), body))
  const processes = (text: string, body: (one: Service, other: Service) => Effect.Effect<void, unknown>) =>
    it.effect(text, () =>
      Effect.flatMap(database, (layer) =>
        Effect.flatMap(Effect.all([open(layer), open(layer)]), ([one, other]) => body(one, other))
      )
    )
  const today = (budgets: Service) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => budgets.figures(budget, now, "day"))

  describe(`budgets in ${name}`, () => {
    /** All of these, or none. */
    const reserve = (budgets: Service, entries: ReadonlyArray<Reservation>) =>
      Effect.map(budgets.reserve([entries]), ([lack]) => lack)
    const bind = (budgets: Service, id: string, wei = 0n) => budgets.bind({ chainId, id, wei }, `of ${id}`)

    fact("reserves up to the limit, to the last wei, and not beyond", (budgets) =>
      Effect.gen(function* () {
        expect(yield* reserve(budgets, [entry("a", 60n)])).toBeNull()
        expect(yield* reserve(budgets, [entry("b", 41n)])).toEqual(lacks(40n))
        expect(yield* reserve(budgets, [entry("b", 40n)])).toBeNull()
        expect(yield* today(budgets)).toEqual({ held: 100n, booked: 0n })
        expect(yield* reserve(budgets, [entry("c", 1n)])).toEqual(lacks(0n))
        expect(yield* reserve(budgets, [entry("c", 0n)])).toBeNull()
      })
    )

    fact("sums are exact beyond 2^64 and up to 256 bits", (budgets) =>
      Effect.gen(function* () {
        const limit = 2n ** 256n - 1n
        expect(yield* reserve(budgets, [entry("a", limit - 1n, { limit })])).toBeNull()
        expect(yield* reserve(budgets, [entry("b", 2n, { limit })])).toEqual(lacks(1n))
        yield* budgets.settle(chainId, "a", limit - 2n)
        expect(yield* today(budgets)).toEqual({ held: 0n, booked: limit - 2n })
      })
    )

    fact("calls made together count as if made in their order, each with its own result", (budgets) =>
      Effect.gen(function* () {
        const together = <A, E>(calls: ReadonlyArray<Effect.Effect<A, E>>) =>
          Effect.all(calls, { concurrency: "unbounded" })
        const asked = ["a", "b", "c"].map((id) => reserve(budgets, [entry(id, 50n)]))
        expect(yield* together(asked)).toEqual([null, null, lacks(0n)])
        expect(yield* together(["a", "c", "b"].map((id) => bind(budgets, id)))).toEqual([true, false, true])
        yield* together([budgets.land(chainId, "a", 30n), budgets.land(chainId, "a", null)])
        expect(yield* today(budgets)).toEqual({ held: 100n, booked: 0n })
        yield* together([budgets.settle(chainId, "a", 20n), budgets.settle(chainId, "a", 50n)])
        yield* together([budgets.release(chainId, ["b"]), budgets.release(chainId, [])])
        expect(yield* today(budgets)).toEqual({ held: 50n, booked: 20n })
      })
    )

    fact("accounts, chains and budgets count separately", (budgets) =>
      Effect.gen(function* () {
        const others = [{}, { accountId: bob }, { accountId: null }, { chainId: 1n }, { name: "another" }]
        for (const [at, other] of others.entries()) {
          expect(yield* reserve(budgets, [entry("a", 50n, other)])).toBeNull()
          expect(yield* reserve(budgets, [entry(`own ${at}`, 50n, other)])).toBeNull()
        }
        expect(yield* budgets.figures({ ...budget, accountId: bob }, 0, "day")).toEqual({
          held: 100n,
          booked: 0n
        })
      })
    )

    fact("several entries are all held or none", (budgets) =>
      Effect.gen(function* () {
        const fromDeposit = (id: string, wei: bigint) =>
          entry(id, wei, { ...deposit, limit: 50n, window: "open" })
        expect(yield* reserve(budgets, [entry("a", 60n), fromDeposit("a", 60n)])).toEqual(
          lacks(50n, "deposit")
        )
        expect(yield* today(budgets)).toEqual({ held: 0n, booked: 0n })
        expect(yield* budgets.open(chainId)).toEqual([])
        expect(yield* reserve(budgets, [entry("a", 60n), entry("b", 60n)])).toEqual(lacks(40n))
        expect(yield* budgets.open(chainId)).toEqual([])
        expect(yield* reserve(budgets, [entry("a", 50n), fromDeposit("a", 50n)])).toBeNull()
        expect((yield* budgets.open(chainId)).map(({ id, name }) => [id, name])).toEqual([
          ["a", "sponsor"],
          ["a", "deposit"]
        ])
      })
    )

    fact("of several groups in one call each is held for itself, in their order", (budgets) =>
      Effect.gen(function* () {
        const fromDeposit = (id: string, wei: bigint) =>
          entry(id, wei, { ...deposit, limit: 50n, window: "open" })
        expect(
          yield* budgets.reserve([
            [entry("a", 40n), fromDeposit("a", 40n)],
            [entry("b", 20n), fromDeposit("b", 20n)],
            [entry("c", 61n), fromDeposit("c", 1n)],
            [entry("a", 50n), fromDeposit("a", 50n)],
            [],
            [entry("d", 50n)]
          ])
        ).toEqual([null, lacks(10n, "deposit"), lacks(60n), null, null, null])
        expect((yield* budgets.open(chainId)).map(({ id, name, wei }) => [id, name, wei])).toEqual([
          ["a", "sponsor", 50n],
          ["a", "deposit", 50n],
          ["d", "sponsor", 50n]
        ])
      })
    )

    fact("binds at most the held amount; each note is kept once", (budgets) =>
      Effect.gen(function* () {
        yield* reserve(budgets, [entry("a", 60n), entry("a", 50n, { ...deposit, window: "open" })])
        expect(yield* bind(budgets, "a", 51n)).toBe(false)
        expect(yield* bind(budgets, "a", 50n)).toBe(true)
        for (const note of ["another", "of a", ""]) yield* budgets.bind({ chainId, id: "a", wei: 0n }, note)
        yield* reserve(budgets, [entry("a", 70n)])
        expect((yield* budgets.open(chainId)).map(({ notes }) => notes)).toEqual([
          ["of a", "another"],
          ["of a", "another"]
        ])
      })
    )

    fact(
      "budgets that share an id are bound, landed and settled together, each at what it holds",
      (budgets) =>
        Effect.gen(function* () {
          const [fees, limit] = [
            { ...budget, name: "fees", books: "cost" as const },
            { ...budget, name: "limit", books: "held" as const }
          ]
          yield* reserve(budgets, [entry("a", 60n, fees), entry("a", 7n, limit)])
          const terms = (...parts: ReadonlyArray<Part>) => ({ chainId, id: "a", wei: 0n, exactly: parts })
          const held = [
            { ...fees, wei: 60n },
            { ...limit, wei: 7n }
          ]
          for (const other of [
            { ...limit, wei: 8n },
            { ...deposit, wei: 7n }
          ])
            expect(yield* budgets.bind(terms({ ...fees, wei: 60n }, other), "")).toBe(false)
          expect(yield* budgets.bind(terms(...held), "")).toBe(true)
          expect(yield* budgets.bind(terms(...held), "")).toBe(false)
          expect(yield* reserve(budgets, [entry("a", 9n, limit)])).toBeNull()
          yield* budgets.release(chainId, ["a"])
          yield* budgets.settle(chainId, "a", { cost: 50n, success: true })
          expect(yield* budgets.figures(fees, 0, "day")).toEqual({ held: 0n, booked: 50n })
          expect(yield* budgets.figures(limit, 0, "day")).toEqual({ held: 0n, booked: 9n })
          yield* reserve(budgets, [entry("b", 40n, fees), entry("b", 7n, limit)])
          yield* budgets.settle(chainId, "b", { cost: 1n, success: false })
          expect(yield* budgets.figures(fees, 0, "day")).toEqual({ held: 0n, booked: 51n })
          expect(yield* budgets.figures(limit, 0, "day")).toEqual({ held: 0n, booked: 9n })
          expect(yield* reserve(budgets, [entry("a", 1n, { ...budget, name: "third" })])).toMatchObject({
            reason: "ended"
          })
        })
    )

    fact("finds the account's bound holds once they may end", (budgets) =>
      Effect.gen(function* () {
        yield* reserve(budgets, [
          ...["a", "b", "c", "reserved"].map((id) => entry(id, 1n)),
          ...["a", "other"].map((id) => entry(id, 1n, { ...deposit, window: "open" }))
        ])
        const bindAt = (id: string, due?: bigint) =>
          budgets.bind({ chainId, id, wei: 0n, ...(due !== undefined && { due }) }, "")
        for (const due of [9n, 7n, 8n]) yield* bindAt("a", due)
        yield* bindAt("b", 8n)
        yield* bindAt("c")
        yield* bindAt("other")
        const dueAt = (block: bigint, account = alice) =>
          Effect.map(budgets.due(chainId, account, block), ({ hasLater, holds }) => [
            holds.flatMap(({ id, parts }) => parts.map(({ name }) => `${id} ${name}`)),
            hasLater
          ])
        const first = ["a sponsor", "a deposit"]
        expect(yield* dueAt(6n)).toEqual([["c sponsor"], true])
        expect(yield* dueAt(7n)).toEqual([[...first, "c sponsor"], true])
        expect(yield* dueAt(8n)).toEqual([[...first, "b sponsor", "c sponsor"], false])
        expect(yield* dueAt(8n, bob)).toEqual([[], false])
        yield* budgets.settle(chainId, "b", 0n)
        expect(yield* dueAt(7n)).toEqual([[...first, "c sponsor"], false])
      })
    )

    fact("a lower limit leaves what is held, but no deposit covers more than it has", (budgets) =>
      Effect.gen(function* () {
        const lower = { limit: 50n }
        const fromDeposit = { ...deposit, window: "open" } as const
        expect(yield* reserve(budgets, [entry("a", 60n)])).toBeNull()
        expect(yield* reserve(budgets, [entry("d", 60n, fromDeposit)])).toBeNull()
        expect(yield* reserve(budgets, [entry("a", 60n, lower)])).toBeNull()
        expect(yield* reserve(budgets, [entry("a", 61n, lower)])).toEqual(lacks(50n))
        expect(yield* reserve(budgets, [entry("b", 1n, lower)])).toEqual(lacks(0n))
        expect(yield* reserve(budgets, [entry("d", 60n, { ...fromDeposit, ...lower })])).toEqual(
          lacks(50n, "deposit")
        )
        expect(yield* today(budgets)).toEqual({ held: 60n, booked: 0n })
      })
    )

    fact("the same id again is held once, at the higher sum", (budgets) =>
      Effect.gen(function* () {
        for (const wei of [60n, 60n, 10n]) expect(yield* reserve(budgets, [entry("a", wei)])).toBeNull()
        expect((yield* today(budgets)).held).toBe(60n)
        expect(yield* reserve(budgets, [entry("a", 101n)])).toEqual(lacks(100n))
        expect((yield* today(budgets)).held).toBe(60n)
        expect(yield* reserve(budgets, [entry("a", 100n)])).toBeNull()
        expect((yield* today(budgets)).held).toBe(100n)
      })
    )

    fact("books a settled hold once, at its real cost, and frees the remainder", (budgets) =>
      Effect.gen(function* () {
        yield* reserve(budgets, [entry("a", 100n)])
        yield* bind(budgets, "a")
        yield* budgets.settle(chainId, "a", 30n)
        yield* budgets.settle(chainId, "a", 99n)
        expect(yield* today(budgets)).toEqual({ held: 0n, booked: 30n })
        expect(yield* reserve(budgets, [entry("b", 71n)])).toEqual(lacks(70n))
        expect(yield* reserve(budgets, [entry("b", 70n)])).toBeNull()
        // An ended reservation cannot begin again: its money would be counted twice.
        expect(yield* reserve(budgets, [entry("a", 1n)])).toMatchObject({ reason: "ended" })
      })
    )

    fact("frees a hold that is released or settled at zero", (budgets) =>
      Effect.gen(function* () {
        yield* reserve(budgets, [entry("a", 60n), entry("b", 40n)])
        yield* bind(budgets, "b")
        yield* budgets.release(chainId, ["a", "unknown"])
        yield* budgets.settle(chainId, "b", 0n)
        yield* budgets.settle(chainId, "unknown", 7n)
        expect(yield* today(budgets)).toEqual({ held: 0n, booked: 0n })
        expect(yield* reserve(budgets, [entry("b", 100n)])).toBeNull()
      })
    )

    fact("keeps a bound hold until it is settled", (budgets) =>
      Effect.gen(function* () {
        yield* reserve(budgets, [entry("a", 60n)])
        expect(yield* bind(budgets, "a")).toBe(true)
        expect(yield* bind(budgets, "a")).toBe(true)
        yield* budgets.release(chainId, ["a"])
        yield* Time.adjust(11 * minute)
        expect((yield* today(budgets)).held).toBe(60n)
        expect(yield* budgets.open(chainId)).toEqual([
          {
            ...budget,
            id: "a",
            wei: 60n,
            bound: true,
            landed: null,
            expiresAt: 10 * minute,
            notes: ["of a"]
          }
        ])
        expect(yield* reserve(budgets, [entry("b", 41n)])).toEqual(lacks(40n))
      })
    )

    fact("frees a hold that is not bound in time, and refuses to bind it afterwards", (budgets) =>
      Effect.gen(function* () {
        yield* reserve(budgets, [entry("a", 60n)])
        yield* Time.adjust(10 * minute - 1)
        expect(yield* reserve(budgets, [entry("b", 41n, { expiresAt: 20 * minute })])).toEqual(lacks(40n))
        yield* Time.adjust(1)
        expect(yield* today(budgets)).toEqual({ held: 0n, booked: 0n })
        expect(yield* budgets.open(chainId)).toEqual([])
        expect(yield* bind(budgets, "a")).toBe(false)
        expect(yield* bind(budgets, "unknown")).toBe(false)
        expect(yield* reserve(budgets, [entry("b", 100n, { expiresAt: 20 * minute })])).toBeNull()
        expect(yield* bind(budgets, "b")).toBe(true)
      })
    )

    fact("a landed sum counts at its cost, and in full again when the chain undoes it", (budgets) =>
      Effect.gen(function* () {
        const fromDeposit = (id: string, wei: bigint) =>
          entry(id, wei, { ...deposit, limit: 100n, window: "open" })
        yield* reserve(budgets, [entry("a", 90n), fromDeposit("a", 90n)])
        yield* bind(budgets, "a")
        yield* budgets.land(chainId, "a", 30n)
        expect(yield* today(budgets)).toEqual({ held: 30n, booked: 0n })
        expect(yield* reserve(budgets, [entry("b", 71n)])).toEqual(lacks(70n))
        // The deposit read is already lower by the landed amount.
        expect(yield* reserve(budgets, [fromDeposit("c", 100n)])).toBeNull()
        yield* budgets.release(chainId, ["c"])
        yield* budgets.land(chainId, "a", null)
        expect(yield* reserve(budgets, [entry("b", 11n)])).toEqual(lacks(10n))
        expect(yield* reserve(budgets, [fromDeposit("c", 11n)])).toEqual(lacks(10n, "deposit"))
        yield* budgets.land(chainId, "a", 40n)
        yield* budgets.settle(chainId, "a", null)
        expect(yield* today(budgets)).toEqual({ held: 0n, booked: 40n })
        yield* budgets.land(chainId, "a", 99n)
        expect(yield* today(budgets)).toEqual({ held: 0n, booked: 40n })
      })
    )

    fact("a day begins at midnight UTC, and a reservation counts on the day it was made", (budgets) =>
      Effect.gen(function* () {
        yield* Time.setTime(20_000 * day + day - 1)
        const late = { expiresAt: 20_002 * day }
        expect(yield* reserve(budgets, [entry("a", 100n, late)])).toBeNull()
        expect(yield* reserve(budgets, [entry("b", 1n, late)])).toEqual(lacks(0n))
        yield* Time.adjust(1)
        expect(yield* reserve(budgets, [entry("b", 100n, late)])).toBeNull()
        yield* bind(budgets, "a")
        yield* budgets.settle(chainId, "a", 25n)
        expect(yield* budgets.figures(budget, 20_000 * day, "day")).toEqual({ held: 0n, booked: 25n })
        expect(yield* budgets.figures(budget, 20_001 * day, "day")).toEqual({ held: 100n, booked: 0n })
        expect(yield* reserve(budgets, [entry("c", 1n, late)])).toEqual(lacks(0n))
      })
    )

    fact("a budget without days holds open sums over days and forgets ended ones", (budgets) =>
      Effect.gen(function* () {
        const fromDeposit = (id: string, wei: bigint) =>
          entry(id, wei, { ...deposit, limit: 100n, window: "open", expiresAt: 3 * day })
        yield* reserve(budgets, [fromDeposit("a", 60n), fromDeposit("b", 40n)])
        yield* Time.adjust(day)
        expect(yield* reserve(budgets, [fromDeposit("c", 1n)])).toEqual(lacks(0n, "deposit"))
        yield* budgets.settle(chainId, "a", 55n)
        expect(yield* reserve(budgets, [fromDeposit("c", 60n)])).toBeNull()
      })
    )

    fact("a budget limits its open reservations; landed ones do not count", (budgets) =>
      Effect.gen(function* () {
        const one = (id: string) => entry(id, 1n, { limit: null, maxOpen: 2 })
        expect(yield* reserve(budgets, [one("a"), one("b")])).toBeNull()
        expect(yield* reserve(budgets, [one("c")])).toEqual({
          budget: "sponsor",
          reason: "maxOpen",
          available: 0n
        })
        expect(yield* reserve(budgets, [one("b")])).toBeNull()
        yield* budgets.land(chainId, "a", 1n)
        expect(yield* reserve(budgets, [one("c")])).toBeNull()
        yield* budgets.settle(chainId, "b", 0n)
        expect(yield* reserve(budgets, [one("d")])).toBeNull()
        expect(yield* reserve(budgets, [one("e")])).toMatchObject({ reason: "maxOpen" })
      })
    )

    fact("knows issued ops by their account until they expire", (budgets) =>
      Effect.gen(function* () {
        const op = Keccak.hashText("op")
        yield* budgets.handOut(alice, chainId, op, 600)
        yield* budgets.handOut(alice, chainId, op, 600)
        expect(yield* budgets.handedOut(alice, chainId, op)).toBe(true)
        expect(yield* budgets.handedOut(bob, chainId, op)).toBe(false)
        expect(yield* budgets.handedOut(alice, 1n, op)).toBe(false)
        expect(yield* budgets.handedOut(alice, chainId, Keccak.hashText("another"))).toBe(false)
        yield* Time.adjust(600_000)
        expect(yield* budgets.handedOut(alice, chainId, op)).toBe(true)
        yield* Time.adjust(1)
        expect(yield* budgets.handedOut(alice, chainId, op)).toBe(false)
      })
    )

    processes("two processes together never hold more than the limit", (one, other) =>
      Effect.gen(function* () {
        const lacking = yield* Effect.forEach(
          Array.from({ length: 40 }, (_, index) => index),
          (index) =>
            reserve(index % 2 === 0 ? one : other, [
              entry(`op ${index}`, 7n),
              entry(`op ${index}`, 7n, { ...deposit, limit: 1_000n, window: "open" })
            ]),
          { concurrency: "unbounded" }
        )
        expect(lacking.filter((lack) => lack === null)).toHaveLength(14)
        expect(yield* today(other)).toEqual({ held: 98n, booked: 0n })
        expect(yield* one.open(chainId)).toHaveLength(28)
      })
    )

    processes("one id that two processes reserve, bind and settle concurrently is one hold", (one, other) =>
      Effect.gen(function* () {
        const both = <A, E>(use: (budgets: Service) => Effect.Effect<A, E>) =>
          Effect.forEach([one, other, one, other], use, { concurrency: "unbounded" })
        expect(yield* both((budgets) => reserve(budgets, [entry("a", 80n)]))).toEqual([
          null,
          null,
          null,
          null
        ])
        expect(yield* both((budgets) => bind(budgets, "a"))).toEqual([true, true, true, true])
        yield* both((budgets) => budgets.settle(chainId, "a", 20n))
        expect(yield* today(one)).toEqual({ held: 0n, booked: 20n })
      })
    )

    processes("a process finds the holds and bindings of another", (one, other) =>
      Effect.gen(function* () {
        yield* reserve(one, [entry("a", 60n)])
        yield* bind(one, "a")
        yield* one.handOut(alice, chainId, Keccak.hashText("op"), 600)
        expect(yield* other.open(chainId)).toEqual(yield* one.open(chainId))
        expect(yield* reserve(other, [entry("b", 41n)])).toEqual(lacks(40n))
        expect(yield* other.handedOut(alice, chainId, Keccak.hashText("op"))).toBe(true)
      })
    )
  })
}
