import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { FeePrices } from "../../../domain/erc4337/gas/Fees.js"
import * as Replacement from "../../../domain/erc4337/gas/Replacement.js"
import * as Connection from "../../chain/Connection.js"
import * as EoaNonces from "../../chain/EoaNonces.js"
import * as Prices from "../../chain/Prices.js"
import * as Delays from "../../failures/Delays.js"
import { type Failure, unprocessable } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import * as Keys from "../../keys/Keys.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import type { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Lane, TransactionRecord } from "../../ports/journal/Transactions.js"
import type { Signer, SignerError } from "../../ports/Signers.js"
import { pause, requestKey, type Work } from "./LaneState.js"
import * as Record from "./Record.js"
import type { RepricingContext } from "./rules/Context.js"
import * as Pauses from "./rules/Pauses.js"

/**
 * Reprices a lane's waiting transactions on request, between bundles: each keeps its nonce and payload.
 *
 * Gotchas: the request's note lists replacements before they are made, so that they are reported even if the process dies. From
 * then on the request does not expire: the signed bytes belong to other requests.
 */

export const endpoint = "/unstuck"

/** Replacements of a request, oldest first. `newTxHash` and prices are absent until the new bytes are recorded. */
const Plan = Schema.fromJsonString(
  Schema.Struct({
    unknown: Schema.Array(Schema.Int),
    replaced: Schema.Array(
      Schema.Struct({
        nonce: Schema.BigIntFromString,
        oldTxHash: Schema.NullOr(Schema.String),
        newTxHash: Schema.optional(Schema.String),
        maxFeePerGas: Schema.optional(Schema.String),
        maxPriorityFeePerGas: Schema.optional(Schema.String)
      })
    ),
    /** All possible replacements are signed. */
    isSigned: Schema.optional(Schema.Boolean),
    /** Transaction mined under the first nonce; null: not the lane's. */
    txHash: Schema.optional(Schema.NullOr(Schema.String))
  })
)
export type Plan = typeof Plan.Type
export type Replaced = Plan["replaced"][number]

export const planOf = (note: string | null): Plan | null =>
  note === null ? null : Schema.decodeSync(Plan)(note)

/** Maximum unknown nonces per request. */
const maxUnknown = 64n

const most = 64

interface Seen {
  readonly quote: FeePrices
  readonly balance: bigint
  /** Waiting transactions with wanted nonces, and their next prices. */
  readonly priced: ReadonlyArray<{ readonly record: TransactionRecord; readonly prices: FeePrices }>
  readonly unknown: ReadonlyArray<bigint>
}

export const snapshot = (
  { buffers, connection }: RepricingContext,
  transactionJournal: Pick<TransactionJournal["Service"], "openOf" | "transactionsBetween">,
  lane: Lane,
  isWanted: (nonce: bigint) => boolean = () => true
): Effect.Effect<Seen, Failure | JournalError> =>
  Effect.gen(function* () {
    const { chain, profile, trust } = connection
    const answered = Effect.mapError(Connection.refusal(trust))
    const [quote, { latest, next }, balance] = yield* Effect.all(
      [
        Prices.now(connection, buffers.price),
        answered(EoaNonces.read(chain, lane.signer)),
        answered(chain.balance(lane.signer))
      ],
      { concurrency: "unbounded" }
    )
    const waiting = (yield* transactionJournal.openOf(lane)).filter(
      ({ nonce, state }) => state === "signed" && nonce >= latest && isWanted(nonce)
    )
    const end = BigInts.min(next, latest + maxUnknown)
    const known = latest < end ? yield* transactionJournal.transactionsBetween(lane, latest, end) : []
    const ours = new Set(known.map(({ nonce }) => nonce))
    const unknown: Array<bigint> = []
    for (let nonce = latest; nonce < end; nonce++)
      if (!ours.has(nonce) && isWanted(nonce)) unknown.push(nonce)
    const priced = yield* Effect.forEach(waiting, (record) =>
      Result.match(Replacement.prices({ ...Record.highestOf(record.versions), quote, caps: profile.caps }), {
        onFailure: ({ cap, needed }) =>
          Effect.fail(
            unprocessable("fees_above_cap", [
              { path: "", message: Reasons.text("replacementPrice", { nonce: record.nonce, needed, cap }) }
            ])
          ),
        onSuccess: (prices) => Effect.succeed({ record, prices })
      })
    )
    return { quote, balance, priced, unknown }
  })

