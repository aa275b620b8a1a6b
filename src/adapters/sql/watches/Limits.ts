import * as Effect from "effect/Effect"
import type { AccountId } from "../../../application/ports/Tenants.js"
import { type NewWatch, WatchesError } from "../../../application/ports/Watches.js"
import type * as Store from "../Store.js"

/** Limits of an account's watches. The caller holds the account's lock. */

/** Per account: watches, and watches without a value of an indexed field. */
const mostOfAccount = 10_000
const mostBroad = 100
/** Most of an account's own nodes in its watches: each is polled about once a second. */
const mostNodes = 16
/** Most characters of an account's long specs, which readers keep in memory, and the length of a long spec. */
const mostCharacters = 16_777_216
const longCharacters = 1_024

const tooMany = (message: string) => Effect.fail(new WatchesError({ reason: "tooMany", message }))

/** Keeps watches from filling the memory of the process that reads them. */
const checkSize = ({ sql }: Store.Store, accountId: AccountId, spec: string) =>
  Effect.gen(function* () {
    if (spec.length <= longCharacters) return
    const [row] = yield* sql<{ readonly known: number | string | null }>`
      select sum(length(spec)) as known from watches
      where account_id = ${accountId} and length(spec) > ${longCharacters}`
    if (Number(row?.known ?? 0) + spec.length > mostCharacters)
      yield* tooMany(
        `the subjects of an account's watches of more than ${longCharacters} characters have at most ${mostCharacters} characters in total; remove a watch first`
      )
  })

const countOf = ({ sql }: Store.Store, accountId: AccountId, isBroad: boolean) =>
  Effect.map(
    sql<{ readonly known: number | string }>`
      select count(*) as known from watches
      where account_id = ${accountId} ${sql.literal(isBroad ? "and is_broad = 1" : "")}`,
    ([row]) => Number(row?.known)
  )

export const check = (store: Store.Store, { accountId, isBroad }: NewWatch, spec: string) =>
  Effect.gen(function* () {
    if ((yield* countOf(store, accountId, false)) >= mostOfAccount)
      yield* tooMany(`an account has at most ${mostOfAccount} watches; remove one first`)
    if (isBroad && (yield* countOf(store, accountId, true)) >= mostBroad)
      yield* tooMany(
        `an account has at most ${mostBroad} watches without a value of an indexed field; remove one first`
      )
    yield* checkSize(store, accountId, spec)
  })

/** Fails when the account's watches already use the most nodes. */
export const checkNodes = ({ sql }: Store.Store, owner: string) =>
  Effect.gen(function* () {
    const own = yield* sql`
      select source_no from watch_sources where account_id = ${owner} and rpc is not null`
    if (own.length >= mostNodes)
      yield* tooMany(
        `an account's watches read at most ${mostNodes} of the account's nodes; remove the watches of a node first`
      )
  })
