import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Schema from "effect/Schema"
import * as Address from "../../../domain/primitives/Address.js"
import * as Span from "../../observe/Span.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { ListedRequest, ListQuestion } from "../../ports/journal/Requests.js"
import type { Caller } from "../../request/Caller.js"
import { type Failure, invalid } from "../../request/Failure.js"
import * as Metadata from "../../request/Metadata.js"
import * as Page from "../Page.js"

const optional = { exact: true } as const

const Seconds = Schema.String.pipe(
  Schema.pattern(/^(?:0|[1-9][0-9]{0,11})$/, { message: () => "expected Unix seconds" })
)

export const Query = Schema.Struct({
  state: Schema.optionalWith(
    Schema.Literal("pending", "final").annotations({ description: "In this state only." }),
    optional
  ),
  since: Schema.optionalWith(
    Seconds.annotations({ description: "Accepted at this time or later, Unix seconds." }),
    optional
  ),
  until: Schema.optionalWith(
    Seconds.annotations({ description: "Accepted before this time, Unix seconds." }),
    optional
  ),
  wallet: Schema.optionalWith(
    Address.schema.annotations({
      description: "With an operation of this wallet. Not together with metadata."
    }),
    optional
  ),
  metadata: Schema.optionalWith(
    Schema.String.pipe(
      Schema.pattern(Metadata.memberShape, {
        message: () => "expected key:value, as in the header Request-Metadata"
      })
    ).annotations({
      description: "With this member of Request-Metadata, as key:value. Not together with wallet."
    }),
    optional
  ),
  ...Page.query("requests")
}).annotations({ identifier: "ListRequestsQuery" })
export type Query = typeof Query.Type

const Listed = Schema.Struct({
  requestId: Schema.String,
  endpoint: Schema.String.annotations({ description: "For example /execute." }),
  chainId: Schema.Int,
  state: Schema.Literal("pending", "final"),
  acceptedAt: Schema.Int.annotations({ description: "Unix seconds." }),
  metadata: Metadata.schema
}).annotations({ identifier: "ListedRequest" })

export const Response = Schema.Struct({
  requests: Schema.Array(Listed).annotations({ description: "The newest first." }),
  next: Page.next
}).annotations({ identifier: "RequestList" })
export type Response = typeof Response.Type

type Place = Pick<ListedRequest, "acceptedAt" | "number">

const cursorOf = ({ acceptedAt, number }: Place): string =>
  Encoding.encodeBase64Url(`${acceptedAt}.${number}`)

const placeOf = (cursor: string): Place | null => {
  const text = Either.getOrElse(Encoding.decodeBase64UrlString(cursor), () => "")
  const [, acceptedAt, number] = /^([0-9]{1,15})\.([0-9]{1,18})$/.exec(text) ?? []
  return acceptedAt === undefined || number === undefined
    ? null
    : { acceptedAt: Number(acceptedAt), number: BigInt(number) }
}

const millisOf = (seconds: string | undefined): number | undefined =>
  seconds === undefined ? undefined : Number(seconds) * 1_000

/** What is searched by; null: two things at once, of which both may be of most requests. */
const byOf = ({ metadata, wallet }: Query): ListQuestion["by"] | null => {
  if (wallet !== undefined) return metadata === undefined ? { _tag: "wallet", wallet } : null
  if (metadata === undefined) return undefined
  const at = metadata.indexOf(":")
  return { _tag: "metadata", key: metadata.slice(0, at), value: metadata.slice(at + 1) }
}

/** The account's accepted requests, the newest first, a page at a time. */
export const run = ({ principal }: Caller, query: Query): Effect.Effect<Response, Failure, RequestJournal> =>
  Effect.gen(function* () {
    const { cursor, since, state, until } = query
    const requestJournal = yield* RequestJournal
    const by = byOf(query)
    if (by === null)
      return yield* Effect.fail(
        invalid("invalid_request", [
          { path: "metadata", message: "expected wallet or metadata, not both; leave one of them out" }
        ])
      )
    const after = cursor === undefined ? undefined : placeOf(cursor)
    if (after === null) return yield* Effect.fail(Page.foreignCursor)
    const limit = Page.limitOf(query.limit)
    const found = yield* Effect.orDie(
      requestJournal.list(principal.accountId, {
        state,
        since: millisOf(since),
        until: millisOf(until),
        by,
        after,
        limit: limit + 1
      })
    )
    const { next, page } = Page.cut(found, limit, cursorOf)
    return {
      requests: page.map(({ acceptedAt, chainId, endpoint, metadata, requestId, state }) => ({
        requestId,
        endpoint,
        chainId: Number(chainId),
        state,
        acceptedAt: Math.floor(acceptedAt / 1_000),
        metadata
      })),
      next
    }
  }).pipe(Span.named("ListRequests"))