const replacedOf = (
  record: Pick<TransactionRecord, "nonce" | "versions">,
  oldTxHash: string | null
): Replaced | null => {
  const old = record.versions.findIndex(({ txHash }) => txHash === oldTxHash)
  const version = record.versions[old + 1]
  return version === undefined || (old < 0 && oldTxHash !== null)
    ? null
    : {
        nonce: record.nonce,
        oldTxHash,
        newTxHash: version.txHash,
        maxFeePerGas: version.maxFeePerGas.toString(),
        maxPriorityFeePerGas: version.maxPriorityFeePerGas.toString()
      }
}

/** Whether a node or key may succeed later. Funds and the cap are judged once: the caller may repeat the request. */
const isAwaited = (failure: Failure): boolean =>
  failure.code !== "fees_above_cap" &&
  failure.code !== "insufficient_funds" &&
  Delays.ofFailure(failure) !== null

const path = "settings.signer"

const ofSigning =
  ({ address: signer }: Signer, nonce: bigint) =>
  (
    error: Record.LaneDamaged | Record.LaneFunds | SignerError | JournalError
  ): Effect.Effect<never, Failure | JournalError> => {
    if (error._tag === "JournalError") return Effect.fail(error)
    if (error._tag === "LaneFunds") {
      const message = Reasons.text("signerFunds", { signer, missing: error.missing })
      return Effect.fail(unprocessable("insufficient_funds", [{ path, message }]))
    }
    if (error._tag === "SignerError") return Effect.fail(Keys.refusal(path)(error))
    const failure = unprocessable("signer_unavailable", [
      { path, message: Reasons.text("notReplaceable", { nonce }) }
    ])
    return Effect.andThen(
      Effect.annotateLogs(Effect.logError("stored transaction cannot be replaced"), {
        nonce: nonce.toString(),
        detail: error.message
      }),
      Effect.fail(failure)
    )
  }

/** Replaces the rest of a plan; returns all replacements so far, and the failure that stopped it. */
const replaceRest = (work: Work, context: RepricingContext, plan: Plan) =>
  Effect.gen(function* () {
    const { monitor, state, transactionJournal } = work
    const { lane } = state
    const { chain, profile } = context.connection
    const done = new Map<bigint, Replaced>()
    for (const { nonce, oldTxHash } of plan.replaced)
      for (const record of yield* transactionJournal.transactionsBetween(lane, nonce, nonce + 1n)) {
        const before = replacedOf(record, oldTxHash)
        if (before !== null) done.set(nonce, before)
      }
    const wanted = new Map(plan.replaced.map(({ nonce, oldTxHash }) => [nonce, oldTxHash]))
    const note = (record: TransactionRecord | null) => {
      const replaced = record === null ? null : replacedOf(record, wanted.get(record.nonce) ?? null)
      if (record === null || replaced === null) return Effect.void
      done.set(record.nonce, replaced)
      return monitor.watch({ chain, profile, record })
    }
    const failure = yield* Effect.gen(function* () {
      const seen = yield* snapshot(
        context,
        transactionJournal,
        lane,
        (nonce) => wanted.has(nonce) && !done.has(nonce)
      )
      const signer = yield* Effect.mapError(work.signerOf(context.access), Keys.refusal(path))
      const { balance, quote: prices } = seen
      for (const chainNonce of seen.unknown) {
        const filler = { access: context.access, signer, prices, chainNonce, balance }
        const filled = Record.fill(transactionJournal, lane.chainId, filler)
        yield* note(yield* Effect.catch(filled, ofSigning(signer, chainNonce)))
      }
      for (const { prices, record } of seen.priced) {
        const replaced = Record.replace(transactionJournal, record, signer, prices)
        yield* note(yield* Effect.catch(replaced, ofSigning(signer, record.nonce)))
      }
      return null
    }).pipe(
      Effect.catch((error) => (error._tag === "JournalError" ? Effect.fail(error) : Effect.succeed(error)))
    )
    const replaced = [...done.values()].toSorted((one, other) => (one.nonce < other.nonce ? -1 : 1))
    return { replaced, failure }
  })

