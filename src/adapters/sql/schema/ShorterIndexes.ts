import * as Effect from "effect/Effect"
import { step } from "./Step.js"

/**
 * Indexes of fewer bytes in the place of those that every op writes to. On SQLite alone: nobody else writes meanwhile, whom the
 * making of an index would hold up, and no process of the version before names the columns of the ones that go.
 *
 * - Nonces go without the zeros in front: 78 bytes less.
 * - `ops_request` has what `ops_element` has, beside abandoned ops. These are told apart by their ids now, so that one index
 *   finds all ops of a request, and allows each element one that is not abandoned.
 * - Hashes, signers and ids of requests in the audit log are found by their first 18 characters.
 */
export const shorterIndexes = step((sql) => [
  sql.onDialectOrElse({
    pg: () => Effect.void,
    orElse: () =>
      Effect.gen(function* () {
        yield* sql`drop index ops_nonce`
        yield* sql`
          create unique index ops_nonce
          on ops (authority, chain_id, entry_point, wallet, ltrim(nonce_key, '0'), ltrim(sequence, '0'))
          where state <> 'abandoned'`
        yield* sql`drop index ops_request`
        yield* sql`drop index ops_element`
        yield* sql`
          create unique index ops_element
          on ops (request_id, op_index, case when state = 'abandoned' then op_id else 0 end)`
        yield* sql`drop index audit_hash`
        yield* sql`create index audit_hash on audit (substr(hash, 1, 18))`
        yield* sql`drop index audit_signer`
        yield* sql`create index audit_signer on audit (substr(signer, 1, 18), entry_no)`
        yield* sql`drop index audit_request`
        yield* sql`create index audit_request on audit (substr(request_id, 1, 18))`
      })
  })
])
