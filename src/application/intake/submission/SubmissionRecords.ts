import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Outcome from "../../../domain/erc4337/Outcome.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import type * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import * as Connection from "../../chain/Connection.js"
import * as Inclusions from "../../chain/Inclusions.js"
import type { Watch } from "../../lanes/requests/WakeUps.js"
import type { Receipt } from "../../ports/chain/ChainRpc.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { DeploymentIntent, FailedElement, OpRecord, RequestOps } from "../../ports/journal/Requests.js"
import { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { AcceptedWork, CurrentRequest } from "../../request/CurrentRequest.js"
import * as Elements from "../../request/Elements.js"
import * as HeldNonces from "./HeldNonces.js"
import type { SubmissionRoute } from "./Sending.js"
import type { Landed } from "./SubmissionElements.js"
import type { Carrier, Event } from "./SubmissionPhases.js"
import type { Part } from "./SubmissionPlan.js"
import type { Ready } from "./Transfers.js"

/** The ports of the journal that a submission uses. */
export type SubmissionJournals = OpJournal | RemoteOpJournal | RequestJournal | TransactionJournal

/** A submission, as far as the journal and the chain are asked what became of it. */
export interface Reader {
  readonly plan: SubmissionRoute & {
    readonly elements: ReadonlyArray<number>
    readonly callOf?: (index: number) => WalletCalls.Call | null
    readonly part?: Part | null
  }
  readonly componentOf: (index: number) => number
  readonly watch: Watch
  /** What the journal said at last of the request's ops; null: something may have changed since. */
  ops: RequestOps | null
}

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
const carriersOf = ({ plan: { caller, context } }: Reader, { txHashes }: RequestOps) =>
  Effect.flatMap(TransactionJournal, (transactionJournal) =>
    Effect.map(
      Effect.forEach([...txHashes].reverse(), (txHash) =>
        Effect.orDie(transactionJournal.findTransaction(caller.principal.accountId, context.chainId, txHash))
      ),
      (found) => found.filter((each) => each !== null)
    )
  )

/** Those of the ops that are on the chain all the same: a backup of the journal may be older than their transaction. */
export const landings = (
  remoteOpJournal: RemoteOpJournal["Service"],
  { access, context, submitter }: Pick<SubmissionRoute, "access" | "context" | "submitter">,
  ops: ReadonlyArray<OpRecord>,
  since: number | null = null
) =>
  Effect.gen(function* () {
    const indexes = new Map(ops.flatMap((op) => (op.userOpHash === null ? [] : [[op.userOpHash, op.index]])))
    if (indexes.size === 0) return []
    const { chain, profile } = context.connection
    const head = yield* chain.block("latest")
    const at = head?.number ?? 0n
    const found = yield* Inclusions.find(chain, context.entryPoint, [...indexes.keys()], at, since)
    const outcomes = [...found].map(([userOpHash, outcome]) => {
      const confirmations = Inclusions.confirmationsOf(outcome.blockNumber, at)
      const final = confirmations >= profile.settledDepth
      return { userOpHash, ...outcome, confirmations, landedAs: userOpHash, final }
    })
    yield* remoteOpJournal.recordInclusions(submitter.address, profile.chainId, outcomes, access)
    return outcomes.flatMap(({ userOpHash }) => indexes.get(userOpHash) ?? [])
  })

const readOps = (run: Reader) =>
  Effect.flatMap(OpJournal, (opJournal) =>
    Effect.tap(
      Effect.orDie(
        opJournal.ofRequest(run.plan.caller.requestId, run.plan.part == null ? undefined : run.plan.elements)
      ),
      (ops) =>
        Effect.sync(() => {
          run.ops = ops
        })
    )
  )

export const opsOf = (run: Reader) => (run.ops === null ? readOps(run) : Effect.succeed(run.ops))

/**
 * The same once no transaction of the request waits for a block. A signed one whose ops have all landed elsewhere is mined
 * under some version, or never: its nonce is somebody else's then. The journal is told of either, and wakes who waits.
 */
export const minedOps = (run: Reader) =>
  Effect.flatMap(opsOf(run), (known) =>
    known.hasUnmined
      ? run.watch.until(
          Effect.map(readOps(run), (found) => (found.hasUnmined ? null : found)),
          { atOnce: true }
        )
      : Effect.succeed(known)
  )

/**
 * Waits until no op of these failed elements can land any more, at a bundler that refused it. Gives those that landed all
 * the same.
 */
export const outlast = (run: Reader, elements: ReadonlyArray<number>, onWait: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const given = new Set(elements)
    const ended = ({ ops }: RequestOps) => {
      const own = ops.filter(({ index }) => given.has(index))
      return own.some(({ state }) => state === "sent") ? null : own
    }
    const now = ended(yield* opsOf(run))
    if (now === null) yield* onWait
    const own = now ?? (yield* run.watch.until(Effect.map(readOps(run), ended), { atOnce: true }))
    return new Map<number, Landed>(
      own.flatMap((op) => {
        const outcome = landedOf(op)
        return outcome === null ? [] : [[op.index, outcome] as const]
      })
    )
  })

