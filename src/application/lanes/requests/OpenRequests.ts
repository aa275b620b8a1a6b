import * as Context from "effect/Context"
import type { Tally } from "../../ports/journal/Records.js"
import type { AccountId } from "../../ports/Tenants.js"
import { catalogue } from "../../request/Catalogue.js"
import { TooManyRequests, Unavailable } from "../../request/Failure.js"

/** How much accepted work may wait for its final answer; an element is an operation or an account of a request. */
export interface Bounds {
  readonly requests: number
  readonly elements: number
  readonly requestsPerAccount: number
  readonly elementsPerAccount: number
}

export const defaults: Bounds = {
  requests: 10_000,
  elements: 50_000,
  requestsPerAccount: 2_000,
  elementsPerAccount: 20_000
}

/** The operator's bounds. The defaults unless something else is provided. */
export const OpenRequestBounds = Context.Reference<Bounds>("castellan/OpenRequestBounds", {
  defaultValue: (): Bounds => defaults
})

/** A request that is begun here. */
export interface Entry {
  readonly requestId: string
  readonly accountId: AccountId
  readonly elements: number
}

/** Counts the requests that have no final answer yet: those of this process as they come and go, all others as they were read last. */
export interface OpenRequests {
  /**
   * Why nothing more is begun of the account now; null: there is room. There is while less is open than the bound, however
   * many elements come: a large request is not kept waiting for a moment without others.
   */
  readonly refusal: (accountId: AccountId) => TooManyRequests | Unavailable | null
  /** The request is begun in this process. */
  readonly begin: (entry: Entry) => void
  /** It is accepted, or (`isOpen` false) it is not and will not be. */
  readonly end: (requestId: string, isOpen: boolean) => void
  /** The request has its final answer. */
  readonly close: (requestId: string) => void
  /** How many are accepted and have no answer, as far as is known here. */
  readonly accepted: () => number
  /** What the journal has open; what is begun here and not accepted counts as well. */
  readonly read: (open: ReadonlyArray<Tally>) => void
}

export const OpenRequests: Context.Key<OpenRequests, OpenRequests> = Context.Service("castellan/OpenRequests")

interface Count {
  requests: number
  elements: number
}

/** When to look again, seconds: accepted work takes blocks. */
const retryAfterSeconds = 5

export const make = (bounds: Bounds): OpenRequests => {
  let ofAccount = new Map<AccountId, Count>()
  let whole: Count = { requests: 0, elements: 0 }
  const own = new Map<string, Entry & { isAccepted: boolean }>()

  const add = ({ accountId, elements, requests }: Tally): void => {
    const count = ofAccount.get(accountId) ?? { requests: 0, elements: 0 }
    ofAccount.set(accountId, count)
    for (const each of [count, whole]) {
      each.requests += requests
      each.elements += elements
    }
  }
  const close = (requestId: string): void => {
    const entry = own.get(requestId)
    if (entry === undefined) return
    own.delete(requestId)
    add({ accountId: entry.accountId, requests: -1, elements: -entry.elements })
  }
  return {
    refusal: (accountId) => {
      if (whole.requests >= bounds.requests || whole.elements >= bounds.elements)
        return new Unavailable({
          code: "overloaded",
          message: catalogue.overloaded.text,
          details: [{ path: "", message: "too much accepted work waits for its outcome" }],
          retryAfterSeconds
        })
      const { elements, requests } = ofAccount.get(accountId) ?? { requests: 0, elements: 0 }
      if (requests < bounds.requestsPerAccount && elements < bounds.elementsPerAccount) return null
      return new TooManyRequests({
        code: "rate_limited",
        message: catalogue.rate_limited.text,
        details: [
          {
            path: "",
            message:
              `the account has ${requests} accepted requests with ${elements} elements that have no final answer yet; ` +
              `more are accepted below ${bounds.requestsPerAccount} requests and ${bounds.elementsPerAccount} elements`
          }
        ],
        retryAfterSeconds
      })
    },
    begin: (entry) => {
      own.set(entry.requestId, { ...entry, isAccepted: false })
      add({ ...entry, requests: 1 })
    },
    end: (requestId, isOpen) => {
      const entry = own.get(requestId)
      if (entry !== undefined && isOpen) entry.isAccepted = true
      else close(requestId)
    },
    close,
    accepted: () => whole.requests - [...own.values()].filter(({ isAccepted }) => !isAccepted).length,
    read: (open) => {
      ofAccount = new Map()
      whole = { requests: 0, elements: 0 }
      for (const tally of open) add(tally)
      for (const entry of own.values()) if (!entry.isAccepted) add({ ...entry, requests: 1 })
    }
  }
}
