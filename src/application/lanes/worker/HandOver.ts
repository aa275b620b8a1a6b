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
import type * as Bundle from "./rules/Bundle.js"
import * as Choose from "./rules/Choose.js"
import { type Obstacle, type OpContext, obstacle } from "./rules/Context.js"
import * as Pauses from "./rules/Pauses.js"
import * as Queue from "./rules/Queue.js"
import { examine, isExamined } from "./Unknown.js"
import { fail, isStale, lookUp, prepareAgain, renumber, revive, sign } from "./Upkeep.js"

/**
 * How a lane's worker brings ops onto the chain through somebody else's bundler.
 *
 * 1. It hears what the bundler has refused.
 * 2. It chooses the next op of each nonce key, once what the op depends on is on the chain.
 * 3. It prepares again what has become stale, and signs.
 * 4. It records the ops as handed over, in one transaction, and gives each to the bundler. `RemoteOps` follows them.
 *
 * Gotchas: from the moment before it is given away an op counts as perhaps sent. A refusal does not take it back: the bundler
 * has it, signed, and nothing in it says who may submit it. It is given up when it can land no more. What has no end is given
 * up at once: whoever signed it without one may have it submitted at any time, by anybody.
 */

const refused = (message: string): ElementFailure =>
  elementFailure("bundler_refused", Reasons.text("bundlerRefused", { message }))

/** A refusal for what an op pays: the same op at the present prices may be taken. */
const isPrice = ({ message, reason }: BundlerRpcError): boolean =>
  (reason === "invalid" || reason === "validation") &&
  /fee|underpriced|gas ?price|preVerificationGas/i.test(message)

const elementOf = ({ index, requestId }: Bundle.Held): string => `${requestId} ${index}`

/** What the bundler has refused since the last turn, and will not take again. */
export const hear = (work: Work) =>
  Effect.gen(function* () {
    const { remote, state } = work
    const { closed, refusals, repriced } = state.handed
    // Each stays until the journal has it.
    for (let next = refusals[0]; next !== undefined; refusals.shift(), next = refusals[0]) {
      const { entry, error, op } = next
      if (isPrice(error) && !repriced.has(elementOf(op))) {
        yield* remote.journal.takeBack(state.lane, [op], false)
        yield* remote.ops.forget(entry)
        repriced.add(elementOf(op))
        closed.delete(Choose.keyOf(op))
        state.sequences.set(Choose.keyOf(op), op.sequence)
        state.queue = { ...state.queue, hasMore: true }
        continue
      }
      yield* remote.refused([op.requestId])
      yield* fail(work, new Map([[op.opId, refused(error.message)]]), [op])
      if (entry.validUntil === 0) {
        yield* remote.journal.takeBack(state.lane, [op], true)
        yield* remote.ops.forget(entry)
      }
    }
  })

/** What keeps an op from going now or ever, by what the journal says of the element that it depends on. */
const standingOf = (
  { failed, ops }: Pick<RequestRecord, "failed" | "ops">,
  index: number
): "landed" | "failed" | "open" => {
  const op = ops.find((each) => each.index === index)
  if (op?.state === "settled") return op.success === true ? "landed" : "failed"
  return failed.some((each) => each.index === index) ? "failed" : "open"
}

/** Those of the ops that depend on nothing, or on what has landed. What depends on a failure fails. */
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

/** The next op of each nonce key; and what has to be done with others before any can go. */
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

/** By bundler, the chains and EntryPoints that it has said to serve. */
const serving = new WeakMap<BundlerClient, Set<string>>()

/** The bundler, once it has said that it serves the chain and the EntryPoint. */
const clientOf = (
  { remote }: Work,
  { connection: { profile }, entryPoint }: OpContext
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
      error._tag === "Obstacle" ? error : obstacle(`the bundler can not be used: ${error.message}`)
    )
  )

/** The latest block, and the chain's sequences of nonce keys that are not known here. False: they are others than was thought. */
const look = (
  work: Work,
  { connection: { chain }, entryPoint }: OpContext,
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
          ({ key, wallet }) => chain.call({ to: entryPoint, data: Nonce.question(wallet, key) }),
          { concurrency: "unbounded" }
        )
      ],
      { concurrency: "unbounded" }
    )
    const sequences = answers.map(Nonce.answered)
    if (block === null || sequences.includes(null))
      return yield* new ChainRpcError({
        reason: "notAnRpc",
        origin: chain.origin,
        message: "it does not tell the latest block, or the nonce of a wallet"
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

/** A call that failed may have been durable: the same again does no harm. */
const again = Schedule.max([Schedule.exponential("100 millis"), Schedule.recurs(5)])

/** Records the ops as handed over, and gives them to the bundler. */
const give = (
  work: Work,
  { access, connection: { chain, profile }, entryPoint, version }: OpContext,
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
            return state.rouse
          })
      )
    }
    // What is not recorded is out of date: the rest of it may be, too.
    if (recorded.size < signed.length) state.queue = { ...state.queue, hasMore: true }
    state.turns += 1
    for (const { held } of signed) state.servedAt.set(held.accountId, state.turns)
    forget(
      state,
      signed.map(({ held }) => held)
    )
  }).pipe(Effect.uninterruptible)

/** Hands over what can go. True: another turn may do more at once. */
export const turn = (work: Work, ops: ReadonlyArray<Bundle.Held>, now: number) =>
  Effect.gen(function* () {
    const { state } = work
    const aggregated = ops.filter(({ context }) => context?.kind === "ops" && context.aggregator !== null)
    if (aggregated.length > 0) {
      const failure = refused("it takes no ops of aggregators")
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
    // An op that a process before has handed over goes first, perhaps: the chain is asked again.
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
      Effect.all([clientOf(work, context), look(work, context, chosen)], { concurrency: "unbounded" })
    )
    if (Result.isFailure(ready)) {
      const { failure } = ready
      yield* pause(state, chosen, failure._tag === "Obstacle" ? failure.why : failure.message)
      return true
    }
    const [client, block] = ready.success
    // What the block says of the prices, or of the nonces, may change the choice.
    if (block === null || (yield* Effect.filter(chosen, (op) => isStale(work, op))).length > 0) return true
    const made = yield* sign(work, chosen)
    const signed = chosen.flatMap((held) => {
      const op = made.get(held.opId)
      return op === undefined ? [] : [{ held, op }]
    })
    if (signed.length > 0) yield* give(work, context, client, block.number, signed)
    return true
  })
