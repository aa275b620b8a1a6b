import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import * as Troubles from "../../observe/Troubles.js"
import * as Holding from "../../ports/journal/Holding.js"
import type { TransactionVersion } from "../../ports/journal/Transactions.js"
import * as Wait from "../../runtime/Wait.js"
import type { FollowedTransaction, LaneNode } from "./FollowedTransaction.js"
import * as LaneNodes from "./LaneNodes.js"
import * as NodeAnswers from "./NodeAnswers.js"

/**
 * Polls a lane's nodes for `TransactionMonitor`, and broadcasts transactions to them. A node that does not reply delays
 * no other.
 */

/** Maximum receipts that a round requests from a node, in turn. */
const maxReceiptsPerRound = 256
/** Wait for a node's reply in a round, milliseconds; a later reply counts in the next round. */
const answerWaitMillis = 2_000
/** Interval at which a node is polled for transactions whose home is another node, milliseconds. */
const restMillis = 2_000
/** Wait for a node's reply to a broadcast, milliseconds; a slower node may have taken it. */
const broadcastWaitMillis = 1_000

export interface NodeReply {
  readonly node: LaneNode
  readonly answers: LaneNode["answers"]
}

/** Detaches shared work from the request that began it. */
export const detach = (effect: Effect.Effect<void>, scope: Scope.Scope): Effect.Effect<unknown> =>
  Effect.forkIn(Holding.outlive(Effect.provideService(effect, References.CurrentLogAnnotations, {})), scope)

/** Entries that a round polls: signed ones in turn, and the mined ones polled longest ago. */
export const turnOf = (all: ReadonlyArray<FollowedTransaction>): ReadonlyArray<FollowedTransaction> => {
  const signed = all.filter(({ record }) => record.state === "signed").slice(0, maxReceiptsPerRound)
  const mined = all
    .filter(({ record }) => record.state === "mined")
    .sort((a, b) => (a.checkedBlock < b.checkedBlock ? -1 : 1))
    .slice(0, Math.max(maxReceiptsPerRound - signed.length, 16))
  return [...signed, ...mined]
}

const troubleOf = (what: string, { chain }: LaneNode) => ({ what, place: chain.origin })

/** Starts a poll; its replies count in the round in which they arrive. */
const begin = (node: LaneNode, entries: ReadonlyArray<FollowedTransaction>, scope: Scope.Scope) =>
  Effect.gen(function* () {
    node.isBusy = true
    const done = yield* Deferred.make<void>()
    const troubles = yield* Troubles.Shared
    const answered = Effect.map(NodeAnswers.at(node, entries), (reply) => LaneNodes.note(node, reply))
    const poll = troubles.tolerate(troubleOf("poll of watched transactions crashed", node), answered).pipe(
      Effect.ensuring(
        Effect.suspend(() => {
          node.isBusy = false
          return Deferred.succeed(done, undefined)
        })
      )
    )
    yield* detach(poll, scope)
    return Deferred.await(done)
  })

/** Polls the lane's nodes concurrently; returns all replies since the last round. A silent node delays no other. */
export const ask = (
  lane: LaneNodes.LaneNodes,
  turn: ReadonlyArray<FollowedTransaction>,
  { now, scope }: { readonly now: number; readonly scope: Scope.Scope }
): Effect.Effect<ReadonlyArray<NodeReply>> =>
  Effect.gen(function* () {
    const questions = new Map<LaneNode, Array<FollowedTransaction>>()
    const guests = new Set<LaneNode>()
    for (const entry of turn) {
      const nodes = lane.of(entry)
      for (const node of LaneNodes.toPoll(entry, nodes, now)) {
        const of = questions.get(node)
        if (of === undefined) questions.set(node, [entry])
        else of.push(entry)
        if (node !== nodes[0]) guests.add(node)
      }
    }
    for (const node of guests) node.restsUntil = now + restMillis
    const [lively, silent]: [Array<Effect.Effect<void>>, Array<Effect.Effect<void>>] = [[], []]
    for (const [node, entries] of questions)
      if (!node.isBusy) {
        const done = node.isSilent ? silent : lively
        done.push(yield* begin(node, entries, scope))
      }
    // A node that was silent is awaited only if no other node is polled.
    const awaited = Effect.all(lively.length === 0 ? silent : lively, { concurrency: "unbounded" })
    yield* Wait.atMost(Effect.asVoid(awaited), answerWaitMillis, () => Effect.void)
    for (const node of questions.keys()) if (node.isBusy) node.isSilent = true
    return lane.all.map((node) => {
      const { answers } = node
      node.answers = new Map()
      return { node, answers }
    })
  })

/** Whether a node that refused a transaction has it anyway: nodes often do after a restart, and their error messages differ. */
const isThere = ({ chain }: LaneNode, { txHash }: TransactionVersion): Effect.Effect<boolean> =>
  chain.transaction(txHash).pipe(
    Effect.map((found) => found !== null),
    Effect.interruptible,
    Effect.catchCause(() => Effect.succeed(false))
  )

/** Broadcasts bytes to a node; returns whether it took them within `broadcastWaitMillis`. */
export const broadcast = (
  node: LaneNode,
  version: TransactionVersion,
  scope: Scope.Scope
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const { raw, txHash } = version
    const troubles = yield* Troubles.Shared
    const trouble = {
      ...troubleOf("the node did not take a transaction; it stays watched", node),
      isDelay: true
    }
    const refused = (cause: Cause.Cause<{ readonly message: string }>) =>
      Effect.annotateLogs(
        troubles.failed(
          trouble,
          Cause.map(cause, ({ message }) => message)
        ),
        { txHash }
      )
    const broadcasting = yield* Effect.forkIn(
      Effect.exit(Effect.interruptible(node.chain.sendRawTransaction(raw))).pipe(
        Effect.flatMap((exit) =>
          Exit.isSuccess(exit)
            ? Effect.as(troubles.passed(trouble), true)
            : Effect.tap(isThere(node, version), (there) => (there ? Effect.void : refused(exit.cause)))
        )
      ),
      scope,
      { uninterruptible: true }
    )
    if (node.isSilent) return false
    // The broadcast continues in `scope` when its caller leaves.
    const late = () =>
      Effect.sync(() => {
        node.isSilent = true
        return false
      })
    const answer = yield* Effect.exit(Wait.within(Fiber.join(broadcasting), broadcastWaitMillis, late))
    return Exit.isSuccess(answer) && answer.value
  })
