import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as fc from "fast-check"
import type { ListQuestion } from "../../../src/application/ports/journal/Requests.js"
import { accept, answer, factOf, giveUp } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"
import * as Time from "../../support/Time.js"

interface Given {
  readonly requestId: string
  readonly at: number
  readonly wallets: ReadonlyArray<number>
  readonly metadata: Readonly<Record<string, string>>
  readonly isFinal: boolean
  readonly account: "alice" | "bob"
}

const few = fc.constantFrom("1", "2", "3:4")
const given = fc
  .array(
    fc.record({
      at: fc.integer({ min: 1_000, max: 1_003 }),
      wallets: fc.uniqueArray(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }),
      metadata: fc.dictionary(fc.constantFrom("order", "customer"), few),
      isFinal: fc.boolean(),
      account: fc.constantFrom("alice" as const, "bob" as const)
    }),
    { minLength: 1, maxLength: 12 }
  )
  .map((all) =>
    all.sort((one, other) => one.at - other.at).map((it, n): Given => ({ ...it, requestId: `l${n}` }))
  )

const order = (value: string) => ({ key: "order", value })

const questions: ReadonlyArray<Omit<ListQuestion, "limit">> = [
  {},
  { wallet: Make.space(1).wallet },
  { wallet: Make.space(9).wallet },
  { member: order("1") },
  { member: order("3:4") },
  { wallet: Make.space(1).wallet, member: order("1") },
  { wallet: Make.space(2).wallet, member: order("3:4") }
].flatMap((by) =>
  [undefined, "pending" as const, "final" as const].flatMap((state) => [
    { ...by, state },
    { ...by, state, since: 1_001, until: 1_003 }
  ])
)

const isAsked = (
  it: Given,
  { member, since = 0, state, until = 9_999, wallet }: Omit<ListQuestion, "limit">
): boolean =>
  it.account === "alice" &&
  it.at >= since &&
  it.at < until &&
  (state === undefined || (state === "final") === it.isFinal) &&
  (wallet === undefined || it.wallets.some((n) => Make.space(n).wallet === wallet)) &&
  (member === undefined || it.metadata[member.key] === member.value)

const acceptAll = (all: ReadonlyArray<Given>) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    for (const [n, { account, at, isFinal, metadata, requestId, wallets }] of all.entries()) {
      yield* Time.setTime(at)
      const accountId = Make.accountId(account)
      const ops = wallets.map((wallet, index) =>
        Make.op({ index, space: Make.space(wallet), nonceKey: BigInt(at * 100 + n), userOpHash: null })
      )
      yield* accept(journal, Make.acceptance(requestId, ops, { accountId, metadata }))
      if (!isFinal) continue
      yield* giveUp(
        journal,
        requestId,
        ops.map(({ index }) => index)
      )
      yield* answer(journal, requestId)
    }
  })

/** All pages, of two requests each. */
const pages = (question: Omit<ListQuestion, "limit">) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const found: Array<string> = []
    let after: ListQuestion["after"]
    for (;;) {
      const page = yield* journal.list(Make.alice, { ...question, after, limit: 2 })
      found.push(...page.requests.map(({ requestId }) => requestId))
      after = page.requests.at(-1)
      expect(page.searched).toBe(null)
      if (page.requests.length < 2) return found
    }
  })

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)

  describe(`the list of requests in ${name}`, () => {
    fact(
      "lists each matching request once, the newest first, wherever the page ends",
      Effect.gen(function* () {
        const samples = fc.sample(given, { numRuns: 3, seed: 4711 })
        for (const [run, some] of samples.entries()) {
          const all = some.map((it) => ({ ...it, requestId: `${run} ${it.requestId}`, at: it.at + run * 10 }))
          const begin = 1_000 + run * 10
          yield* acceptAll(all)
          for (const asked of questions) {
            const since = asked.since === undefined ? begin : asked.since + run * 10
            const until = asked.until === undefined ? begin + 10 : asked.until + run * 10
            const question = { ...asked, since, until }
            const expected = all.filter((it) => isAsked(it, question)).map(({ requestId }) => requestId)
            expect(yield* pages(question), JSON.stringify(question)).toEqual(expected.toReversed())
          }
        }
      })
    )

    fact(
      "finds a request by the wallets of all its elements, and by its metadata",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const op = (n: number) => Make.op({ index: n, space: Make.space(n), userOpHash: Make.word(n) })
        const first = { elements: 2, unopened: 1, metadata: { order: "1" } }
        yield* journal.accept([Make.acceptance("r2", [op(1)], first)])
        expect(yield* pages({ wallet: Make.space(2).wallet })).toEqual([])
        yield* journal.openElements(Make.lane, Make.opening("r2", [op(2)]))
        const wallets = [1, 2].map((n) => ({ wallet: Make.space(n).wallet }))
        for (const by of wallets) expect(yield* pages(by)).toEqual(["r2"])
        const members = ["1", "2"].map((value) => ({ member: order(value) }))
        expect(yield* Effect.forEach(members, pages)).toEqual([["r2"], []])
      })
    )

    fact(
      "lists no part of a forgotten request",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const by = { member: order("1") }
        yield* accept(
          journal,
          Make.acceptance("r2", [Make.op()], { metadata: { order: "1" }, accountId: Make.alice })
        )
        yield* giveUp(journal, "r2", [0])
        yield* answer(journal, "r2")
        expect(yield* pages(by)).toEqual(["r2"])
        yield* journal.forget(Number.MAX_SAFE_INTEGER)
        expect(yield* pages(by)).toEqual([])
        expect(yield* pages({ wallet: Make.space(1).wallet })).toEqual([])
      })
    )
  })
}
