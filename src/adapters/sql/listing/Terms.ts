import * as Effect from "effect/Effect"
import type { Metadata } from "../../../application/ports/journal/Requests.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Store from "../Store.js"

/** Search terms of a request, in addition to account and time. Terms of wallets and metadata never collide. */
export const ofWallet = (wallet: Address): string => `wallet ${wallet}`
/** No key has a colon in it. */
export const ofMember = (key: string, value: string): string => `metadata ${key}:${value}`

/** The column of a request's metadata. */
export const write = (metadata: Metadata): string | null =>
  Object.keys(metadata).length === 0 ? null : JSON.stringify(metadata)

export const read = (column: string | null): Metadata => (column === null ? {} : JSON.parse(column))

export const ofMetadata = (metadata: Metadata): ReadonlyArray<string> =>
  Object.entries(metadata).map(([key, value]) => ofMember(key, value))

/** Position of a request in its account's list. */
export interface Place {
  readonly account_id: AccountId
  readonly accepted_at: number | string
  readonly request_no: number | string
}

/** Deletes the terms of requests. Call it before their ops are deleted. */
export const remove = ({ sql }: Store.Store, requestIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const rows = yield* sql<Place & { readonly request_id: string; readonly metadata: string | null }>`
      select account_id, accepted_at, request_no, request_id, metadata from requests
      where ${sql.in("request_id", requestIds)}`
    for (const { accepted_at, account_id, metadata, request_id, request_no } of rows) {
      const wallets = yield* sql<{ readonly wallet: Address }>`
        select distinct wallet from ops where request_id = ${request_id}`
      const terms = [...wallets.map(({ wallet }) => ofWallet(wallet)), ...ofMetadata(read(metadata))]
      for (const chunk of Store.chunks(terms))
        yield* sql`
          delete from request_terms
          where account_id = ${account_id} and ${sql.in("term", chunk)}
            and accepted_at = ${accepted_at} and request_no = ${request_no}`
    }
  })
