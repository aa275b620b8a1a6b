import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import { dependencyFailed, type ElementFailure, elementFailure } from "../../failures/Elements.js"
import * as Reasons from "../../failures/Reasons.js"
import type { BundlerClient, BundlerRpcError } from "../../ports/chain/BundlerRpc.js"
import { ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { OpId, SignedOp } from "../../ports/journal/Records.js"
import type { RequestRecord } from "../../ports/journal/Requests.js"
import * as RemoteInclusions from "../remote/RemoteInclusions.js"
import { forget, mayGiveUp, pause, type Work } from "./LaneState.js"
import { examine, isExamined } from "./recovery/Unknown.js"
import type * as Bundle from "./rules/Bundle.js"
import * as Choose from "./rules/Choose.js"
import { type Obstacle, obstacle, type SubmissionContext } from "./rules/Context.js"
import * as Pauses from "./rules/Pauses.js"
import * as Queue from "./rules/Queue.js"
import { fail, isStale, lookUp, prepareAgain, renumber, revive, sign } from "./Upkeep.js"

/**
 * Brings a lane's ops onto the chain through a remote bundler.
 *
 * 1. Processes the bundler's refusals.
 * 2. Chooses the next op of each nonce key once its dependencies are on the chain.
 * 3. Prepares stale ops again, and signs.
 * 4. Records the ops as handed over in one transaction, and gives each to the bundler. `RemoteOps` follows them.
 *
 * Gotchas: an op counts as possibly sent from before its hand-over. A refusal does not undo that: the bundler has the signed
 * op, which does not name its submitter. The op is abandoned once it can no longer land. An op without an end of validity is
 * abandoned immediately: its signer accepted that anyone may submit it at any time.
 */

const refusal = (message: string): ElementFailure =>
  elementFailure("bundler_refused", Reasons.text("bundlerRefused", { message }))

/** A refusal of the op's price: the same op may be accepted at current prices. */
const isPrice = ({ message, reason }: BundlerRpcError): boolean =>
  (reason === "invalid" || reason === "validation") &&
  /fee|underpriced|gas ?price|preVerificationGas/i.test(message)

const elementOf = ({ index, requestId }: Bundle.Held): string => `${requestId} ${index}`

export const hear = (work: Work) =>
  Effect.gen(function* () {
    const { remote, state } = work
    const { closed, refusals, repriced } = state.handed
    // Each refusal stays until the journal has it.
    for (let next = refusals[0]; next !== undefined; refusals.shift(), next = refusals[0]) {
      const { entry, error, op } = next
      const { userOpHash } = entry.submission
      if (isPrice(error) && !repriced.has(elementOf(op))) {
        yield* remote.journal.takeBack(state.lane, [userOpHash], false)
        yield* remote.ops.forget(entry)
        repriced.add(elementOf(op))
        closed.delete(Choose.keyOf(op))
        state.sequences.set(Choose.keyOf(op), op.sequence)
        state.queue = { ...state.queue, hasMore: true }
        continue
      }
      yield* remote.refused([op.requestId])
      yield* fail(work, new Map([[op.opId, refusal(error.message)]]), [op])
      if (entry.validUntil === 0) {
        yield* remote.journal.takeBack(state.lane, [userOpHash], true)
        yield* remote.ops.forget(entry)
      }
    }
  })

/** State of the element that an op depends on, according to the journal. */
const standingOf = (
  { failed, ops }: Pick<RequestRecord, "failed" | "ops">,
  index: number
): "landed" | "failed" | "open" => {
  const op = ops.find((each) => each.index === index)
  if (op?.state === "settled") return op.success === true ? "landed" : "failed"
  return failed.some((each) => each.index === index) ? "failed" : "open"
}

/** Ops without dependencies, or whose dependencies landed. Dependants of a failure fail. */
const independent = (work: Work, ops: ReadonlyArray<Bundle.Held>) =>
  Effect.gen(function* () {
    const { queue } = work.state
    const ready = new Set(queue.ops.map(elementOf))
    const isFree = (op: Bundle.Held) => !op.dependsOn.some((index) => ready.has(`${op.requestId} ${index}`))
    const dependent = ops.filter((op) => op.dependsOn.length > 0 && isFree(op))
    if (dependent.length === 0) return ops.filter(({ dependsOn }) => dependsOn.length === 0)
    const records = yield* work.requestJournal.requests([
      ...new Set(dependent.map(({ requestId }) => requestId))
    ])
    const byId = new Map(records.map((record) => [record.requestId, record]))
    const failures = new Map<OpId, ElementFailure>()
    const landed = new Set<OpId>()
    for (const { dependsOn, opId, requestId } of dependent) {
      const record = byId.get(requestId)
      if (record === undefined) continue
      const lost = dependsOn.find((index) => standingOf(record, index) === "failed")
      if (lost !== undefined) failures.set(opId, dependencyFailed(lost))
      else if (dependsOn.every((index) => standingOf(record, index) === "landed")) landed.add(opId)
    }
    yield* fail(work, failures)
    return ops.filter(({ dependsOn, opId }) => dependsOn.length === 0 || landed.has(opId))
  })

/** The next op of each nonce key, and the ops that must be handled before it can go. */
const lines = (work: Work, ops: ReadonlyArray<Bundle.Held>, now: number) => {
  const { handed, sequences } = work.state
  const next: Array<Bundle.Held> = []
  const used: Array<Bundle.Held> = []
  const behind: Array<Bundle.Held> = []
  const stuck: Array<Bundle.Held> = []
  const renumbered: Array<Choose.Choice<Bundle.Held>["renumbered"][number]> = []
  for (const [key, own] of Map.groupBy(ops, Choose.keyOf)) {
    if (handed.sending.has(key)) continue
    const closed = handed.closed.get(key)
    if (closed !== undefined && own.every(({ exposed, sequence }) => sequence > closed && !exposed)) {
      behind.push(...own)
      continue
    }
    handed.closed.delete(key)
    const mayRenumber = own.every((op) => mayGiveUp(work.state, op, now))
    const line = Choose.lineOf(own, sequences.get(key), mayRenumber)
    used.push(...line.used)
    renumbered.push(...line.renumbered)
    const [first] = line.line
    if (first !== undefined) next.push(first)
    else if (line.used.length + line.renumbered.length === 0) stuck.push(...own)
  }
  return { behind, next, renumbered, stuck, used }
}

/** Chains and EntryPoints that each bundler serves. */
const serving = new WeakMap<BundlerClient, Set<string>>()

/** The bundler, once it has confirmed chain and EntryPoint. */
const clientOf = (
  { remote }: Work,
  { connection: { profile }, entryPoint }: SubmissionContext
): Effect.Effect<BundlerClient, Obstacle> =>
  Effect.gen(function* () {
    const { chainId, remoteBundler } = profile
    if (remoteBundler === null) return yield* Effect.fail(obstacle("the profile names no bundler"))
    const client = yield* remote.bundlers.connect(Redacted.value(remoteBundler))
    const served = serving.get(client) ?? new Set()
    if (served.has(`${chainId} ${entryPoint}`)) return client
    const [chain, entryPoints] = yield* Effect.all([client.chainId, client.entryPoints], {
      concurrency: "unbounded"
    })
    if (chain !== chainId) return yield* Effect.fail(obstacle(`the bundler serves chain ${chain}`))
    if (!entryPoints.includes(entryPoint))
      return yield* Effect.fail(obstacle(`the bundler does not serve EntryPoint ${entryPoint}`))
    serving.set(client, served.add(`${chainId} ${entryPoint}`))
    return client
  }).pipe(
    Effect.mapError((error) =>
      error._tag === "Obstacle" ? error : obstacle(`the bundler cannot be used: ${error.message}`)
    )
  )

/** Reads the latest block and unknown sequences of nonce keys. Null: a sequence differs from the expected one. */
const snapshot = (
  work: Work,
  { connection: { chain }, entryPoint }: SubmissionContext,
  ops: ReadonlyArray<Bundle.Held>
) =>
  Effect.gen(function* () {
    const { state } = work
    const unknown = ops.filter((op) => !state.sequences.has(Choose.keyOf(op)))
    const [block, answers] = yield* Effect.all(
      [
        chain.block("latest"),
        Effect.forEach(
          unknown,
          ({ key, wallet }) => chain.call({ to: entryPoint, data: Nonce.getNonceCall(wallet, key) }),
          { concurrency: "unbounded" }
        )
      ],
      { concurrency: "unbounded" }
    )
    const sequences = answers.map(Nonce.ofAnswer)
    if (block === null || sequences.includes(null))
      return yield* new ChainRpcError({
        reason: "notAnRpc",
        origin: chain.origin,
        message: "it does not return the latest block, or the nonce of a wallet"
      })
    if (state.newest === null || block.number >= state.newest.number) state.newest = block
    let isAsThought = true
    for (const [place, op] of unknown.entries()) {
      const sequence = sequences[place] ?? op.sequence
      state.sequences.set(Choose.keyOf(op), sequence)
      isAsThought &&= sequence === op.sequence
    }
    return isAsThought ? block : null
  })

/** A failed call may have been durable: a repeat does no harm. */
const again = Schedule.max([Schedule.exponential("100 millis"), Schedule.recurs(5)])

const give = (
  work: Work,
  { access, connection: { chain, profile }, entryPoint, version }: SubmissionContext,
  bundler: BundlerClient,
  since: bigint,
  signed: ReadonlyArray<{ readonly held: Bundle.Held; readonly op: SignedOp }>
) =>
  Effect.gen(function* () {
    const { remote, state } = work
    const { chainId, signer: authority } = state.lane
    const node = { rpc: access.rpc, trust: access.trust }
    const all = signed.map((each) => ({ ...each, bytes: UserOperation.encode(version, each.op.op) }))
    const ops = all.map(({ bytes, op: { opId, userOpHash } }) => ({ opId, userOpHash, signed: bytes }))
    const recorded = new Set(
      yield* Effect.retry(remote.journal.handOver(state.lane, { node, since, ops }), {
        schedule: again,
        while: ({ isFenced }) => isFenced !== true
      })
    )
    for (const { bytes, held, op } of all) {
      if (!recorded.has(held.opId)) continue
      const key = Choose.keyOf(held)
      state.handed.sending.add(key)
      state.sequences.set(key, held.sequence + 1n)
      yield* remote.ops.give(
        {
          chain,
          profile,
          bundler,
          offer: { version, entryPoint, op: op.op },
          validUntil: RemoteInclusions.validUntilOf(version, op.op),
          submission: {
            requestId: held.requestId,
            index: held.index,
            accountId: held.accountId,
            space: { authority, chainId, entryPoint, wallet: held.wallet },
            userOpHash: op.userOpHash,
            node,
            since,
            signed: bytes,
            isRefused: false,
            includedIn: null,
            landedAs: op.userOpHash
          }
        },
        (entry, error) =>
          Effect.suspend(() => {
            state.handed.sending.delete(key)
            if (error === null) state.handed.repriced.delete(elementOf(held))
            else {
              state.handed.closed.set(key, held.sequence)
              state.handed.refusals.push({ op: held, entry, error })
            }
            return state.resume
          })
      )
    }
    // An op that was not recorded is outdated; other queued ops may be, too.
    if (recorded.size < signed.length) state.queue = { ...state.queue, hasMore: true }
    state.turns += 1
    for (const { held } of signed) state.servedAt.set(held.accountId, state.turns)
    forget(
      state,
      signed.map(({ held }) => held)
    )
  }).pipe(Effect.uninterruptible)

/** Hands over ops that can go. True: another turn may do more immediately. */
export const turn = (work: Work, ops: ReadonlyArray<Bundle.Held>, now: number) =>
  Effect.gen(function* () {
    const { state } = work
    const aggregated = ops.filter(({ context }) => context?.kind === "ops" && context.aggregator !== null)
    if (aggregated.length > 0) {
      const failure = refusal("it takes no ops of aggregators")
      yield* fail(work, new Map(aggregated.map(({ opId }) => [opId, failure])))
      return true
    }
    const isHeld = ({ opId }: Bundle.Held): boolean =>
      Pauses.isPaused(state.pauses, opId, now) || state.signatures.isPending(opId)
    const old = ops.filter(
      (op) => op.op.acceptedAt < state.claimed.at && !isHeld(op) && !isExamined(state, op.context)
    )
    const past = old[0]?.context ?? null
    if (past !== null) {
      const answer = yield* Effect.result(examine(work, past))
      if (Result.isSuccess(answer)) return true
      yield* pause(state, old, answer.failure.why)
    }
    const { behind, next, renumbered, stuck, used } = lines(work, ops, now)
    const moving = behind.filter((op) => !isHeld(op))
    const doubtful = used.filter((op) => !isHeld(op))
    const gaps = renumbered.filter(({ op }) => !isHeld(op))
    if (moving.length > 0) yield* revive(work, moving)
    else if (doubtful.length > 0) yield* lookUp(work, doubtful)
    else if (gaps.length > 0) yield* renumber(work, gaps)
    if (moving.length + doubtful.length + gaps.length > 0) return true
    // An earlier process may have handed over the preceding op: read the chain again.
    const waiting = stuck.filter((op) => !isHeld(op))
    for (const op of waiting) state.sequences.delete(Choose.keyOf(op))
    yield* pause(state, waiting, "the nonce before its own is not used")
    const before = state.queue
    const free = yield* independent(
      work,
      next.filter((op) => !isHeld(op))
    )
    const [first] = free
    const context = first?.context ?? null
    if (first === undefined || context?.kind !== "ops") return state.queue !== before
    const chosen = free.filter(({ company }) => company === first.company).slice(0, Queue.bundle)
    const stale = yield* Effect.filter(chosen, (op) => isStale(work, op))
    if (stale.length > 0) {
      yield* prepareAgain(work, stale)
      return true
    }
    const ready = yield* Effect.result(
      Effect.all([clientOf(work, context), snapshot(work, context, chosen)], { concurrency: "unbounded" })
    )
    if (Result.isFailure(ready)) {
      const { failure } = ready
      yield* pause(state, chosen, failure._tag === "Obstacle" ? failure.why : failure.message)
      return true
    }
    const [client, block] = ready.success
    // The block's prices, or the nonces, may change the choice.
    if (block === null || (yield* Effect.filter(chosen, (op) => isStale(work, op))).length > 0) return true
    const made = yield* sign(work, chosen)
    const signed = chosen.flatMap((held) => {
      const op = made.get(held.opId)
      return op === undefined ? [] : [{ held, op }]
    })
    if (signed.length > 0) yield* give(work, context, client, block.number, signed)
    return true
  })
