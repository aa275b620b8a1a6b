import type * as AddWatch from "../application/endpoints/subscriptions/AddWatch.js"
import type * as Watch from "../application/endpoints/subscriptions/Watch.js"
import type { CallOptions } from "./Transport.js"
import * as Transport from "./Transport.js"

/** The endpoints of watches. */
export interface Watches {
  /** Not retried when its answer is lost: each call makes a watch. */
  readonly add: (
    request: typeof AddWatch.Request.Encoded,
    options?: CallOptions
  ) => Promise<typeof AddWatch.Response.Encoded>
  readonly list: (
    query?: typeof Watch.ListQuery.Encoded,
    options?: CallOptions
  ) => Promise<typeof Watch.List.Encoded>
  readonly get: (watchId: string, options?: CallOptions) => Promise<typeof Watch.Shown.Encoded>
  readonly change: (
    watchId: string,
    request: typeof Watch.ChangeRequest.Encoded,
    options?: CallOptions
  ) => Promise<typeof Watch.Shown.Encoded>
  readonly remove: (watchId: string, options?: CallOptions) => Promise<typeof Watch.Removed.Encoded>
}

export const make = (send: (exchange: Transport.Exchange) => Promise<Transport.Answer>): Watches => {
  const ask = Transport.under(send, "/watches")
  const at = (watchId: string) => `/${encodeURIComponent(watchId)}`
  return {
    add: (request, more) => ask("POST", "", request, false, more),
    list: (query = {}, more) => ask("GET", Transport.queryOf({ ...query }), undefined, true, more),
    get: (watchId, more) => ask("GET", at(watchId), undefined, true, more),
    change: (watchId, request, more) => ask("PATCH", at(watchId), request, true, more),
    remove: (watchId, more) => ask("DELETE", at(watchId), undefined, false, more)
  }
}
