import * as Effect from "effect/Effect"
import type { JournalError } from "../../../application/ports/journal/Journal.js"
import type { LaneAccess, LaneWork } from "../../../application/ports/journal/Lanes.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type * as Store from "../Store.js"
import * as Claims from "./Claims.js"
import * as Records from "./Records.js"

interface LaneRow {
  readonly chain_id: string
  readonly signer: string | null
  readonly account_id: AccountId
}

interface RequestRow extends LaneRow {
  readonly request_id: string
  readonly lane_key: string | null
}

interface TransactionRow extends LaneRow {
  readonly key_client: string | null
  readonly key_version: string | null
  readonly key_asset: string | null
}

export const work = ({
  sql,
  transaction
}: Store.Store): Effect.Effect<ReadonlyArray<LaneWork>, JournalError> =>
  transaction(
    Effect.gen(function* () {
      const requests = yield* sql<RequestRow>`
        select request_id, account_id, chain_id, signer, lane_key from requests
        where state = 'open' order by request_no`
      const transactions = yield* sql<TransactionRow>`
        select distinct chain_id, signer, account_id, key_client, key_version, key_asset from transactions
        where state in ('signed', 'mined')`
      const lanes = new Map<string, LaneWork & { readonly requestIds: Array<string> }>()
      const laneOf = (row: LaneRow, key: LaneAccess["key"] | null) => {
        const name = `${row.chain_id} ${row.signer}`
        const known = lanes.get(name) ?? {
          lane: Claims.laneOf(row),
          accountId: row.account_id,
          key,
          requestIds: [],
          hasTransactions: false
        }
        lanes.set(name, known)
        return { name, known }
      }
      for (const row of transactions) {
        const { known, name } = laneOf(row, Records.keyOf(row))
        lanes.set(name, { ...known, hasTransactions: true })
      }
      for (const row of requests)
        laneOf(row, row.lane_key === null ? null : JSON.parse(row.lane_key)).known.requestIds.push(
          row.request_id
        )
      return [...lanes.values()]
    })
  )
