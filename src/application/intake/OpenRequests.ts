import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { catalogue } from "../failures/Catalogue.js"
import { type Failure, TooManyRequests, Unavailable } from "../failures/Failure.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import type { Tally } from "../ports/journal/Records.js"
import type { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { AccountId } from "../ports/Tenants.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"

/** Bounds on accepted work: requests in progress, and requests that wait for their windows. */

export interface Bounds {
  readonly requests: number
  readonly elements: number
  readonly requestsPerAccount: number
  readonly elementsPerAccount: number
}

export const defaults = {
  open: {
    requests: 10_000,
    elements: 50_000,
    requestsPerAccount: 2_000,
    elementsPerAccount: 20_000
  },
  scheduled: {
    requests: 100_000,
    elements: 500_000,
    requestsPerAccount: 10_000,
    elementsPerAccount: 50_000
  }
} satisfies Record<string, Bounds>

/** Operator's bounds on requests without a final answer. */
export const OpenRequestBounds = Context.Reference<Bounds>("castellan/OpenRequestBounds", {
  defaultValue: (): Bounds => defaults.open
})

/** Operator's bounds on requests that wait for their windows. */
export const ScheduledRequestBounds = Context.Reference<Bounds>("castellan/ScheduledRequestBounds", {
  defaultValue: (): Bounds => defaults.scheduled
})

interface Count {
  requests: number
  elements: number
}

const counts = (tallies: ReadonlyArray<Tally>) => {
  const ofAccount = new Map<AccountId, Count>()
  const whole: Count = { requests: 0, elements: 0 }
  const add = ({ accountId, elements, requests }: Tally): void => {
    const count = ofAccount.get(accountId) ?? { requests: 0, elements: 0 }
    ofAccount.set(accountId, count)
    for (const each of [count, whole]) {
      each.requests += requests
      each.elements += elements
    }
  }
  for (const tally of tallies) add(tally)
  return {
    add,
    whole,
    of: (accountId: AccountId): Count => ofAccount.get(accountId) ?? { requests: 0, elements: 0 }
  }
}

/**
 * Null if the counts are below the bounds. New elements do not count, so a large request never waits for an empty service.
 * `all`, `own`: reasons of the two refusals.
 */
const refusalOf = (
  bounds: Bounds,
  { of, whole }: ReturnType<typeof counts>,
  accountId: AccountId,
  limits: { readonly all: string; readonly own: string; readonly retryAfterSeconds: number }
): TooManyRequests | Unavailable | null => {
  const { retryAfterSeconds } = limits
  if (whole.requests >= bounds.requests || whole.elements >= bounds.elements)
    return new Unavailable({
      code: "overloaded",
      message: catalogue.overloaded.text,
      details: [{ path: "", message: limits.all }],
      retryAfterSeconds
    })
  const { elements, requests } = of(accountId)
  if (requests < bounds.requestsPerAccount && elements < bounds.elementsPerAccount) return null
  const message =
    `the account has ${requests} accepted requests with ${elements} elements ${limits.own}; ` +
    `more are accepted below ${bounds.requestsPerAccount} requests and ${bounds.elementsPerAccount} elements`
  return new TooManyRequests({
    code: "rate_limited",
    message: catalogue.rate_limited.text,
    details: [{ path: "", message }],
    retryAfterSeconds
  })
}

export interface Entry {
  readonly requestId: string
  readonly accountId: AccountId
  readonly elements: number
}

/** Counts requests without a final answer: this process's as they change, others as last read from the journal. */
export interface OpenRequests {
  /** Refusal of the account's next request; null: there is room. */
  readonly refusal: (accountId: AccountId) => TooManyRequests | Unavailable | null
  readonly begin: (entry: Entry) => void
  /** `isOpen`: whether the request was accepted; otherwise it no longer counts. */
  readonly end: (requestId: string, isOpen: boolean) => void
  readonly close: (requestId: string) => void
  /** Known accepted requests without a final answer. */
  readonly accepted: () => number
  /** Replaces the counts by the journal's; requests begun here and not yet accepted stay counted. */
  readonly read: (open: ReadonlyArray<Tally>) => void
}

export const make = (bounds: Bounds): OpenRequests => {
  let all = counts([])
  const own = new Map<string, Entry & { isAccepted: boolean }>()

  const close = (requestId: string): void => {
    const entry = own.get(requestId)
    if (entry === undefined) return
    own.delete(requestId)
    all.add({ accountId: entry.accountId, requests: -1, elements: -entry.elements })
  }
  return {
    refusal: (accountId) =>
      refusalOf(bounds, all, accountId, {
        all: "too much accepted work waits for its outcome",
        own: "that have no final answer yet",
        // Accepted work takes blocks.
        retryAfterSeconds: 5
      }),
    begin: (entry) => {
      own.set(entry.requestId, { ...entry, isAccepted: false })
      all.add({ ...entry, requests: 1 })
    },
    end: (requestId, isOpen) => {
      const entry = own.get(requestId)
      if (entry !== undefined && isOpen) entry.isAccepted = true
      else close(requestId)
    },
    close,
    accepted: () => all.whole.requests - [...own.values()].filter(({ isAccepted }) => !isAccepted).length,
    read: (open) => {
      all = counts(open)
      for (const entry of own.values()) if (!entry.isAccepted) all.add({ ...entry, requests: 1 })
    }
  }
}

/** Lifetime of the journal's count, milliseconds; requests admitted here are added to it. */
const countedMillis = 1_000

/** Admits one more request that waits for its windows if there is room. Without a bound a caller could fill the journal. */
export const admitScheduled = (bounds: Bounds, { waiting }: Pick<RequestJournal["Service"], "waiting">) => {
  let all = counts([])
  let countedAt: number | null = null
  return ({
    accountId,
    elements
  }: Omit<Entry, "requestId">): Effect.Effect<void, JournalError | TooManyRequests | Unavailable> =>
    Effect.gen(function* () {
      const now = yield* MonotonicTime.millis
      if (countedAt === null || now - countedAt >= countedMillis) {
        all = counts(yield* waiting)
        countedAt = now
      }
      const refusal = refusalOf(bounds, all, accountId, {
        all: "too many accepted requests wait for their windows to begin",
        own: "whose windows have not begun",
        // Windows begin by the clock.
        retryAfterSeconds: 60
      })
      if (refusal !== null) return yield* refusal
      all.add({ accountId, requests: 1, elements })
    })
}

/**
 * Admits further work of the account. A repeat of an accepted request always has room, since its answer costs no work. If the
 * journal cannot be read, the refusal stands and may be retried.
 */
export type Room = (
  accountId: AccountId,
  endpoint: string,
  key: string | null
) => Effect.Effect<void, Failure>

/** `isPreparing`: whether a request with the key is in preparation. */
export const room =
  (
    { refusal }: OpenRequests,
    { requestOf }: Pick<RequestJournal["Service"], "requestOf">,
    isPreparing: (accountId: AccountId, endpoint: string, key: string) => boolean
  ): Room =>
  (accountId, endpoint, key) =>
    Effect.suspend((): Effect.Effect<void, Failure> => {
      const refused = refusal(accountId)
      if (refused === null) return Effect.void
      if (key === null) return refused
      if (isPreparing(accountId, endpoint, key)) return Effect.void
      return requestOf(accountId, endpoint, key).pipe(
        Effect.orElseSucceed(() => null),
        Effect.flatMap((found): Effect.Effect<void, Failure> => (found === null ? refused : Effect.void))
      )
    })