export const abandonUnsigned = (run: Reader, elements: ReadonlyArray<number>) =>
  elements.length === 0
    ? Effect.void
    : Effect.flatMap(OpJournal, (opJournal) => {
        run.ops = null
        return Effect.orDie(opJournal.abandonUnsigned(run.plan.caller.requestId, elements))
      })

/** Of these elements, whose ops are on no way any more, what landed, and what came back. */
export const follow = (run: Reader, elements: ReadonlyArray<number>, isSent: boolean) =>
  Effect.gen(function* () {
    const { caller } = run.plan
    const own = new Set(elements)
    const ops = yield* run.watch.until(
      Effect.map(readOps(run), (found) => {
        const ours = found.ops.filter(({ index }) => own.has(index))
        return ours.some(({ state }) => state === "sent") ? null : ours
      }),
      { atOnce: !isSent }
    )
    const landed = new Map<number, Landed>()
    const back = ops.filter(({ state }) => state === "accepted")
    for (const op of ops) {
      const outcome = landedOf(op)
      if (outcome !== null) landed.set(op.index, outcome)
    }
    const returned = new Map<number, Carrier>()
    if (back.length === 0) return { landed, returned }
    const carriers = yield* carriersOf(run, yield* opsOf(run))
    yield* abandonUnsigned(
      run,
      back.map(({ index }) => index)
    )
    for (const op of back) {
      const carrier = carriers.find((each) => each.ops.some(({ userOpHash }) => userOpHash === op.userOpHash))
      const isShared = carrier?.ops.some(
        (other) =>
          other.requestId !== caller.requestId || run.componentOf(other.index) !== run.componentOf(op.index)
      )
      returned.set(op.index, carrier === undefined ? "external" : isShared === true ? "shared" : "own")
    }
    return { landed, returned }
  })

/** Elements of which some version is on the chain, in whatever transaction, are done. */
export const takeLanded = (run: Reader, elements: ReadonlyArray<number>, search: HeldNonces.Search = {}) =>
  Effect.gen(function* () {
    const landed = yield* HeldNonces.landings(run.plan.context, yield* opsOf(run), elements, search)
    yield* recordLanded(run, landed)
    return landed
  })

/** The same of versions that the journal does not know, of elements whose nonces are used. */
const takeUnknown = (
  run: Reader,
  held: HeldNonces.HeldNonces,
  elements: ReadonlyArray<number>,
  search: { readonly known: bigint; readonly since: number }
) =>
  Effect.gen(function* () {
    const landed = new Map<number, Landing>()
    for (const index of elements) {
      const call = run.plan.callOf?.(index) ?? null
      const nonce = held.get(index)
      const found =
        call === null || nonce === undefined
          ? null
          : yield* HeldNonces.unknownLanding(run.plan.context, nonce, call, search)
      if (found === null) continue
      landed.set(index, found)
      yield* Effect.annotateLogs(
        Effect.logWarning("an op is on the chain under a hash that the journal did not know of: it is done"),
        { index, txHash: found.txHash }
      )
    }
    yield* recordLanded(run, landed)
    return landed
  })

type Landing = Landed & { readonly blockNumber: bigint; readonly confirmations: number }

const recordLanded = (run: Reader, landed: ReadonlyMap<number, Landing>) =>
  Effect.gen(function* () {
    if (landed.size === 0) return
    const { access, context, submitter } = run.plan
    const { settledDepth } = context.connection.profile
    const found = yield* opsOf(run)
    const remoteOpJournal = yield* RemoteOpJournal
    run.ops = null
    yield* Effect.orDie(
      remoteOpJournal.recordInclusions(
        submitter.address,
        context.chainId,
        [...landed].map(([index, outcome]) => ({
          ...outcome,
          landedAs: outcome.userOpHash,
          final: outcome.confirmations >= settledDepth,
          // Its nonce is used: whatever version the journal holds is through.
          userOpHash: found.ops.find((op) => op.index === index)?.userOpHash ?? outcome.userOpHash
        })),
        access
      )
    )
  })

/** The request as the journal has it; of a part of it the part's ops. */
const recordOf = (run: Reader) =>
  Effect.gen(function* () {
    const { caller, part } = run.plan
    const requestJournal = yield* RequestJournal
    if (part?.standing != null) return { ...part.standing, ...(yield* readOps(run)) }
    return yield* Effect.orDie(
      Effect.filterOrElse(
        requestJournal.request(caller.requestId),
        (found) => found !== null,
        () => Effect.die(new Error("the journal has lost an accepted request"))
      )
    )
  })

