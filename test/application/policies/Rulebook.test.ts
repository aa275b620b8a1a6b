import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Rulebook from "../../../src/application/policies/Rulebook.js"
import { Policies, PoliciesError, type PolicyVersion } from "../../../src/application/ports/Policies.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { alice, bob } from "../../support/journal/Make.js"
import * as Time from "../../support/Time.js"

const wallet = Address.unsafe(`0x${"11".repeat(20)}`)

const policy = { mode: "enforce", expiresAt: 0, rules: [] } as const

const version = (over: Partial<PolicyVersion>): PolicyVersion => ({
  accountId: alice,
  layer: "account",
  subject: "account",
  version: 1,
  content: policy,
  countedAs: over.subject ?? "account",
  at: 0,
  by: "ann",
  requestId: null,
  ...over
})

/** A store of versions, with its queries and a switch that makes it fail. */
const storeOf = () => {
  const all: Array<PolicyVersion> = []
  const queries: Array<string> = []
  const state = { away: false, hangs: false, unreadable: null as AccountId | null }
  const asked = <A>(query: string, answer: () => A) =>
    Effect.suspend((): Effect.Effect<A, PoliciesError> => {
      queries.push(query)
      if (state.hangs) return Effect.never
      return state.away || query === `current ${state.unreadable}`
        ? Effect.fail(new PoliciesError({ reason: "unavailable", message: "away" }))
        : Effect.sync(answer)
    })
  const service: Policies["Service"] = {
    put: () => Effect.die("unused"),
    history: () => Effect.die("unused"),
    current: (id) => asked(`current ${id}`, () => all.filter(({ accountId }) => accountId === id)),
    changes: (after) =>
      asked("changes", () => ({
        latest: all.length,
        accounts: [...new Set(all.slice(after).map(({ accountId }) => accountId))]
      }))
  }
  return { all, queries, service, state }
}

const over = (
  body: (
    book: Rulebook.Rulebook["Service"],
    store: ReturnType<typeof storeOf>
  ) => Effect.Effect<void, unknown>
) =>
  Effect.suspend(() => {
    const store = storeOf()
    return Effect.flatMap(Rulebook.make, (book) => body(book, store)).pipe(
      Effect.provideService(Policies, store.service),
      Effect.provide(Logger.layer([]))
    )
  })

const unavailable = { _tag: "Unavailable", code: "unavailable" }

describe("the rulebook", () => {
  it.effect("an account without rules costs one query of changes in half a second", () =>
    over((book, { queries }) =>
      Effect.gen(function* () {
        for (let n = 0; n < 5; n += 1) expect(yield* book.of(alice)).toBeNull()
        expect(queries).toEqual(["changes"])
        yield* Time.adjust("499 millis")
        yield* book.of(bob)
        expect(queries).toHaveLength(1)
        yield* Time.adjust("1 millis")
        yield* book.of(bob)
        expect(queries).toEqual(["changes", "changes"])
      })
    )
  )

  it.effect("a change is in force within a second, and reads that account only", () =>
    over((book, { all, queries }) =>
      Effect.gen(function* () {
        all.push(version({ accountId: bob }), version({}))
        expect((yield* book.of(alice))?.bound.get("account")).toHaveLength(1)
        all.splice(1, 1, version({ version: 2 }))
        all.push(version({ subject: "list:x", content: { addresses: [wallet] } }))
        yield* Time.adjust("500 millis")
        const found = yield* book.of(alice)
        expect(found?.bound.get("account")?.[0]?.version).toBe(2)
        expect(found?.lists.account.get("x")).toEqual(new Set([wallet]))
        expect(found?.lists.operator.size).toBe(0)
        expect(queries).toEqual(["changes", `current ${alice}`, "changes", `current ${alice}`])
      })
    )
  )

  it.effect("the operator's policy comes first; a wallet's own replaces wallet:* in its layer", () =>
    over((book, { all }) =>
      Effect.gen(function* () {
        all.push(
          version({ subject: "wallet:*", version: 1 }),
          version({ subject: `wallet:${wallet}`, version: 2 }),
          version({ subject: "wallet:*", version: 3, layer: "operator" }),
          version({ subject: "account", version: 4 }),
          version({ subject: "account", version: 5, layer: "operator" })
        )
        const found = yield* book.of(alice)
        if (found === null) throw new Error("alice has rules")
        expect(found.bound.get("account")?.map((each) => each.version)).toEqual([5, 4])
        expect(Rulebook.ofWallet(found, wallet).map((each) => each.version)).toEqual([2, 3])
        expect(Rulebook.ofWallet(found, Address.zero).map((each) => each.version)).toEqual([3, 1])
      })
    )
  )

  it.effect("names a limit's budget after the subject that it counts as, with the wallet for wallet:*", () =>
    Effect.sync(() => {
      const limit = { chain: "1", name: "gas" }
      const nameOf = (over: Partial<PolicyVersion>, of: Address.Address | null = null) =>
        Rulebook.potOf(alice, version(over), limit, of).name
      expect(nameOf({ subject: "key:b", countedAs: "key:a" })).toBe("policy account key:a gas")
      expect(nameOf({ subject: "wallet:*", layer: "operator" }, wallet)).toBe(
        `policy operator wallet:* ${wallet} gas`
      )
      expect(nameOf({ subject: `wallet:${wallet}` }, wallet)).toBe(`policy account wallet:${wallet} gas`)
    })
  )

  it.effect("an unreadable account is unavailable for itself; a store that is away stops all accounts", () =>
    over((book, { all, state }) =>
      Effect.gen(function* () {
        all.push(version({}), version({ accountId: bob }))
        state.unreadable = alice
        expect(yield* Effect.flip(book.of(alice))).toMatchObject(unavailable)
        expect(yield* book.of(bob)).not.toBeNull()
        state.unreadable = null
        expect(yield* book.of(alice)).not.toBeNull()
        state.away = true
        yield* Time.adjust("500 millis")
        // Nor is an account that had no rules known to have none still.
        for (const id of [alice, bob, "carol" as AccountId])
          expect(yield* Effect.flip(book.of(id))).toMatchObject(unavailable)
        state.away = false
        expect(yield* book.of(alice)).not.toBeNull()
      })
    )
  )

  it.effect("a store that does not answer in five seconds is unavailable", () =>
    over((book, { state }) =>
      Effect.gen(function* () {
        state.hangs = true
        const fiber = yield* Effect.forkChild(Effect.flip(book.of(alice)))
        yield* Time.adjust("5 seconds")
        expect(yield* Fiber.join(fiber)).toMatchObject(unavailable)
      })
    )
  )
})
