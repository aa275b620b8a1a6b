import * as Effect from "effect/Effect"
import * as Holding from "../../../src/application/ports/journal/Holding.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import type { Op, OpId, Recording } from "../../../src/application/ports/journal/Records.js"
import type { FailedElement } from "../../../src/application/ports/journal/Requests.js"
import type { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"

/** The worker's journal as rows in memory: the oracle of its tests. */
export const make = () => {
  const ops = new Map<OpId, Op>()
  const failed = new Map<string, Array<FailedElement>>()
  const transactions = new Map<bigint, Recording>()
  const closed = new Set<bigint>()
  const reads: Array<number> = []
  const renewed: Array<OpId> = []
  /** Held requests, for the operator to decide. */
  const held = new Set<OpId>()
  /** Failures of the next `record` calls, before or after their effect. */
  const faults: { before: JournalError | null; after: JournalError | null } = { before: null, after: null }
  /** The process's claim of the lane. */
  const claim = { epoch: 1 }
  let lastId = 0

  const fenced = <A>(write: Effect.Effect<A, JournalError>): Effect.Effect<A, JournalError> =>
    Effect.flatMap(Holding.begun, ({ holding }) =>
      holding === null || holding.epoch === claim.epoch ? write : Effect.fail(lost)
    )

  const all = (state: Op["state"]): ReadonlyArray<Op> => [...ops.values()].filter((op) => op.state === state)
  const put = (op: Op): void => {
    ops.set(op.opId, op)
    lastId = Math.max(lastId, op.opId)
  }
  const nonceOf = ({ nonceKey, sequence, space }: Op): string => `${space.wallet} ${nonceKey} ${sequence}`
  const find = (requestId: string, index: number): Op | undefined =>
    all("accepted").find((op) => op.requestId === requestId && op.index === index)

  const opJournal: Pick<OpJournal["Service"], "fail" | "ready" | "renew" | "renumber"> = {
    ready: (_, limit) =>
      Effect.sync(() => {
        reads.push(limit)
        return all("accepted")
          .filter(({ opId }) => !held.has(opId))
          .toSorted((one, other) => one.opId - other.opId)
          .slice(0, limit)
      }),
    fail: (_, failures) =>
      fenced(
        Effect.sync(() => {
          for (const { failed: elements, requestId } of failures) {
            failed.set(requestId, [...(failed.get(requestId) ?? []), ...elements])
            for (const { index } of elements) {
              const op = find(requestId, index)
              if (op !== undefined) put({ ...op, state: "abandoned" })
            }
          }
        })
      ),
    renew: (_, prepared) =>
      fenced(
        Effect.sync(() =>
          prepared.map((each) => {
            const op = find(each.requestId, each.index)
            if (op === undefined) return null
            renewed.push(op.opId)
            const next: Op = { ...op, prepared: each, userOpHash: each.userOpHash }
            if (!op.exposed) {
              put(next)
              return op.opId
            }
            put({ ...op, state: "abandoned" })
            put({ ...next, opId: lastId + 1 })
            return lastId
          })
        )
      ),
    renumber: (_, prepared) =>
      fenced(
        Effect.sync(() => {
          const moved = prepared.map((each) => ({ each, op: find(each.requestId, each.index) }))
          const ids = new Set(moved.map(({ op }) => op?.opId))
          const taken = new Set(
            [...ops.values()].filter((op) => op.state !== "abandoned" && !ids.has(op.opId)).map(nonceOf)
          )
          for (const { each, op } of moved) {
            const { index, requestId } = each
            if (op === undefined) return { _tag: "notReady", requestId, index }
            const { nonceKey, sequence, userOpHash } = each
            const next: Op = { ...op, nonceKey, sequence, prepared: each, userOpHash }
            if (taken.has(nonceOf(next))) return { _tag: "nonceTaken", requestId, index }
            put(next)
          }
          return { _tag: "renumbered", opIds: moved.flatMap(({ op }) => op?.opId ?? []) }
        })
      )
  }

  const records = (): ReadonlyArray<TransactionRecord> =>
    [...transactions.values()].map((recording) => ({
      ...recording,
      state: "signed",
      versions: [recording],
      signedAt: 0,
      ops: [],
      direct: null,
      mined: null
    }))

  const transactionJournal: Pick<
    TransactionJournal["Service"],
    "nextNonce" | "openOf" | "record" | "replace" | "transactionsBetween"
  > = {
    transactionsBetween: (_, from, below) =>
      Effect.sync(() => records().filter(({ nonce }) => nonce >= from && nonce < below)),
    nextNonce: (_, chainNonce) =>
      Effect.sync(() => {
        let nonce = chainNonce
        while (transactions.has(nonce)) nonce += 1n
        return { nonce, isGap: chainNonce > 0n && !transactions.has(chainNonce - 1n) }
      }),
    record: (recording) =>
      fenced(
        Effect.gen(function* () {
          const { before } = faults
          faults.before = null
          if (before !== null) return yield* before
          if (transactions.has(recording.nonce)) return { _tag: "nonceUsed" }
          const open = [...transactions.values()].filter(({ nonce }) => !closed.has(nonce))
          const reserved = open.reduce((sum, { maxCost }) => sum + maxCost, 0n)
          if (reserved + recording.maxCost > recording.balance) return { _tag: "insufficientFunds", reserved }
          const gone = recording.ops.filter(
            ({ opId, userOpHash }) =>
              ops.get(opId)?.state !== "accepted" || (ops.get(opId)?.userOpHash ?? userOpHash) !== userOpHash
          )
          if (gone.length > 0) return { _tag: "givenUp", opIds: gone.map(({ opId }) => opId) }
          transactions.set(recording.nonce, recording)
          for (const { opId } of recording.ops) {
            const op = ops.get(opId)
            if (op !== undefined) put({ ...op, state: "sent", exposed: true, txHash: recording.txHash })
          }
          const { after } = faults
          faults.after = null
          if (after !== null) return yield* after
          return { _tag: "recorded" }
        })
      ),
    replace: () => Effect.die(new Error("no worker replaces")),
    openOf: () => Effect.sync(records)
  }

  return {
    opJournal,
    transactionJournal,
    ops,
    put,
    failed,
    transactions,
    reads,
    renewed,
    held,
    faults,
    claim,
    all,
    /** The transaction of the nonce is mined: these of its ops have landed, the others are ready again. */
    settle: (nonce: bigint, landed: ReadonlySet<OpId>): void => {
      closed.add(nonce)
      for (const { opId } of transactions.get(nonce)?.ops ?? []) {
        const op = ops.get(opId)
        if (op !== undefined) put({ ...op, state: landed.has(opId) ? "settled" : "accepted", success: true })
      }
    }
  }
}

export type Rows = ReturnType<typeof make>

export const away = new JournalError({ message: "the store is away" })
export const lost = new JournalError({ message: "another process has the lane", isFenced: true })
