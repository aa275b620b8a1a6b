import * as Context from "effect/Context"
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

/** A request that is worked on, or will be. */
export interface Entry {
  readonly requestId: string
  readonly accountId: AccountId
  readonly elements: number
}

/**
 * Counts the requests that have no final answer yet, of all processes of the journal: those of this one exactly, those of
 * the others as the sweep read them last.
 */
export interface OpenRequests {
  /**
   * Why nothing more is begun of the account now; null: there is room. There is while less is open than the bound, however
   * many elements come: a large request is not kept waiting for a moment without others.
   */
  readonly refusal: (accountId: AccountId) => TooManyRequests | Unavailable | null
  /** The request is begun in this process. */
  readonly begin: (entry: Entry) => void
  /** This process does not work on it any more; `isOpen`: another one does, or will. */
  readonly end: (requestId: string, isOpen: boolean) => void
  /** The request has its final answer. */
  readonly close: (requestId: string) => void
  /** What the journal has open; what is begun in this process counts as well. */
  readonly read: (open: ReadonlyArray<Entry>) => void
}

export const OpenRequests: Context.Key<OpenRequests, OpenRequests> = Context.Service("castellan/OpenRequests")

interface Count {
  requests: number
  elements: number
}

/** When to look again, seconds: accepted work takes blocks. */
const retryAfterSeconds = 5

export const make = (bounds: Bounds): OpenRequests => {
  let open = new Map<string, Entry>()
  let ofAccount = new Map<AccountId, Count>()
  let whole: Count = { requests: 0, elements: 0 }
  const own = new Map<string, Entry>()

  const add = (entry: Entry): void => {
    if (open.has(entry.requestId)) return
    open.set(entry.requestId, entry)
    const count = ofAccount.get(entry.accountId) ?? { requests: 0, elements: 0 }
    ofAccount.set(entry.accountId, count)
    for (const each of [count, whole]) {
      each.requests += 1
      each.elements += entry.elements
    }
  }
  const remove = (requestId: string): void => {
    const entry = open.get(requestId)
    const count = entry === undefined ? undefined : ofAccount.get(entry.accountId)
    if (entry === undefined || count === undefined) return
    open.delete(requestId)
    for (const each of [count, whole]) {
      each.requests -= 1
      each.elements -= entry.elements
    }
    if (count.requests === 0) ofAccount.delete(entry.accountId)
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
      own.set(entry.requestId, entry)
      add(entry)
    },
    end: (requestId, isOpen) => {
      own.delete(requestId)
      if (!isOpen) remove(requestId)
    },
    close: (requestId) => {
      own.delete(requestId)
      remove(requestId)
    },
    read: (entries) => {
      open = new Map()
      ofAccount = new Map()
      whole = { requests: 0, elements: 0 }
      for (const entry of entries) add(entry)
      for (const entry of own.values()) add(entry)
    }
  }
}
