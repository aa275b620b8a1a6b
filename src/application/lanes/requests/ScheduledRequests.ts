import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { JournalError } from "../../ports/journal/JournalError.js"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { AccountId } from "../../ports/Tenants.js"
import { catalogue } from "../../request/Catalogue.js"
import { TooManyRequests, Unavailable } from "../../request/Failure.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import type { Bounds, Entry } from "./OpenRequests.js"

/** How much accepted work may wait for its windows to begin. */
export const defaults: Bounds = {
  requests: 100_000,
  elements: 500_000,
  requestsPerAccount: 10_000,
  elementsPerAccount: 50_000
}

/** The operator's bounds. The defaults unless something else is provided. */
export const ScheduledRequestBounds = Context.Reference<Bounds>("castellan/ScheduledRequestBounds", {
  defaultValue: (): Bounds => defaults
})

/**
 * Bounds the accepted requests that wait for a time: they are no work yet (see `OpenRequests`), and a caller could have
 * the journal keep any number of them.
 */
export interface ScheduledRequests {
  /** One more of the account is about to wait. There is room while less waits than the bound, however large it is. */
  readonly enter: (
    entry: Omit<Entry, "requestId">
  ) => Effect.Effect<void, JournalError | TooManyRequests | Unavailable>
}

export const ScheduledRequests: Context.Key<ScheduledRequests, ScheduledRequests> = Context.Service(
  "castellan/ScheduledRequests"
)

/** What the journal counted stands for so long, and what is let in here beside it, milliseconds. */
const countedMillis = 1_000
/** When to look again, seconds: windows begin by the clock. */
const retryAfterSeconds = 60

const detail = (message: string) => [{ path: "", message }]

export const make = (
  bounds: Bounds,
  { waiting }: Pick<RequestJournal["Service"], "waiting">
): ScheduledRequests => {
  let counted = new Map<AccountId, { requests: number; elements: number }>()
  let countedAt: number | null = null

  const count = Effect.gen(function* () {
    const now = yield* MonotonicTime.millis
    if (countedAt !== null && now - countedAt < countedMillis) return
    const found = yield* waiting
    counted = new Map(found.map(({ accountId, elements, requests }) => [accountId, { elements, requests }]))
    countedAt = now
  })
  return {
    enter: ({ accountId, elements }) =>
      Effect.flatMap(count, () =>
        Effect.suspend((): Effect.Effect<void, TooManyRequests | Unavailable> => {
          const whole = [...counted.values()].reduce(
            (sum, each) => ({
              requests: sum.requests + each.requests,
              elements: sum.elements + each.elements
            }),
            { requests: 0, elements: 0 }
          )
          if (whole.requests >= bounds.requests || whole.elements >= bounds.elements)
            return Effect.fail(
              new Unavailable({
                code: "overloaded",
                message: catalogue.overloaded.text,
                details: detail("too many accepted requests wait for their windows to begin"),
                retryAfterSeconds
              })
            )
          const own = counted.get(accountId) ?? { requests: 0, elements: 0 }
          if (own.requests >= bounds.requestsPerAccount || own.elements >= bounds.elementsPerAccount)
            return Effect.fail(
              new TooManyRequests({
                code: "rate_limited",
                message: catalogue.rate_limited.text,
                details: detail(
                  `the account has ${own.requests} accepted requests with ${own.elements} elements whose windows have not begun; ` +
                    `more are accepted below ${bounds.requestsPerAccount} requests and ${bounds.elementsPerAccount} elements`
                ),
                retryAfterSeconds
              })
            )
          counted.set(accountId, {
            requests: own.requests + 1,
            elements: own.elements + elements
          })
          return Effect.void
        })
      )
  }
}
