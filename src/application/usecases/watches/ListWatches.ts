import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Span from "../../observe/Span.js"
import { Watches } from "../../ports/Watches.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as Page from "../Page.js"
import * as Watch from "./Watch.js"

export const Query = Schema.Struct(Page.query("watches")).annotate({ identifier: "ListWatchesQuery" })
export type Query = typeof Query.Type

export const Response = Schema.Struct({
  watches: Schema.Array(Watch.Shown).annotate({ description: "In the order of their making." }),
  next: Page.next
}).annotate({ identifier: "WatchList" })
export type Response = typeof Response.Type

const placeOf = (cursor: string): number | null => {
  const text = Result.getOrElse(Base64Url.decodeString(cursor), () => "")
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : null
}

/** The account's watches, a page at a time. */
export const run = (
  { principal }: Caller,
  { cursor, limit }: Query
): Effect.Effect<Response, Failure, Watches> =>
  Effect.gen(function* () {
    const after = cursor === undefined ? undefined : placeOf(cursor)
    if (after === null) return yield* Effect.fail(Page.foreignCursor)
    const most = Page.limitOf(limit)
    const store = yield* Watches
    const found = yield* Effect.orDie(store.list(principal.accountId, { after, limit: most + 1 }))
    const { next, page } = Page.cut(found, most, ({ number }) => Base64Url.encode(String(number)))
    return { watches: page.map(Watch.shown), next }
  }).pipe(Span.named("ListWatches"))
