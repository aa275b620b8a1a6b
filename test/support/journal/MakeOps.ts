import type * as Records from "../../../src/application/ports/journal/Records.js"
import type { UserOperation } from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "./Make.js"

/** Prepared ops and what is done with them, for tests of the journal. */

export const unsigned = (nonce: bigint, data = "0x01"): UserOperation => ({
  sender: Make.address(0xa001),
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
  space: Make.space(1),
  nonceKey: 0n,
  sequence: 0n,
  userOpHash: Make.word(1),
  proof: { by: [{ signer: Make.address(7), place: 0 }] },
  window: null,
  dependsOn: [],
  reserve: 0n,
  l1Fee: 0n,
  returned: null,
  goodUntil: null,
  ...over
})

export const direct = (requestId: string): Records.PreparedOp => ({
  ...op({ requestId, userOpHash: null }),
  kind: "direct",
  unsigned: { to: Make.address(9), data: Hex.unsafe("0xabcd"), value: 5n, gasLimit: 21_000n },
  space: { ...Make.space(1), entryPoint: "direct", wallet: Make.lane.signer },
  proof: null
})

export const acceptance = (
  requestId: string,
  ops: ReadonlyArray<Records.PreparedOp>,
  over: Partial<Records.Acceptance> = {}
): Records.Acceptance => ({
  requestId,
  accountId: Make.alice,
  endpoint: "/execute",
  lane: Make.lane,
  key: { clientId: "key 1" },
  body: `{"of":"${requestId}"}`,
  contextDigest: "context 1",
  idempotency: null,
  elements: Math.max(1, ops.length),
  unopened: 0,
  ops: ops.map((each) => ({ ...each, requestId })),
  funds: ops.map(({ space }) => ({ space, available: Make.plenty })),
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
  funds: ops.map(({ space }) => ({ space, available: Make.plenty })),
  deployments: [],
  failed: [],
  schedule: null,
  ...over
})

/** The transaction of that nonce, which carries these ops. */
export const recording = (
  nonce: bigint,
  ops: ReadonlyArray<Pick<Records.Op, "opId" | "userOpHash">>,
  over: Partial<Records.Recording> = {}
): Records.Recording => ({
  ...Make.lane,
  access: Make.access(),
  nonce,
  chainNonce: 0n,
  drainedTo: 0n,
  maxCost: 1n,
  balance: Make.plenty,
  ops: ops.map(({ opId, userOpHash }) => ({ opId, userOpHash })),
  txHash: Make.word(0x1000n + nonce),
  raw: Hex.unsafe("0x02aabb"),
  maxFeePerGas: 30n * 10n ** 9n,
  maxPriorityFeePerGas: 10n ** 9n,
  ...over
})
