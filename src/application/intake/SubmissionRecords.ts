import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Outcome from "../../domain/erc4337/Outcome.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Uint from "../../domain/primitives/Uint.js"
import * as Inclusions from "../chain/Inclusions.js"
import type { Receipt } from "../ports/chain/ChainRpc.js"
import type { OpJournal } from "../ports/journal/OpJournal.js"
import type { RemoteOpJournal } from "../ports/journal/RemoteOpJournal.js"
import type { RequestJournal } from "../ports/journal/RequestJournal.js"
import type {
  Acceptance,
  DeploymentIntent,
  FailedElement,
  OpRecord,
  RequestRecord
} from "../ports/journal/Requests.js"
import type { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { CurrentRequest } from "../request/CurrentRequest.js"
import type * as Sending from "./Sending.js"

/** The ports of the journal that a submission uses. */
export type SubmissionJournals = OpJournal | RemoteOpJournal | RequestJournal | TransactionJournal

/** Longer return values are not kept. */
const maxReturned = 16_384

const kept = (returned: Hex.Hex): Hex.Hex | null => (Hex.size(returned) > maxReturned ? null : returned)

/** How the op of an element landed; null: it has not. */
export const landedOf = (op: OpRecord) =>
  op.state === "settled" && op.userOpHash !== null && op.txHash !== null
    ? {
        userOpHash: op.userOpHash,
        success: op.success === true,
        txHash: op.txHash,
        revertData: op.revertData,
        returned: op.returned
      }
    : null

/** The request's mined transactions, newest first. */
export const carriers =
  (transactionJournal: TransactionJournal["Type"], chainId: bigint) =>
  ({ accountId, txHashes }: RequestRecord) =>
    Effect.map(
      Effect.forEach([...txHashes].reverse(), (txHash) =>
        Effect.orDie(transactionJournal.findTransaction(accountId, chainId, txHash))
      ),
      (found) => found.filter((each) => each !== null)
    )

/** Those of the ops that are on the chain all the same: a backup of the journal may be older than their transaction. */
export const landings = (
  remoteOpJournal: RemoteOpJournal["Type"],
  { ground, submitter }: Pick<Sending.SubmissionRoute, "ground" | "submitter">,
  ops: ReadonlyArray<OpRecord>
) =>
  Effect.gen(function* () {
    const indexes = new Map(ops.flatMap((op) => (op.userOpHash === null ? [] : [[op.userOpHash, op.index]])))
    if (indexes.size === 0) return []
    const { chain, profile } = ground.connection
    const head = yield* chain.block("latest")
    const found = yield* Inclusions.find(chain, ground.entryPoint, [...indexes.keys()], head?.number ?? 0n)
    const outcomes = [...found].map(([userOpHash, outcome]) => ({ userOpHash, ...outcome }))
    yield* remoteOpJournal.recordInclusions(submitter.address, profile.chainId, outcomes)
    return outcomes.flatMap(({ userOpHash }) => indexes.get(userOpHash) ?? [])
  })

/** What the journal is told of ops that are ready. */
export const acceptance = (
  { access, caller, endpoint, ground, submitter }: Sending.SubmissionRoute & { readonly endpoint: string },
  { body, idempotency }: Pick<CurrentRequest["Type"], "body" | "idempotency">,
  ready: ReadonlyArray<Sending.Ready>,
  funds: Acceptance["funds"],
  deployments: ReadonlyArray<{ readonly intent: DeploymentIntent }>,
  failed: ReadonlyArray<FailedElement>
): Acceptance => ({
  requestId: caller.requestId,
  accountId: caller.principal.accountId,
  endpoint,
  lane: { chainId: ground.chainId, signer: submitter.address },
  key: access.key,
  body,
  idempotency,
  ops: ready.map(({ index, nonceKey, reserve, returned, sequence, space, userOpHash }) => ({
    index,
    space,
    nonceKey,
    sequence,
    userOpHash,
    reserve: BigInts.min(reserve, Uint.max(256)),
    returned: kept(returned)
  })),
  funds,
  deployments: deployments.map(({ intent }) => intent),
  failed,
  note: null
})

/** The receipts in the order of their blocks, with the logs of these ops alone. */
export const receiptsOf = (
  entryPoint: Address,
  receipts: ReadonlyArray<Receipt>,
  own: ReadonlySet<Hex.Bytes32>
): ReadonlyArray<Receipt> =>
  [...receipts]
    .sort((a, b) => (a.blockNumber < b.blockNumber ? -1 : a.blockNumber > b.blockNumber ? 1 : 0))
    .map((receipt) => ({ ...receipt, logs: Outcome.logsOf(entryPoint, receipt.logs, own) }))
