import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import type * as Policy from "../../domain/policy/Policy.js"
import { everyWallet, type Subject } from "../../domain/policy/Subject.js"
import type { Address } from "../../domain/primitives/Address.js"
import { type Unavailable, unavailable } from "../failures/Failure.js"
import * as Troubles from "../observe/Troubles.js"
import type { Budget } from "../ports/Budgets.js"
import { Policies, PoliciesError, type Layer as PolicyLayer, type PolicyVersion } from "../ports/Policies.js"
import type { AccountId } from "../ports/Tenants.js"

/** A policy in force. */
export interface Bound extends Pick<PolicyVersion, "countedAs" | "layer" | "subject" | "version"> {
  readonly policy: Policy.Policy
}

/** An account's policies in force. */
export interface Book {
  /** Of each subject, the operator's first. */
  readonly bound: ReadonlyMap<Subject, ReadonlyArray<Bound>>
  /** Each layer names its own lists only. */
  readonly lists: Readonly<Record<PolicyLayer, Policy.Lists>>
}

/** The policies of all accounts, as this process knows them. */
export class Rulebook extends Context.Service<
  Rulebook,
  {
    /**
     * The account's policies, less than a second old; null: it has none. Fails while the store does not answer or, for
     * that account only, holds what this program cannot read.
     */
    readonly of: (accountId: AccountId) => Effect.Effect<Book | null, Unavailable>
  }
>()("castellan/Rulebook") {}

/** Policies of a wallet: its own in each layer, otherwise the `wallet:*` of the layer. */
export const ofWallet = ({ bound }: Book, wallet: Address): ReadonlyArray<Bound> => {
  const own = bound.get(`wallet:${wallet}`) ?? []
  const others = bound.get(everyWallet) ?? []
  return [...own, ...others.filter(({ layer }) => own.every((each) => each.layer !== layer))]
}

/**
 * The budget that counts a limit over a window. `wallet`: for the subject `wallet:*`, which has one budget per wallet.
 * It keeps its name across versions and over key rotation.
 */
export const potOf = (
  accountId: AccountId,
  { countedAs, layer, subject }: Pick<Bound, "countedAs" | "layer" | "subject">,
  { chain, name }: Pick<Policy.Limit, "chain" | "name">,
  wallet: Address | null
): Budget => {
  const each = subject === everyWallet && wallet !== null ? ` ${wallet}` : ""
  return { accountId, chainId: BigInt(chain), name: `policy ${layer} ${countedAs}${each} ${name}` }
}

/** Age up to which what is known decides, milliseconds. */
const freshMillis = 500

/** Time limit of the store's answer, milliseconds. */
const patienceMillis = 5_000

/** The policies of an account's versions. */
export const bookOf = (versions: ReadonlyArray<PolicyVersion>): Book => {
  const bound = new Map<Subject, ReadonlyArray<Bound>>()
  const lists = { operator: new Map<string, Set<Address>>(), account: new Map<string, Set<Address>>() }
  for (const { content, countedAs, layer, subject, version } of versions) {
    if (content === null) continue
    if ("addresses" in content) lists[layer].set(subject.slice("list:".length), new Set(content.addresses))
    else {
      const made = { countedAs, layer, subject, version, policy: content }
      const others = bound.get(subject) ?? []
      bound.set(subject, layer === "operator" ? [made, ...others] : [...others, made])
    }
  }
  return { bound, lists }
}

/**
 * Asks the store which accounts have new versions, on a use after half a second, and reads those accounts' policies when
 * they are next used.
 */
export const make = Effect.gen(function* () {
  const { changes, current } = yield* Policies
  /** Accounts that ever had policies; undefined: to be read. */
  const books = new Map<AccountId, Book | null | undefined>()
  let known = { at: Number.NEGATIVE_INFINITY, latest: 0 }
  const turn = yield* Semaphore.make(1)

  const isFresh = (now: number) => now >= known.at && now - known.at < freshMillis

  const renew = turn.withPermits(1)(
    Effect.gen(function* () {
      const at = yield* Clock.currentTimeMillis
      if (isFresh(at)) return
      const { accounts, latest } = yield* changes(known.latest)
      for (const account of accounts) books.set(account, undefined)
      known = { at, latest }
    })
  )

  const read = (accountId: AccountId) =>
    Effect.suspend(() => {
      const { latest } = known
      return Effect.map(current(accountId), (versions) => {
        const made = bookOf(versions)
        const book = made.bound.size === 0 ? null : made
        // A change that was seen meanwhile is read at the next use.
        if (latest === known.latest) books.set(accountId, book)
        return book
      })
    })

  const answered = <A>(effect: Effect.Effect<A, PoliciesError>, place: string) => {
    const trouble: Troubles.Trouble = { what: "spending rules unavailable", place }
    return Effect.flatMap(Troubles.Shared, (troubles) =>
      effect.pipe(
        Effect.timeoutOrElse({
          duration: patienceMillis,
          orElse: () =>
            new PoliciesError({ reason: "unavailable", message: "the store of policies does not answer" })
        }),
        Effect.matchEffect({
          onFailure: (error) =>
            Effect.andThen(troubles.failed(trouble, Cause.fail(error)), Effect.fail(unavailable())),
          onSuccess: (value) => Effect.as(troubles.passed(trouble), value)
        })
      )
    )
  }

  const find = (accountId: AccountId): Effect.Effect<Book | null, Unavailable> => {
    if (!books.has(accountId)) return Effect.succeed(null)
    const book = books.get(accountId)
    return book === undefined ? answered(read(accountId), accountId) : Effect.succeed(book)
  }

  return {
    of: (accountId: AccountId): Effect.Effect<Book | null, Unavailable> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        isFresh(now)
          ? find(accountId)
          : Effect.andThen(
              answered(renew, ""),
              Effect.suspend(() => find(accountId))
            )
      )
  }
})

export const layer: Layer.Layer<Rulebook, never, Policies> = Layer.effect(Rulebook, make)
