import type * as Fleet from "./Fleet.js"
import type * as Load from "./Load.js"

/** What the journal, the chain and the logs have of one client's op: whoever reads it is to see how it came about. */

/** The op's request, and every request that its transactions carry anything of. */
const requests = `
  select request_id from requests where idempotency_key = $1
  union
  select ops.request_id from transaction_versions
  join transaction_ops using (chain_id, signer, nonce) join ops using (op_id)
  where transaction_versions.tx_hash = any ($2)`

const carriers = `
  select chain_id, signer, nonce from transaction_versions where tx_hash = any ($2)
  union
  select carried.chain_id, carried.signer, carried.nonce from transaction_ops as carried
  join ops using (op_id) where request_id in (${requests})`

const questions: Readonly<Record<string, string>> = {
  requests: `
    select request_no, request_id, idempotency_key, signer, state, cancelled, failed, accepted_at, metadata from requests
    where request_id in (${requests}) order by request_no`,
  ops: `
    select op_id, request_id, op_index, wallet, nonce_key, sequence, user_op_hash, state, tx_hash, success, was_public,
      accepted_at
    from ops where request_id in (${requests}) order by op_id`,
  transactions: `
    select signer, nonce, state, epoch, direct, tx_hash, block_number, submitted, allocated_at from transactions
    where (chain_id, signer, nonce) in (${carriers}) order by signer, nonce`,
  transaction_ops: `
    select signer, nonce, op_id, position from transaction_ops
    where (chain_id, signer, nonce) in (${carriers}) order by signer, nonce, position`,
  transaction_versions: `
    select version_id, signer, nonce, tx_hash, signed_at from transaction_versions
    where (chain_id, signer, nonce) in (${carriers}) order by version_id`,
  request_events: `
    select request_id, sequence, kind, data, told_at from request_events join requests using (request_no)
    where request_id in (${requests}) order by told_at, request_no, sequence`,
  lanes: "select * from lanes where $1::text is not null and $2::text[] is not null"
}

/** Every op that the EntryPoint executed in the transaction: its hash, its wallet and its nonce. */
const executed = async ({ world }: Fleet.Fleet, txHash: string): Promise<ReadonlyArray<string>> => {
  const receipt = await world.provider.getTransactionReceipt(txHash)
  // `UserOperationEvent` has three topics beside its own, and its nonce first.
  return (receipt?.logs ?? []).flatMap(({ data, topics }) =>
    topics.length === 4 ? [`hash ${topics[1]}, wallet ${topics[2]}, nonce ${data.slice(0, 66)}`] : []
  )
}

export const of = async (
  fleet: Fleet.Fleet,
  { id, name }: Load.Op,
  txHashes: ReadonlyArray<string>
): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = [`${id} is of ${name}`]
  for (const txHash of txHashes)
    for (const op of await executed(fleet, txHash)) found.push(`chain: ${txHash} executed ${op}`)
  const ids = new Set<string>()
  for (const [table, text] of Object.entries(questions))
    for (const row of await fleet.holders.rows(text, [name, txHashes])) {
      if (typeof row.request_id === "string") ids.add(row.request_id)
      found.push(`${table}: ${JSON.stringify(row)}`)
    }
  const words = [...ids, ...txHashes]
  for (const replica of fleet.replicas)
    for (const line of replica.log().split("\n"))
      if (words.some((word) => line.includes(word))) found.push(`${replica.name}: ${line}`)
  return found
}
