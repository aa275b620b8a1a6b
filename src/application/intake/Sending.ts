import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Dependencies from "../../domain/erc4337/Dependencies.js"
import * as FailedOp from "../../domain/erc4337/FailedOp.js"
import type { FeePrices } from "../../domain/erc4337/gas/Fees.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { ChainFacts } from "../chain/ChainFacts.js"
import { WakeUps } from "../lanes/requests/WakeUps.js"
import { Bundler, type BundlerError } from "../ports/chain/Bundler.js"
import { OpJournal } from "../ports/journal/OpJournal.js"
import type { NonceSpace } from "../ports/journal/Requests.js"
import type { LaneAccess } from "../ports/journal/Transactions.js"
import type { Signer } from "../ports/Signers.js"
import type { Caller } from "../request/Caller.js"
import { type ElementFailure, elementFailure } from "../request/Elements.js"
import * as Reasons from "../request/Reasons.js"
import * as Epochs from "./Epochs.js"
import type { NodeFault } from "./NodeFault.js"
import type { OpContext } from "./Preparation.js"
import * as Signing from "./Signing.js"

/** One op, estimated and simulated, ready to be accepted and then signed. */
export interface Ready extends Signing.Unsigned {
  readonly op: UserOperation
  readonly space: NonceSpace
  readonly nonceKey: bigint
  readonly sequence: bigint
  /** Wei that its wallet may have to pay at most. */
  readonly reserve: bigint
  /** Wei that layer 1 may ask of the submitter for the op's data. */
  readonly l1Fee: bigint
  /** What its call returned in the simulation. */
  readonly returned: Hex.Hex
}

/** Whose ops these are, and who brings them where. */
export interface SubmissionRoute {
  readonly caller: Caller
  readonly context: OpContext
  readonly submitter: Signer
  /** How the submitter's lane goes on without the request. */
  readonly access: LaneAccess
}

export interface Bounds {
  readonly prices: FeePrices
  /** Gas that one transaction may have. */
  readonly gasBound: bigint
}

/** What a try did. Elements that are neither sent nor in a map were refused only for the company they were in. */
export interface SendResult {
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Refused because the chain is not as it was when they were prepared: worth another look, a bit later. */
  readonly outdated: ReadonlyMap<number, ElementFailure>
  /** What stands in the way of every other bundle of the request as well. */
  readonly forAll: ElementFailure | null
  /** The node failed before anything was sent: all of it is worth another try. */
  readonly fault: NodeFault | null
  /** All of them are on their way: what becomes of them will be told. */
  readonly isSent: boolean
}

/** A run of ops that stays together, and whether it is of one component only. */
interface Block {
  readonly ops: ReadonlyArray<Ready>
  readonly single: boolean
}

/** The shortest runs of ops that part no component: what stands between two ops of one is with them. */
const blocksOf = (ops: ReadonlyArray<Ready>, components: ReadonlyArray<number>): ReadonlyArray<Block> => {
  const of = ({ index }: Ready) => components[index] ?? index
  const last = new Map(ops.map((ready, position) => [of(ready), position]))
  const blocks: Array<Block> = []
  for (let from = 0, end = 0; from < ops.length; from = end + 1) {
    end = from
    for (let at = from; at <= end; at += 1) {
      const ready = ops[at]
      if (ready !== undefined) end = Math.max(end, last.get(of(ready)) ?? at)
    }
    const run = ops.slice(from, end + 1)
    blocks.push({ ops: run, single: new Set(run.map(of)).size === 1 })
  }
  return blocks
}

/** How ops are parted into transactions. */
export interface Split {
  readonly bundles: ReadonlyArray<ReadonlyArray<Ready>>
  /** What does not fit into one transaction. */
  readonly tooLarge: ReadonlyArray<number>
  /** Something of that may fit once what hangs together is in one piece. */
  readonly scattered: boolean
}

/**
 * As few bundles as possible, in order, none of which parts what depends on each other; what does not fit even alone
 * is left out.
 */
