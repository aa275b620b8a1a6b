import type { Affected } from "../../../application/ports/journal/Journal.js"
import type {
  AllocationRequest,
  Lane,
  LaneAccess,
  Route,
  TransactionRecord,
  TransactionVersion
} from "../../../application/ports/journal/Lanes.js"
import type { RemoteSubmissionIntent } from "../../../application/ports/journal/RemoteSubmissions.js"
import type {
  DeploymentIntent,
  FailedElement,
  Idempotency,
  NonceSpace,
  OpIntent,
  OpRecord,
  OpRef,
  OpSettlement
} from "../../../application/ports/journal/Requests.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"

/** An accepted request; changes in place. */
export interface Request {
  readonly requestId: string
  readonly accountId: AccountId
  readonly endpoint: string
  readonly chainId: bigint
  readonly acceptedAt: number
  body: string
  idempotency: Idempotency | null
  state: "open" | "final" | "forgotten"
  outcome: string | null
  readonly failed: Map<number, FailedElement>
  /** In the order of their acceptance. */
  readonly ops: Array<Op>
  /** Those that were allocated for it alone. */
  readonly direct: Array<Transaction>
}

/** An accepted op; changes in place. */
export interface Op {
  /** Counts the accepted ops. */
  readonly order: number
  readonly accountId: AccountId
  readonly requestId: string
  readonly intent: OpIntent
  userOpHash: Bytes32 | null
  state: OpRecord["state"]
  txHash: Bytes32 | null
  success: boolean | null
  revertData: Hex | null
  /** While it is in other hands, or landed by them and not for good. */
  handover: (Pick<RemoteSubmissionIntent, "node" | "since"> & { readonly signed: Hex }) | null
  /** Those that were allocated for it. */
  readonly transactions: Array<Transaction>
}

/** A nonce that was handed out; changes in place. */
export interface Transaction extends Lane {
  readonly nonce: bigint
  /** `free`: handed back; the lane's next work takes it. */
  state: "free" | "allocated" | TransactionRecord["state"]
  readonly access: LaneAccess
  maxCost: bigint
  ops: ReadonlyArray<Op>
  direct: string | null
  readonly versions: Map<Bytes32, TransactionVersion>
  /** Counts the nonces that were signed. */
  order: number
  signedAt: number
  mined: TransactionRecord["mined"]
}

export interface State {
  /** Number of the ops that were ever accepted. */
  accepted: number
  /** Number of the nonces that were ever signed. */
  signed: number
  readonly requests: Map<string, Request>
  readonly byKey: Map<string, string>
  /** By chain and hash, in the order of acceptance. */
  readonly byHash: Map<string, Array<Op>>
  /** Not abandoned, by what they own. */
  readonly byNonce: Map<string, Op>
  readonly byElement: Map<string, Op>
  /** Accepted or sent, by chain and wallet. */
  readonly underWay: Map<string, Set<Op>>
  readonly leases: Map<string, Map<bigint, { readonly holder: string; readonly expiresAt: number }>>
  readonly deployments: Map<string, { readonly configHash: Bytes32; readonly deadline: number }>
  readonly lanes: Map<string, Map<bigint, Transaction>>
  /** Signed ones by chain and hash of a version, in the order of signing. */
  readonly byTxHash: Map<string, Array<Transaction>>
}

export const make = (): State => ({
  accepted: 0,
  signed: 0,
  requests: new Map(),
  byKey: new Map(),
  byHash: new Map(),
  byNonce: new Map(),
  byElement: new Map(),
  underWay: new Map(),
  leases: new Map(),
  deployments: new Map(),
  lanes: new Map(),
  byTxHash: new Map()
})

export const walletName = (space: NonceSpace): string => `${space.authority} ${space.chainId} ${space.wallet}`
export const spaceName = (space: NonceSpace): string => `${walletName(space)} ${space.entryPoint}`
export const nonceName = (op: OpIntent): string => `${spaceName(op.space)} ${op.nonceKey} ${op.sequence}`
export const elementName = ({ index, requestId }: OpRef): string => `${index} ${requestId}`
export const hashName = (chainId: bigint, hash: Bytes32): string => `${chainId} ${hash}`
export const laneName = (lane: Lane): string => `${lane.chainId} ${lane.signer}`
export const keyName = (accountId: AccountId, endpoint: string, key: string): string =>
  JSON.stringify([accountId, endpoint, key])
export const deploymentName = (it: DeploymentIntent): string =>
  `${it.chainId} ${it.factory} ${it.create2Salt}`

export const isUnderWay = (op: Op): boolean => op.state === "accepted" || op.state === "sent"

export const isOpen = (transaction: Transaction): boolean =>
  transaction.state === "signed" || transaction.state === "mined"

/** Whether it is in a transaction of ours that may be mined. */
export const isCarried = (op: Op): boolean => op.transactions.some(isOpen)

/** Whether it was ever in a signed transaction. */
export const isSigned = (op: Op): boolean =>
  op.transactions.some(({ state }) => state !== "free" && state !== "allocated")

/** Whether something of its element was ever signed under its nonce. */
export const isHolding = (state: State, op: Op): boolean =>
  (state.requests.get(op.requestId)?.ops ?? []).some(
    (version) =>
      version.intent.index === op.intent.index &&
      nonceName(version.intent) === nonceName(op.intent) &&
      isSigned(version)
  )

export const under = (state: State, space: NonceSpace): ReadonlySet<Op> =>
  state.underWay.get(walletName(space)) ?? new Set()