/** What the request has recorded before a restart. */
export const resume = (
  run: Reader,
  turn: Pick<CurrentRequest["Service"], "rest" | "work">
): Effect.Effect<Event, never, ChainFacts | SubmissionJournals> =>
  Effect.gen(function* () {
    const { elements } = run.plan
    const remoteOpJournal = yield* RemoteOpJournal
    const before = yield* recordOf(run)
    // What failed with another one is judged again: that one may have vanished from the chain, and done better since.
    const failed = new Map(
      Elements.ofJournal(before.failed).filter(([, { code }]) => code !== "dependency_failed")
    )
    const unsent = before.ops.filter(({ state }) => state === "accepted")
    const left = new Set(unsent.map(({ index }) => index))
    for (const index of yield* Effect.orDie(landings(remoteOpJournal, run.plan, unsent, before.acceptedAt)))
      left.delete(index)
    yield* abandonUnsigned(run, [...left])
    const sent = before.ops.filter(
      ({ index, state }) =>
        state !== "abandoned" && !left.has(index) && !(state === "sent" && failed.has(index))
    )
    const given = sent.map(({ index }) => index)
    if (given.length > 0) yield* turn.rest
    const { landed, returned } = yield* follow(run, given, false)
    yield* turn.work
    const versions = before.signed.map(({ index }) => index)
    const unknown = versions.filter((each, at) => !landed.has(each) || versions.indexOf(each) < at)
    const found = yield* Effect.orDie(takeLanded(run, unknown, { since: before.acceptedAt }))
    const all = new Map<number, Landed>([...landed, ...found])
    const rest = elements.filter((index) => !all.has(index) && !failed.has(index))
    return {
      _tag: "resumed",
      failed,
      landed: all,
      returned,
      held: before.cancelled === null ? new Map() : HeldNonces.of(yield* opsOf(run), rest),
      cancelled: before.cancelled === null ? null : Elements.elementFailure(before.cancelled)
    }
  })

/** What became of the nonces that these elements are held to. */
export const ask = (
  run: Reader,
  elements: ReadonlyArray<number>
): Effect.Effect<Event, never, ChainFacts | SubmissionJournals> =>
  Effect.gen(function* () {
    const { caller, context } = run.plan
    const held = HeldNonces.of(yield* readOps(run), elements)
    if (held.size === 0) return { _tag: "asked", landed: new Map(), held, isUndecided: false } as const
    const facts = yield* ChainFacts
    const opJournal = yield* OpJournal
    const fate = yield* HeldNonces.fateOf(context, { facts }, held)
    const known = fate.settledTo
    const recent = yield* takeLanded(run, [...held.keys()], { known })
    const used = fate.dead.filter((index) => !recent.has(index))
    const landed = new Map<number, Landed>(recent)
    if (used.length > 0) {
      // A version that landed long ago would be done once more under another nonce; so would one that the journal has lost.
      const search = { known, since: (yield* recordOf(run)).acceptedAt }
      for (const [index, it] of yield* takeLanded(run, used, search)) landed.set(index, it)
      const left = used.filter((index) => !landed.has(index))
      for (const [index, it] of yield* takeUnknown(run, held, left, search)) landed.set(index, it)
    }
    const dead = fate.dead.filter((index) => !landed.has(index))
    if (dead.length > 0) {
      run.ops = null
      yield* Effect.orDie(opJournal.abandon(caller.requestId, dead))
    }
    return {
      _tag: "asked",
      landed,
      held: new Map([...held].filter(([index]) => !landed.has(index) && !dead.includes(index))),
      isUndecided: fate.undecided.some((index) => !landed.has(index))
    } as const
  }).pipe(
    Effect.catch(({ message }) =>
      Effect.succeed({
        _tag: "delayed" as const,
        by: Connection.elementRefusal(run.plan.context.connection, message)
      })
    )
  )

/** What the journal is told of ops that are ready. */
export const acceptance = (
  { access, caller, endpoint, context, submitter }: SubmissionRoute & { readonly endpoint: string },
  { body, idempotency }: Pick<CurrentRequest["Service"], "body" | "idempotency">,
  ready: ReadonlyArray<Ready>,
  funds: AcceptedWork["funds"],
  deployments: ReadonlyArray<{ readonly intent: DeploymentIntent }>,
  failed: ReadonlyArray<FailedElement>
): AcceptedWork => ({
  requestId: caller.requestId,
  accountId: caller.principal.accountId,
  endpoint,
  lane: { chainId: context.chainId, signer: submitter.address },
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
  note: null,
  schedule: null
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
