import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Movement } from "../../domain/policy/Movements.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { ElementFailure } from "../failures/Elements.js"
import { type Unavailable, unavailable } from "../failures/Failure.js"
import { heldMillis } from "../payers/Payer.js"
import { Budgets, type BudgetsError } from "../ports/Budgets.js"
import type { Caller } from "../request/Caller.js"
import * as EventLoop from "../runtime/EventLoop.js"
import { DecisionHook } from "./DecisionHook.js"
import * as Judgement from "./Judgement.js"
import * as Limits from "./Limits.js"
import * as Rulebook from "./Rulebook.js"

/**
 * Judges signatures by the account's spending rules, asks the decision hooks about them, and books what permits in them
 * allow.
 *
 * Gotchas:
 *
 * - Budgets book a permit in full before it is signed: no chain shows that its signature is never used.
 * - A second signature of the same content allows nothing more, so it counts nothing.
 */

/** A request for signatures by keys of the account. `wallet`: that they sign for; null: for themselves. */
export interface Asker {
  readonly caller: Caller
  readonly endpoint: string
  readonly signers: ReadonlyArray<Address>
  readonly wallet: Address | null
  /** Chain of contents that do not name one; null: any. */
  readonly chainId: bigint | null
}

/** Content for a signature. */
export interface Content {
  readonly hash: Bytes32
  readonly movements: () => ReadonlyArray<Movement>
}

/** Books all entries, or none for want of room. `ended`: budgets in which the content is booked already. */
const booked = (
  budgets: Budgets["Service"],
  entries: ReadonlyArray<Limits.Entry>,
  ended: ReadonlySet<string> = new Set()
): Effect.Effect<ElementFailure | null, BudgetsError> =>
  Effect.gen(function* () {
    const left = entries.filter(({ name }) => !ended.has(name))
    const [lack] = yield* budgets.reserve([left])
    if (lack?.reason === "ended") return yield* booked(budgets, entries, new Set([...ended, lack.budget]))
    const failure = Limits.lackOf(left, lack)
    if (failure !== null) return failure
    for (const { chainId, id, wei } of left) yield* budgets.settle(chainId, id, wei)
    return null
  })

/** A content as the policies of its subjects judge it, and its chain. */
export const elementOf = (
  book: Rulebook.Book,
  { caller, chainId, signers, wallet }: Asker,
  { movements: read }: Pick<Content, "movements">
) => {
  const movements = read()
  const element: Judgement.Element = {
    bound: Judgement.boundOf(book, caller, signers, wallet),
    wallet,
    spending: { movements, calls: 0, fees: 0n }
  }
  const named = movements.find(({ document }) => document !== undefined)?.document?.chainId
  return { chainId: named ?? chainId, element }
}

/** Judges a content by the policies in force, and books its permits. */
const ruled = (book: Rulebook.Book, asker: Asker) =>
  Effect.map(Budgets, (budgets) => {
    const { caller, endpoint, signers, wallet } = asker
    const { principal, requestId } = caller
    const { accountId } = principal
    return {
      refusalOf: (content: Content) =>
        Effect.gen(function* () {
          const at = yield* Clock.currentTimeMillis
          const { chainId, element } = elementOf(book, asker, content)
          for (const each of element.bound) {
            yield* EventLoop.breathe
            const place = { accountId, chainId, endpoint, at }
            // Contents count together in the budget of their request only, where the same content counts once.
            const found = Judgement.ofSpending(book, place, each, element, new Map())
            if (found === null) continue
            const failure = Judgement.refusalOf(each, found)
            if (each.policy.mode === "enforce") return yield* Limits.countRefusal(failure)
            yield* Limits.logRefusal({ requestId }, failure)
          }
          return null
        }),
      /** A refusal: a limit lacks room. */
      book: (content: Content) =>
        Effect.gen(function* () {
          const at = yield* Clock.currentTimeMillis
          const { chainId, element } = elementOf(book, asker, content)
          const id = `sign/${wallet ?? signers.join()}/${content.hash}/amounts`
          const context = { accountId, chainId }
          // Each budget ends for itself: a permit that one key had signed counts in the limits of another key.
          const entries = Limits.entriesOf({ context, requestId }, element, id, at + heldMillis).map(
            (entry) => ({ ...entry, id: `${entry.id}/${entry.name}` })
          )
          const failure = yield* Effect.mapError(booked(budgets, entries), () => unavailable())
          if (failure !== null) return yield* Limits.countRefusal(failure)
          yield* Limits.logObserved(budgets, [{ entries, requestId }], at)
          return null
        })
    }
  })

/**
 * The refusals of a request's contents by rules, decision hooks and limits, by the contents' indices. The others may be
 * signed, and their permits are booked. `whole`: after a refusal no hook decides, and nothing more is booked.
 */
export const judge = (
  asker: Asker,
  contents: ReadonlyMap<number, Content>,
  how: "each" | "whole"
): Effect.Effect<
  ReadonlyMap<number, ElementFailure>,
  Unavailable,
  Budgets | DecisionHook | Rulebook.Rulebook
> =>
  Effect.gen(function* () {
    const { caller, chainId, endpoint, signers, wallet } = asker
    const { principal, requestId } = caller
    const { decideSignatures } = yield* DecisionHook
    const book = yield* (yield* Rulebook.Rulebook).of(principal.accountId)
    const rules = book === null ? null : yield* ruled(book, asker)
    const refused = new Map<number, ElementFailure>()
    const isLeft = (index: number) => (how === "each" ? !refused.has(index) : refused.size === 0)
    const refuse = (each: (content: Content) => Effect.Effect<ElementFailure | null, Unavailable>) =>
      Effect.gen(function* () {
        for (const [index, content] of contents) {
          const failure = isLeft(index) ? yield* each(content) : null
          if (failure !== null) refused.set(index, failure)
        }
      })
    if (rules !== null) yield* refuse(rules.refusalOf)
    const signedFor = wallet ?? signers[0] ?? null
    const elements = () =>
      [...contents].flatMap(([index, { movements }]) =>
        isLeft(index) ? [{ index, wallet: signedFor, movements: movements() }] : []
      )
    const decided = yield* decideSignatures({ caller, chainId, elements, endpoint, requestId })
    for (const [index, failure] of decided) refused.set(index, failure)
    if (rules !== null) yield* refuse(rules.book)
    return refused
  })