/** The authority's op of that hash that is not abandoned. */
export const alive = (
  state: State,
  { authority, chainId }: Pick<NonceSpace, "authority" | "chainId">,
  hash: Bytes32
): Op | undefined =>
  state.byHash
    .get(hashName(chainId, hash))
    ?.find((op) => op.intent.space.authority === authority && op.state !== "abandoned")

/** The request's ops of these indexes that are not abandoned. */
export const elements = (
  state: State,
  requestId: string,
  indexes: ReadonlyArray<number>
): ReadonlyArray<Op> =>
  [...new Set(indexes)].flatMap((index) => state.byElement.get(elementName({ requestId, index })) ?? [])

export const addHash = (state: State, op: Op, hash: Bytes32): void => {
  op.userOpHash = hash
  const name = hashName(op.intent.space.chainId, hash)
  // Hashes may follow in another order than the ops were accepted in.
  const ops = [...(state.byHash.get(name) ?? []), op].sort((one, other) => one.order - other.order)
  state.byHash.set(name, ops)
}

const hold = (state: State, op: Op): void => {
  const name = walletName(op.intent.space)
  state.underWay.set(name, (state.underWay.get(name) ?? new Set()).add(op))
}

/** Frees the key and the money of an op that came to its end. */
const free = (state: State, op: Op): void => {
  const name = walletName(op.intent.space)
  const ops = state.underWay.get(name)
  ops?.delete(op)
  if (ops?.size === 0) state.underWay.delete(name)
}

export const addOp = (state: State, op: Op): void => {
  state.byNonce.set(nonceName(op.intent), op)
  state.byElement.set(elementName({ requestId: op.requestId, index: op.intent.index }), op)
  hold(state, op)
  if (op.userOpHash !== null) addHash(state, op, op.userOpHash)
}

/** Moves an op to a state without an outcome, carried by that transaction or by none of ours. */
export const moveOp = (
  state: State,
  op: Op,
  to: "accepted" | "sent" | "abandoned",
  txHash: Bytes32 | null
): void => {
  op.state = to
  op.txHash = txHash
  op.success = null
  op.revertData = null
  if (to !== "abandoned") {
    hold(state, op)
    return
  }
  state.byNonce.delete(nonceName(op.intent))
  state.byElement.delete(elementName({ requestId: op.requestId, index: op.intent.index }))
  free(state, op)
}

/** Gives those of the ops that are under way the outcomes that are told of them. */
export const settleOps = (
  state: State,
  ops: ReadonlyArray<Op>,
  outcomes: ReadonlyArray<OpSettlement>
): void => {
  for (const { revertData, success, txHash, userOpHash } of outcomes)
    for (const op of ops)
      if (op.userOpHash === userOpHash && isUnderWay(op)) {
        op.state = "settled"
        op.txHash = txHash
        op.success = success
        op.revertData = revertData
        free(state, op)
      }
}

/** Its ops that have no outcome are in no transaction any more. */
export const letGo = (state: State, transaction: Transaction): void => {
  for (const op of transaction.ops) if (op.state === "sent") moveOp(state, op, "accepted", null)
}

/** Final requests whose answer does not hold any more. */
export const reopen = (state: State, requestIds: Affected): void => {
  for (const requestId of requestIds) {
    const it = state.requests.get(requestId)
    if (it?.state !== "final") continue
    it.state = "open"
    it.outcome = null
  }
}

/** The requests that a transaction concerns. */
export const concerned = ({ direct, ops }: Transaction): Affected =>
  affected([...ops.map((op) => op.requestId), ...(direct === null ? [] : [direct])])

export const affected = (requestIds: ReadonlyArray<string>): Affected => [...new Set(requestIds)].sort()

export const laneOf = (state: State, lane: Lane): Map<bigint, Transaction> =>
  state.lanes.get(laneName(lane)) ?? new Map()

export const find = (state: State, lane: Lane, nonce: bigint): Transaction | undefined =>
  laneOf(state, lane).get(nonce)

/** Drops what is below a nonce and was never signed. */
export const forgetUnsigned = (lane: Map<bigint, Transaction>, nonce: bigint): void => {
  for (const [below, { state }] of lane)
    if (below < nonce && (state === "free" || state === "allocated")) lane.delete(below)
}

const routeOf = ({ direct, ops }: Pick<Transaction, "direct" | "ops">): Route =>
  ops[0]?.intent.space.entryPoint ?? (direct === null ? null : "direct")

/** Whether none of the lane's signed transactions has another route. */
export const admits = (
  lane: ReadonlyMap<bigint, Transaction>,
  transaction: Pick<Transaction, "direct" | "ops">,
  drainedTo: bigint
): boolean => {
  const route = routeOf(transaction)
  if (route === null) return true
  return [...lane.values()].every((other) => {
    const theirs = other.state === "signed" && other.nonce >= drainedTo ? routeOf(other) : null
    return theirs === null || theirs === route
  })
}

/** The nonce to hand out, and what the transactions of the lane that are not mined may cost. */
export const next = (
  lane: ReadonlyMap<bigint, Transaction>,
  { chainNonce }: Pick<AllocationRequest, "chainNonce">
): { readonly nonce: bigint; readonly reserved: bigint } => {
  let reserved = 0n
  for (const { maxCost, state } of lane.values()) if (state === "signed") reserved += maxCost
  let nonce = chainNonce
  const isUsed = () => {
    const { state } = lane.get(nonce) ?? {}
    return state !== undefined && state !== "free" && state !== "allocated"
  }
  while (isUsed()) nonce++
  return { reserved, nonce }
}