/** Transaction mined under the plan's first nonce; undefined: still waiting. */
const minedOf = ({ state: { lane }, transactionJournal }: Work, { replaced: [oldest] }: Plan) =>
  Effect.gen(function* () {
    if (oldest === undefined) return null
    const [record] = yield* transactionJournal.transactionsBetween(lane, oldest.nonce, oldest.nonce + 1n)
    return record?.state === "signed" ? undefined : (record?.mined?.txHash ?? null)
  })

const resume = (work: Work, requestId: string) =>
  Effect.gen(function* () {
    const { opJournal, preparing, requestJournal, state, transactionJournal } = work
    const { lane } = state
    const wait = (why: string) => pause(state, [requestKey(requestId)], why)
    const end = (failure: Failure | null) =>
      Effect.gen(function* () {
        if (failure !== null && isAwaited(failure)) return yield* wait(failure.message)
        const message = failure?.details[0]?.message ?? failure?.message ?? ""
        const failed = failure === null ? [] : [{ index: 0, code: failure.code, message, figures: {} }]
        yield* opJournal.fail(lane, [{ requestId, failed, done: failure === null ? [0] : [] }])
        state.repricings.delete(requestId)
        yield* work.affected([requestId])
      })
    const asked = yield* Effect.result(preparing.repricingOf(requestId, lane.chainId))
    if (Result.isFailure(asked)) return yield* wait(asked.failure.why)
    const { context, fillUnknown } = asked.success
    const [request] = yield* requestJournal.requests([requestId])
    if (request === undefined || request.outcome !== null || request.cancelled !== null) {
      state.repricings.delete(requestId)
      return
    }
    const keep = (plan: Plan) =>
      Effect.as(requestJournal.note(requestId, Schema.encodeSync(Plan)(plan)), plan)
    let plan = planOf(request.note)
    if (plan === null) {
      const snapshotted = yield* Effect.result(snapshot(context, transactionJournal, lane))
      if (Result.isFailure(snapshotted)) {
        const { failure } = snapshotted
        return failure._tag === "JournalError" ? yield* failure : yield* end(failure)
      }
      const { priced, unknown } = snapshotted.success
      plan = yield* keep({
        unknown: fillUnknown ? [] : unknown.map(Number),
        replaced: [
          ...(fillUnknown ? unknown.map((nonce) => ({ nonce, oldTxHash: null })) : []),
          ...priced.map(({ record: { nonce, versions } }) => ({
            nonce,
            oldTxHash: versions.at(-1)?.txHash ?? null
          }))
        ]
      })
    }
    if (plan.isSigned !== true) {
      const { failure, replaced } = yield* work.exclusive(lane, replaceRest(work, context, plan))
      // Signed replacements are reported even after a failure; a request without any fails.
      if (failure !== null && (replaced.length === 0 || isAwaited(failure))) return yield* end(failure)
      plan = yield* keep({ ...plan, replaced, isSigned: true })
    }
    const txHash = yield* minedOf(work, plan)
    if (txHash === undefined) return
    yield* keep({ ...plan, txHash })
    yield* end(null)
  })

/** Continues all repricing requests of the lane. */
export const turn = (work: Work, now: number) =>
  Effect.gen(function* () {
    const { requestJournal, state } = work
    if (state.mayReprice) {
      state.mayReprice = false
      for (const { requestId } of yield* requestJournal.unopened(state.lane, most, endpoint))
        state.repricings.add(requestId)
    }
    for (const requestId of state.repricings)
      if (!Pauses.isPaused(state.pauses, requestKey(requestId), now))
        yield* Effect.annotateLogs(resume(work, requestId), { requestId, endpoint })
  })
