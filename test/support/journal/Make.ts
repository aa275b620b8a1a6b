import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type { LaneJournal } from "../../../src/application/ports/journal/LaneJournal.js"
import type { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import type {
  FoundInclusion,
  RemoteSubmissionIntent
} from "../../../src/application/ports/journal/RemoteSubmissions.js"
import type {
  Acceptance,
  DeploymentIntent,
  FailedElement,
  LeaseRequest,
  NonceSpace,
  OpIntent
} from "../../../src/application/ports/journal/Requests.js"
import type {
  AllocationRequest,
  Lane,
  LaneAccess,
  SignedTransaction,
  TransactionSettlement
} from "../../../src/application/ports/journal/Transactions.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Uint from "../../../src/domain/primitives/Uint.js"

export const address = (n: number): Address.Address => Address.unsafe(`0x${n.toString(16).padStart(40, "0")}`)
export const word = (n: number | bigint): Hex.Bytes32 => Hex.unsafe32(`0x${Uint.toWord(BigInt(n))}`)

export const accountId = (text: string): AccountId => text as AccountId
export const alice = accountId("alice")
export const bob = accountId("bob")

export const chainId = 31_337n
export const entryPoint = address(0xe7)
export const otherEntryPoint = address(0xe8)
/** Far above what fits in 64 bits. */
export const ether = 10n ** 18n
export const plenty = 10n ** 60n

export const space = (wallet: number, over: Partial<NonceSpace> = {}): NonceSpace => ({
  authority: address(0x51),
  chainId,
  entryPoint,
  wallet: address(0xa000 + wallet),
  ...over
})

export const op = (over: Partial<OpIntent> = {}): OpIntent => ({
  index: 0,
  space: space(1),
  nonceKey: 0n,
  sequence: 0n,
  userOpHash: null,
  reserve: 0n,
  returned: null,
  ...over
})

/** Funds of every wallet of the ops: `available` each. */
export const fundsOf = (ops: ReadonlyArray<OpIntent>, available: bigint): Acceptance["funds"] =>
  ops.map((intent) => ({ space: intent.space, available }))

const laneOf = ({ authority, chainId }: NonceSpace): Lane => ({ chainId, signer: authority })

export const acceptance = (
  requestId: string,
  ops: ReadonlyArray<OpIntent>,
  over: Partial<Acceptance> = {}
): Acceptance => ({
  requestId,
  accountId: alice,
  endpoint: "execute",
  lane: ops[0] === undefined ? lane : laneOf(ops[0].space),
  key: { clientId: "key 1" },
  elements: 1,
  body: "{}",
  idempotency: null,
  ops,
  funds: fundsOf(ops, plenty),
  deployments: [],
  failed: [],
  note: null,
  metadata: {},
  schedule: null,
  ...over
})

export const deployment = (over: Partial<DeploymentIntent> = {}): DeploymentIntent => ({
  chainId,
  factory: address(0xfac),
  create2Salt: word(1),
  configHash: word(0xc1),
  deadline: 2_000,
  chainTime: 1_000,
  ...over
})

export const leaseRequest = (holder: string, over: Partial<LeaseRequest> = {}): LeaseRequest => ({
  ...space(1),
  holder,
  keys: { from: 0n, to: 15n },
  count: 1,
  ttlMillis: 10_000,
  ...over
})

/** The keys that one request is leased; null: there are too few. */
export const lease = (
  journal: Pick<OpJournal["Service"], "lease">,
  request: LeaseRequest
): Effect.Effect<ReadonlyArray<bigint> | null, JournalError> =>
  Effect.map(journal.lease([request]), ([keys]) => keys ?? null)

export const lane: Lane = { chainId, signer: address(0x51) }

export const access = (over: Partial<LaneAccess> = {}): LaneAccess => ({
  accountId: alice,
  key: { clientId: "key 1" },
  rpc: Redacted.make("https://node.example/secret-path"),
  trust: "caller",
  ...over
})

/** The node that shows ops on the chain. */
export const node = (): RemoteSubmissionIntent["node"] => ({ rpc: access().rpc, trust: "caller" })

export const handing = (requestId: string, indexes: ReadonlyArray<number>): RemoteSubmissionIntent => ({
  requestId,
  node: node(),
  since: 7n,
  ops: indexes.map((index) => ({ index, signed: Hex.unsafe(`0x51${index.toString(16).padStart(2, "0")}`) }))
})

/** The allocation of a transaction that carries ops of one request: the indexes that are given. */
export const allocation = (
  requestId: string,
  { ops, ...over }: Partial<Omit<AllocationRequest, "ops">> & { readonly ops?: ReadonlyArray<number> } = {}
): AllocationRequest => ({
  ...lane,
  access: access(),
  chainNonce: 0n,
  drainedTo: 0n,
  maxCost: 1n,
  balance: plenty,
  ops: (ops ?? []).map((index) => ({ requestId, index })),
  direct: null,
  ...over
})

export const failed = (index: number, over: Partial<FailedElement> = {}): FailedElement => ({
  index,
  code: "OP_REVERTED",
  message: "it reverts",
  figures: {},
  ...over
})

/** With a hash of its own it is another version of what was signed under the nonce before. */
export const signed = (nonce: bigint, over: Partial<SignedTransaction> = {}): SignedTransaction => ({
  ...lane,
  nonce,
  txHash: word(0x1000n + nonce),
  raw: Hex.unsafe("0x02aabb"),
  maxFeePerGas: 30n * 10n ** 9n,
  maxPriorityFeePerGas: 10n ** 9n,
  addedCost: 0n,
  replaces: over.txHash !== undefined,
  drainedTo: 0n,
  ...over
})

export const mined = (nonce: bigint, over: Partial<TransactionSettlement> = {}): TransactionSettlement => ({
  ...lane,
  nonce,
  txHash: word(0x1000n + nonce),
  success: true,
  blockNumber: 7n,
  confirmations: 1,
  blockHash: word(0xb10c),
  ...over
})

export const landed = (
  userOpHash: Hex.Bytes32,
  nonce: bigint,
  over: Partial<FoundInclusion> = {}
): FoundInclusion => ({
  userOpHash,
  landedAs: userOpHash,
  final: false,
  success: true,
  txHash: word(0x1000n + nonce),
  revertData: null,
  blockNumber: 7n,
  confirmations: 1,
  ...over
})

/** Confirmations at settled depth. */
export const settledDepth = 12

/** An op whose landing is at settled depth. */
export const deep = (userOpHash: Hex.Bytes32) => ({
  userOpHash,
  blockNumber: 7n,
  confirmations: settledDepth
})

/** The ids of all accepted requests that are not final, as the lanes' work names them. */
export const unfinished = (
  journal: LaneJournal["Service"]
): Effect.Effect<ReadonlyArray<string>, JournalError> =>
  Effect.map(journal.work, (lanes) =>
    lanes.flatMap(({ requests }) => requests.map(({ requestId }) => requestId))
  )
