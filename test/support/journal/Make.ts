import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import type * as Records from "../../../src/application/ports/journal/Records.js"
import type { FoundInclusion } from "../../../src/application/ports/journal/RemoteSubmissions.js"
import type {
  DeploymentIntent,
  FailedElement,
  LeaseRequest,
  NonceSpace
} from "../../../src/application/ports/journal/Requests.js"
import type {
  Lane,
  LaneAccess,
  TransactionSettlement
} from "../../../src/application/ports/journal/Transactions.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import type { UserOperation } from "../../../src/domain/erc4337/UserOperation.js"
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
/** Exceeds 64 bits. */
export const ether = 10n ** 18n
export const plenty = 10n ** 60n

export const space = (wallet: number, over: Partial<NonceSpace> = {}): NonceSpace => ({
  authority: address(0x51),
  chainId,
  entryPoint,
  wallet: address(0xa000 + wallet),
  ...over
})

export const lane: Lane = { chainId, signer: address(0x51) }

export const unsigned = (nonce: bigint, data = "0x01"): UserOperation => ({
  sender: address(0xa001),
  nonce,
  initCode: Hex.empty,
  callData: Hex.unsafe(data),
  paymasterAndData: Hex.empty,
  signature: Hex.empty,
  callGasLimit: 100_000n,
  verificationGasLimit: 200_000n,
  preVerificationGas: 2n ** 70n,
  maxFeePerGas: 30n * 10n ** 9n,
  maxPriorityFeePerGas: 10n ** 9n
})

type EntryPointOp = Exclude<Records.PreparedOp, { readonly kind: "direct" }>

export const op = (over: Partial<EntryPointOp> = {}): EntryPointOp => ({
  requestId: "r1",
  index: 0,
  kind: "op",
  unsigned: unsigned(over.sequence ?? 0n),
  space: space(1),
  nonceKey: 0n,
  sequence: 0n,
  userOpHash: null,
  proof: { by: [{ signer: address(7), place: 0 }] },
  window: null,
  dependsOn: [],
  reserve: 0n,
  l1Fee: 0n,
  returned: null,
  goodUntil: null,
  ...over
})

/** A direct transaction of the signer. */
export const direct = (requestId: string, { chainId, signer }: Lane = lane): Records.PreparedOp => ({
  ...op({ requestId }),
  kind: "direct",
  unsigned: { to: address(9), data: Hex.unsafe("0xabcd"), value: 5n, gasLimit: 21_000n },
  space: { authority: signer, chainId, entryPoint: "direct", wallet: signer },
  proof: null
})

/** Funds of every wallet of the ops: `available` each. */
export const fundsOf = (
  ops: ReadonlyArray<Pick<Records.PreparedOp, "space">>,
  available: bigint
): Records.Acceptance["funds"] => ops.map(({ space }) => ({ space, available }))

const laneOf = (ops: ReadonlyArray<Records.PreparedOp>): Lane =>
  ops[0] === undefined ? lane : { chainId: ops[0].space.chainId, signer: ops[0].space.authority }

export const acceptance = (
  requestId: string,
  ops: ReadonlyArray<Records.PreparedOp>,
  over: Partial<Records.Acceptance> = {}
): Records.Acceptance => ({
  requestId,
  accountId: alice,
  endpoint: "/execute",
  lane: laneOf(ops),
  key: { clientId: "key 1" },
  body: `{"of":"${requestId}"}`,
  contextDigest: "context 1",
  idempotency: null,
  elements: Math.max(1, ops.length),
  unopened: 0,
  ops: ops.map((each) => ({ ...each, requestId })),
  funds: fundsOf(ops, plenty),
  deployments: [],
  failed: [],
  note: null,
  metadata: {},
  schedule: null,
  ...over
})

export const opening = (
  requestId: string,
  ops: ReadonlyArray<Records.PreparedOp>,
  over: Partial<Records.Opening> = {}
): Records.Opening => ({
  requestId,
  ops: ops.map((each) => ({ ...each, requestId })),
  funds: fundsOf(ops, plenty),
  deployments: [],
  failed: [],
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

/** Leases keys for one request; null if too few are free. */
export const lease = (
  journal: Pick<OpJournal["Service"], "lease">,
  request: LeaseRequest
): Effect.Effect<ReadonlyArray<bigint> | null, JournalError> =>
  Effect.map(journal.lease([request]), ([keys]) => keys ?? null)

export const access = (over: Partial<LaneAccess> = {}): LaneAccess => ({
  accountId: alice,
  key: { clientId: "key 1" },
  rpc: Redacted.make("https://node.example/secret-path"),
  trust: "caller",
  ...over
})

/** The node that shows ops on the chain. */
export const node = (): Pick<LaneAccess, "rpc" | "trust"> => ({ rpc: access().rpc, trust: "caller" })

export const failed = (index: number, over: Partial<FailedElement> = {}): FailedElement => ({
  index,
  code: "OP_REVERTED",
  message: "it reverts",
  figures: {},
  ...over
})

/** Bytes of the nonce; with a different hash they replace the first ones. */
export const signed = (nonce: bigint, over: Partial<Records.Replacement> = {}): Records.Replacement => ({
  ...lane,
  nonce,
  txHash: word(0x1000n + nonce),
  raw: Hex.unsafe("0x02aabb"),
  maxFeePerGas: 30n * 10n ** 9n,
  maxPriorityFeePerGas: 10n ** 9n,
  addedCost: 0n,
  ...over
})

/** The transaction of that nonce, which carries these ops. */
export const recording = (
  nonce: bigint,
  ops: ReadonlyArray<Pick<Records.Op, "opId" | "userOpHash">>,
  over: Partial<Records.Recording> = {}
): Records.Recording => {
  const { addedCost: _, ...version } = signed(nonce)
  return {
    ...version,
    access: access(),
    chainNonce: 0n,
    maxCost: 1n,
    balance: plenty,
    ops: ops.map(({ opId, userOpHash }) => ({ opId, userOpHash })),
    ...over
  }
}

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
