import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type { LaneAccess, LaneWork } from "../../../application/ports/journal/Transactions.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import * as Compact from "../Compact.js"
import type * as Store from "../Store.js"
import * as Claims from "./tables/Claims.js"
import * as Records from "./tables/Records.js"

interface LaneRow {
  readonly chain_id: string
  readonly signer: string | null
  readonly account_id: AccountId
}

interface RequestRow extends LaneRow {
  readonly request_id: string
  readonly endpoint: string
  readonly elements: number
  readonly accepted_at: number | string
  readonly not_before: number | string | null
  readonly lane_key: Compact.Column | null
}

interface TransactionRow extends LaneRow {
  readonly key_client: string | null
  readonly key_version: string | null
  readonly key_asset: string | null
}

/** A row that can not be read is as one of which the key was not noted: it keeps no other from being worked on. */
const readKey: (text: string) => Option.Option<LaneAccess["key"]> = Option.liftThrowable(JSON.parse)

export const work = (store: Store.Store): Effect.Effect<ReadonlyArray<LaneWork>, JournalError> =>
  store.reading(
    Effect.gen(function* () {
      const { sql } = store
      yield* Claims.checkNewest(store)
      const now = yield* Clock.currentTimeMillis
      const columns = sql.literal(
        "request_no, request_id, endpoint, account_id, elements, chain_id, signer, lane_key, accepted_at, not_before"
      )
      // Of what waits for its time there may be very much: only what is due is read.
      const requests = yield* sql<RequestRow>`
        select ${columns} from requests where state = 'open' and due_at is null and held is null
        union all
        select ${columns} from requests where state = 'open' and due_at is not null and due_at <= ${now} and held is null
        order by 1`
      // Ops at somebody else's bundler are watched until they are at settled depth, whatever their requests are.
      const remote = yield* sql<LaneRow & Pick<RequestRow, "lane_key">>`
        select requests.account_id, requests.chain_id, requests.signer, requests.lane_key
        from handovers cross join ops cross join requests
        where ops.op_id = handovers.op_id and requests.request_id = ops.request_id and requests.state <> 'open'
        order by handovers.op_id`
      const transactions = yield* sql<TransactionRow>`
        select distinct chain_id, signer, account_id, key_client, key_version, key_asset from transactions
        where state in ('signed', 'mined')`
      const lanes = new Map<string, LaneWork & { readonly requests: Array<LaneWork["requests"][number]> }>()
      const laneOf = (row: LaneRow, key: LaneAccess["key"] | null) => {
        const name = `${row.chain_id} ${row.signer}`
        const known = lanes.get(name) ?? {
          lane: Claims.laneOf(row),
          accountId: row.account_id,
          key,
          requests: [],
          hasTransactions: false
        }
        lanes.set(name, known)
        return { name, known }
      }
      for (const row of transactions) {
        const { known, name } = laneOf(row, Records.keyOf(row))
        lanes.set(name, { ...known, hasTransactions: true })
      }
      const keyOf = ({ lane_key }: Pick<RequestRow, "lane_key">): LaneAccess["key"] | null =>
        lane_key === null ? null : Option.getOrNull(readKey(Compact.read(lane_key)))
      for (const row of requests)
        laneOf(row, keyOf(row)).known.requests.push({
          requestId: row.request_id,
          accountId: row.account_id,
          endpoint: row.endpoint,
          elements: row.elements,
          acceptedAt: Number(row.accepted_at),
          notBefore: row.not_before === null ? null : Number(row.not_before)
        })
      for (const row of remote) laneOf(row, keyOf(row))
      return [...lanes.values()]
    })
  )
