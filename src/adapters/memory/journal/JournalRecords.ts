import type { TransactionRecord } from "../../../application/ports/journal/Lanes.js"
import type { RemoteSubmission } from "../../../application/ports/journal/RemoteSubmissions.js"
import type { OpRecord, RequestRecord } from "../../../application/ports/journal/Requests.js"
import * as State from "./JournalState.js"

export const opRecord = (op: State.Op): OpRecord => ({
  accountId: op.accountId,
  requestId: op.requestId,
  index: op.intent.index,
  userOpHash: op.userOpHash,
  space: {
    authority: op.intent.space.authority,
    chainId: op.intent.space.chainId,
    entryPoint: op.intent.space.entryPoint,
    wallet: op.intent.space.wallet
  },
  nonceKey: op.intent.nonceKey,
  sequence: op.intent.sequence,
  returned: op.intent.returned,
  state: op.state,
  txHash: op.txHash,
  success: op.success,
  revertData: op.revertData
})

/** One hash for each nonce that may be or is mined, in the order of the first signatures. */
const txHashes = (request: State.Request): RequestRecord["txHashes"] => {
  const all = new Set([...request.ops.flatMap((op) => op.transactions), ...request.direct])
  return [...all]
    .filter((it) => State.isOpen(it) || it.state === "settled")
    .sort((one, other) => one.order - other.order)
    .flatMap((it) => it.mined?.txHash ?? [...it.versions.keys()].at(-1) ?? [])
}

export const requestRecord = (request: State.Request): RequestRecord => {
  const latest = new Map(request.ops.map((op) => [op.intent.index, op]))
  return {
    requestId: request.requestId,
    accountId: request.accountId,
    endpoint: request.endpoint,
    chainId: request.chainId,
    body: request.body,
    idempotency: request.idempotency,
    acceptedAt: request.acceptedAt,
    ops: [...latest.values()].sort((one, other) => one.intent.index - other.intent.index).map(opRecord),
    signed: request.ops.filter(State.isSigned).map(opRecord),
    failed: [...request.failed.values()].sort((one, other) => one.index - other.index),
    txHashes: txHashes(request),
    outcome: request.outcome
  }
}

/** Null while nothing was signed for the nonce. */
export const transactionRecord = (transaction: State.Transaction): TransactionRecord | null => {
  const { access, chainId, direct, mined, nonce, ops, signedAt, signer, state, versions } = transaction
  if (state === "free" || state === "allocated") return null
  return {
    chainId,
    signer,
    nonce,
    access,
    state,
    versions: [...versions.values()],
    signedAt,
    ops: ops.flatMap(({ intent, requestId, userOpHash }) =>
      userOpHash === null
        ? []
        : { requestId, index: intent.index, userOpHash, entryPoint: intent.space.entryPoint }
    ),
    direct,
    mined
  }
}

const order = (one: TransactionRecord, other: TransactionRecord): number => {
  if (one.chainId !== other.chainId) return one.chainId < other.chainId ? -1 : 1
  if (one.signer !== other.signer) return one.signer < other.signer ? -1 : 1
  return one.nonce < other.nonce ? -1 : 1
}

/** Those that are signed or mined and not settled, by lane and nonce. */
export const openRecords = (
  lanes: Iterable<ReadonlyMap<bigint, State.Transaction>>
): ReadonlyArray<TransactionRecord> =>
  [...lanes]
    .flatMap((lane) => [...lane.values()])
    .filter(State.isOpen)
    .flatMap((transaction) => transactionRecord(transaction) ?? [])
    .sort(order)

/** Ops in other hands, and those that landed there and not for good, in the order of acceptance. */
export const handovers = (requests: Iterable<State.Request>): ReadonlyArray<RemoteSubmission> =>
  [...requests]
    .flatMap((request) => request.ops)
    .sort((one, other) => one.order - other.order)
    .flatMap((op) => {
      const { handover, userOpHash } = op
      if (handover === null || userOpHash === null) return []
      const { accountId, index, requestId, space } = opRecord(op)
      return { requestId, index, accountId, space, userOpHash, ...handover, includedIn: op.txHash }
    })
