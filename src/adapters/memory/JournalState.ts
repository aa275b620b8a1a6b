import type { AccountId } from "../../application/ports/Accounts.js"
import type {
  AllocationRequest,
  DeploymentIntent,
  Lane,
  NonceSpace,
  OpIntent,
  OpRecord,
  SignedTransaction
} from "../../application/ports/Journal.js"
import type { Bytes32, Hex } from "../../domain/evm/Hex.js"

export interface Request {
  readonly accountId: AccountId
  readonly endpoint: string
  readonly chainId: bigint
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
  /** Those that were allocated for it. */
  transactions: ReadonlyArray<Transaction>
}

/** A nonce that was handed out; changes in place. */
export interface Transaction {
  readonly nonce: bigint
  /** `free`: handed back by its request; the lane's next work takes it. */
  state: "free" | "allocated" | "signed" | "settled"
  maxCost: bigint
  ops: ReadonlyArray<Op>
  readonly versions: Map<Bytes32, SignedTransaction>
  /** The version that was mined. */
  txHash: Bytes32 | null
}

export interface State {
  /** Number of the ops that were ever accepted. */
  accepted: number
  readonly requests: Map<string, Request>
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
}

export const make = (): State => ({
  accepted: 0,
  requests: new Map(),
  byHash: new Map(),
  byNonce: new Map(),
  byElement: new Map(),
  underWay: new Map(),
  leases: new Map(),
  deployments: new Map(),
  lanes: new Map()
})

export const walletName = (space: NonceSpace): string => `${space.authority} ${space.chainId} ${space.wallet}`
export const spaceName = (space: NonceSpace): string => `${walletName(space)} ${space.entryPoint}`
export const nonceName = (op: OpIntent): string => `${spaceName(op.space)} ${op.nonceKey} ${op.sequence}`
export const elementName = (requestId: string, index: number): string => `${index} ${requestId}`
export const hashName = (chainId: bigint, hash: Bytes32): string => `${chainId} ${hash}`
export const laneName = (lane: Lane): string => `${lane.chainId} ${lane.signer}`
export const deploymentName = (it: DeploymentIntent): string =>
  `${it.chainId} ${it.factory} ${it.create2Salt}`

export const isUnderWay = (op: Op): boolean => op.state === "accepted" || op.state === "sent"

/** Whether it is in a signed transaction, apart from this one, that is not settled. */
export const isSignedElsewhere = (op: Op, here: Transaction | null): boolean =>
  op.transactions.some((it) => it !== here && it.state === "signed")

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

export const addHash = (state: State, op: Op, hash: Bytes32): void => {
  op.userOpHash = hash
  const name = hashName(op.intent.space.chainId, hash)
  // Hashes may follow in another order than the ops were accepted in.
  const ops = [...(state.byHash.get(name) ?? []), op].sort((one, other) => one.order - other.order)
  state.byHash.set(name, ops)
}

export const addOp = (state: State, op: Op): void => {
  state.byNonce.set(nonceName(op.intent), op)
  state.byElement.set(elementName(op.requestId, op.intent.index), op)
  const name = walletName(op.intent.space)
  const ops = state.underWay.get(name) ?? new Set()
  state.underWay.set(name, ops.add(op))
  if (op.userOpHash !== null) addHash(state, op, op.userOpHash)
}

/** Frees the key and the money of an op that came to its end. */
const finish = (state: State, op: Op): void => {
  const name = walletName(op.intent.space)
  const ops = state.underWay.get(name)
  ops?.delete(op)
  if (ops?.size === 0) state.underWay.delete(name)
}

export const settleOp = (state: State, op: Op, success: boolean): void => {
  op.state = "settled"
  op.success = success
  finish(state, op)
}

export const abandonOp = (state: State, op: Op): void => {
  op.state = "abandoned"
  state.byNonce.delete(nonceName(op.intent))
  state.byElement.delete(elementName(op.requestId, op.intent.index))
  finish(state, op)
}

/** The nonce to hand out, and what the transactions under way of the lane may cost. */
export const next = (
  lane: ReadonlyMap<bigint, Transaction>,
  { chainNonce }: Pick<AllocationRequest, "chainNonce">
): { readonly nonce: bigint; readonly reserved: bigint } => {
  let reserved = 0n
  let unsigned: bigint | null = null
  let after = chainNonce
  for (const { maxCost, nonce, state } of lane.values()) {
    if (state === "signed") reserved += maxCost
    if (nonce >= after) after = nonce + 1n
    if ((state === "free" || state === "allocated") && nonce >= chainNonce)
      unsigned = unsigned === null || nonce < unsigned ? nonce : unsigned
  }
  return { reserved, nonce: unsigned ?? after }
}