export const split = (
  { context: { buffers, connection, version } }: Pick<SubmissionRoute, "context">,
  { gasBound }: Pick<Bounds, "gasBound">,
  ops: ReadonlyArray<Ready>,
  dependencies: Dependencies.Dependencies = []
): Split => {
  const fits = (some: ReadonlyArray<Ready>) =>
    Either.isRight(
      Gas.transactionGasLimit(
        version,
        some.map(({ op }) => op),
        {
          bound: gasBound,
          overshoot: buffers.transaction,
          withoutPostOp: connection.profile.sponsor?.paymaster ?? null
        }
      )
    )
  const among = ops.map(({ index }) => index)
  const components = Dependencies.components(Dependencies.within(dependencies, among))
  const bundles: Array<ReadonlyArray<Ready>> = []
  const tooLarge: Array<number> = []
  let scattered = false
  let open: ReadonlyArray<Ready> = []
  for (const block of blocksOf(ops, components)) {
    if (fits([...open, ...block.ops])) {
      open = [...open, ...block.ops]
      continue
    }
    if (open.length > 0) bundles.push(open)
    open = []
    if (fits(block.ops)) open = block.ops
    else {
      tooLarge.push(...block.ops.map(({ index }) => index))
      scattered ||= !block.single
    }
  }
  if (open.length > 0) bundles.push(open)
  return { bundles, tooLarge, scattered }
}

/** Ops that go in one transaction. */
export interface Transfer {
  readonly ops: ReadonlyArray<Ready>
  /** No other request's ops go with them. */
  readonly alone: boolean
}

/**
 * The ops in the order in which they are sent. What has come to nothing in a transaction that it shared goes without other
 * requests the next time, and after that each component of it goes by itself: an op that reverts its transaction takes
 * no other one with it for long. `shared` says how often that has happened to an element.
 */
export const transfers = (
  route: Pick<SubmissionRoute, "context">,
  bounds: Pick<Bounds, "gasBound">,
  ops: ReadonlyArray<Ready>,
  dependencies: Dependencies.Dependencies,
  shared: (index: number) => number
): { readonly transfers: ReadonlyArray<Transfer>; readonly tooLarge: ReadonlyArray<number> } => {
  const among = ops.map(({ index }) => index)
  const components = Dependencies.components(Dependencies.within(dependencies, among))
  const groups = new Map<string, { readonly ops: Array<Ready>; readonly alone: boolean }>()
  for (const ready of ops) {
    const component = components[ready.index] ?? ready.index
    const members = among.filter((index) => (components[index] ?? index) === component)
    const times = Math.max(...members.map(shared))
    const name = times === 0 ? "shared" : times === 1 ? "alone" : `component ${component}`
    const group = groups.get(name) ?? { ops: [], alone: times > 0 }
    groups.set(name, group)
    group.ops.push(ready)
  }
  const parts = [...groups.values()].map(({ alone, ops: own }) => ({
    alone,
    ...split(route, bounds, own, dependencies)
  }))
  return {
    transfers: parts.flatMap(({ alone, bundles }) => bundles.map((bundle) => ({ alone, ops: bundle }))),
    tooLarge: parts.flatMap((part) => part.tooLarge)
  }
}

const bundlerRefused = (message: string): ElementFailure =>
  elementFailure("bundler_refused", Reasons.text("bundlerRefused", { message }))

const bundlerFailure = (error: BundlerError, submitter: string): ElementFailure => {
  switch (error.reason) {
    case "insufficientFunds":
      return elementFailure(
        "insufficient_funds",
        Reasons.text("submitterFunds", { submitter, missing: error.missing }),
        { submitter, missing: error.missing.toString() }
      )
    case "unpaid":
      return elementFailure(
        "submission_unpaid",
        error.gas === null ? Reasons.text("notMeasured") : Reasons.text("chargedLess", error.gas)
      )
    case "refusedByBundler":
      return bundlerRefused(error.message)
    case "signerRefused":
    case "signerUnavailable":
      return elementFailure("signer_unavailable")
    default:
      return elementFailure("node_refused", Reasons.text("nodeRefused", { message: error.message }))
  }
}

/**
 * Signs one bundle of accepted ops and hands it to the bundler. Afterwards each op is `sent` or given up, never in
 * between.
 */
