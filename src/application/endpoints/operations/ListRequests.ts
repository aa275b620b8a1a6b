import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Address from "../../../domain/primitives/Address.js"
import type { Failure } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { ListPlace, ListQuestion } from "../../ports/journal/Requests.js"
import type { Caller } from "../../request/Caller.js"
import { optional, shown } from "../../request/Fields.js"
import * as Page from "../Page.js"
import * as Metadata from "./Metadata.js"

const Seconds = Schema.String.check(
  Schema.isPattern(/^(?:0|[1-9][0-9]{0,11})$/u, { message: "expected Unix seconds" })
)

export const Query = Schema.Struct({
  state: optional(
    Schema.Literals(["pending", "final"]).annotate({ description: "Only requests in this state." })
  ),
  since: optional(Seconds.annotate({ description: "Accepted at this time or later, Unix seconds." })),
  until: optional(Seconds.annotate({ description: "Accepted before this time, Unix seconds." })),
  wallet: optional(
    shown(Address.schema, {
      description: "Only requests with an operation of this wallet."
    })
  ),
  metadata: optional(
    Schema.String.check(
      Schema.isPattern(Metadata.memberShape, {
        message: "expected key:value, as in the header Request-Metadata"
      })
    ).annotate({
      description: "Only requests with this member of Request-Metadata, as key:value."
    })
  ),
  ...Page.query("requests")
}).annotate({ identifier: "ListRequestsQuery" })
export type Query = typeof Query.Type

const Listed = Schema.Struct({
  requestId: Schema.String,
  endpoint: Schema.String.annotate({ description: "For example /execute." }),
  chainId: Schema.Int,
  state: Schema.Literals(["pending", "final"]),
  acceptedAt: Schema.Int.annotate({ description: "Unix seconds." }),
  metadata: Metadata.schema
}).annotate({ identifier: "ListedRequest" })

export const Response = Schema.Struct({
  requests: Schema.Array(Listed).annotate({ description: "The newest first." }),
  next: Page.next
}).annotate({ identifier: "RequestList" })
export type Response = typeof Response.Type

const cursorOf = ({ acceptedAt, number }: ListPlace): string => Base64Url.encode(`${acceptedAt}.${number}`)

const placeOf = (cursor: string): ListPlace | null => {
  const text = Result.getOrElse(Base64Url.decodeString(cursor), () => "")
  const [, acceptedAt, number] = /^([0-9]{1,15})\.([0-9]{1,18})$/.exec(text) ?? []
  return acceptedAt === undefined || number === undefined
    ? null
    : { acceptedAt: Number(acceptedAt), number: BigInt(number) }
}

const millisOf = (seconds: string | undefined): number | undefined =>
  seconds === undefined ? undefined : Number(seconds) * 1_000

const memberOf = ({ metadata }: Query): ListQuestion["member"] => {
  if (metadata === undefined) return undefined
  const at = metadata.indexOf(":")
  return { key: metadata.slice(0, at), value: metadata.slice(at + 1) }
}

/** The account's accepted requests, newest first, a page at a time. */
export const run = ({ principal }: Caller, query: Query): Effect.Effect<Response, Failure, RequestJournal> =>
  Effect.gen(function* () {
    const { cursor, since, state, until, wallet } = query
    const requestJournal = yield* RequestJournal
    const after = cursor === undefined ? undefined : placeOf(cursor)
    if (after === null) return yield* Effect.fail(Page.foreignCursor)
    const limit = Page.limitOf(query.limit)
    const found = yield* Effect.orDie(
      requestJournal.list(principal.accountId, {
        state,
        since: millisOf(since),
        until: millisOf(until),
        wallet,
        member: memberOf(query),
        after,
        limit: limit + 1
      })
    )
    const { next, page } = Page.cut(found.requests, limit, cursorOf)
    const searched = found.searched === null ? null : cursorOf(found.searched)
    return {
      requests: page.map(({ acceptedAt, chainId, endpoint, metadata, requestId, state }) => ({
        requestId,
        endpoint,
        chainId: Number(chainId),
        state,
        acceptedAt: Math.floor(acceptedAt / 1_000),
        metadata
      })),
      next: next ?? searched
    }
  }).pipe(Span.named("ListRequests"))