export const send = (
  { access, caller: { requestId }, context, submitter }: SubmissionRoute,
  { gasBound, prices }: Bounds,
  { alone, ops: bundle }: Transfer,
  revert: (data: Hex.Hex) => string
): Effect.Effect<SendResult, never, Bundler | ChainFacts | OpJournal | WakeUps> =>
  Effect.gen(function* () {
    const bundler = yield* Bundler
    const opJournal = yield* OpJournal
    const facts = yield* ChainFacts
    const wakeUps = yield* WakeUps
    const { buffers, connection, entryPoint, version } = context
    const failed = new Map<number, ElementFailure>()
    const outdated = new Map<number, ElementFailure>()
    const giveUp = (some: ReadonlyArray<Pick<Ready, "index">>) =>
      opJournal
        .abandonUnsigned(
          requestId,
          some.map(({ index }) => index)
        )
        .pipe(
          Effect.orDie,
          Effect.zipRight(wakeUps.signal({ chainId: connection.profile.chainId, signer: submitter.address }))
        )

    const none = { failed, outdated, forAll: null, fault: null, isSent: false }
    const signing = yield* Effect.either(Signing.sign(requestId, context, bundle, revert))
    if (Either.isLeft(signing)) {
      yield* giveUp(bundle)
      const obstacle = signing.left
      switch (obstacle._tag) {
        case "elements":
          return { ...none, failed: obstacle.failed }
        case "all":
          for (const { index } of bundle) failed.set(index, obstacle.failure)
          return { ...none, forAll: obstacle.failure }
        case "node":
          return { ...none, fault: obstacle.trouble }
      }
    }
    const { aggregate, ops, release } = signing.right
    const outcome = yield* Effect.either(
      bundler.submit({
        requestId,
        chain: connection.chain,
        profile: connection.profile,
        access,
        version,
        entryPoint,
        ops,
        aggregate,
        alone,
        submitter,
        prices,
        l1Fee: bundle.reduce((sum, { l1Fee }) => sum + l1Fee, 0n),
        gasBound,
        gasOvershoot: buffers.transaction
      })
    )
    if (Either.isRight(outcome)) {
      const refused = ops.filter(({ userOpHash }) => outcome.right.has(userOpHash))
      if (refused.length > 0) yield* Effect.zipRight(giveUp(refused), release(refused))
      for (const { index, userOpHash } of refused) {
        const refusal = outcome.right.get(userOpHash)
        const kind = refusal?.passing === true ? outdated : failed
        kind.set(index, bundlerRefused(refusal?.message ?? ""))
      }
      return { ...none, isSent: refused.length === 0 }
    }
    yield* giveUp(bundle)
    yield* release(ops)
    const error = outcome.left
    if (error.reason === "nodeUnreachable" || error.reason === "nodeFailed") {
      const failure = bundlerFailure(error, submitter.address)
      return { ...none, fault: { failure, unreachable: error.reason === "nodeUnreachable" } }
    }
    if (error.reason !== "rejected") {
      const failure = bundlerFailure(error, submitter.address)
      for (const { index } of bundle) failed.set(index, failure)
      return { ...none, forAll: failure }
    }
    const unsigned = ops.filter(({ userOpHash }) =>
      FailedOp.isSignature(error.dropped.get(userOpHash) ?? Hex.empty)
    )
    // What was signed for the configuration before the last rotation is prepared again, for the one in force.
    const rotated = yield* Epochs.failuresOf(
      context,
      { facts },
      unsigned.map(({ op }) => op)
    ).pipe(Effect.orElseSucceed(() => new Map<Address, ElementFailure>()))
    for (const { index, op, userOpHash } of ops) {
      const data = error.dropped.get(userOpHash)
      if (data === undefined) continue
      const changed = FailedOp.isSignature(data) ? rotated.get(op.sender) : undefined
      const kind = changed !== undefined || FailedOp.isOutdated(data) ? outdated : failed
      kind.set(
        index,
        changed ?? elementFailure("execution_failed", Reasons.text("reverted", { reason: revert(data) }))
      )
    }
    return none
  })
