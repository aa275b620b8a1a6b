import { describe, expect, it } from "@effect/vitest"
import * as TransactionState from "../../../../src/application/lanes/monitor/TransactionState.js"
import type { Block, Receipt } from "../../../../src/application/ports/chain/ChainRpc.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Cells from "../../../support/Cells.js"
import * as Make from "../../../support/journal/Make.js"
import { callers, recordOf } from "../../../support/lanes/Monitor.js"

const now = 1_000_000

const receipt: Receipt = {
  txHash: Make.word(1),
  success: true,
  blockNumber: 10n,
  blockHash: Make.word(10),
  gasUsed: 21_000n,
  cumulativeGasUsed: 21_000n,
  effectiveGasPrice: 1n,
  from: Address.zero,
  logs: []
}
const moved: Receipt = { ...receipt, blockHash: Make.word(11) }
const replaced: Receipt = { ...receipt, txHash: Make.word(2) }

const mined = (missedSince: number | null): TransactionState.State => ({
  _tag: "mined",
  blockHash: receipt.blockHash,
  txHash: receipt.txHash,
  missedSince
})

const states = {
  signed: { _tag: "signed" },
  mined: mined(null),
  missed: mined(now - TransactionState.missedMillis + 1),
  missedLong: mined(now - TransactionState.missedMillis),
  settled: { _tag: "settled" },
  externallyUsed: { _tag: "externallyUsed" }
} as const satisfies Readonly<Record<string, TransactionState.State>>

const events = {
  silent: { _tag: "silent" },
  unseen: { _tag: "unseen" },
  shallow: { _tag: "shown", receipt, depth: "shallow" },
  confirmed: { _tag: "shown", receipt, depth: "confirmed" },
  final: { _tag: "shown", receipt, depth: "final" },
  inAnotherBlock: { _tag: "shown", receipt: moved, depth: "final" },
  asAnotherVersion: { _tag: "shown", receipt: replaced, depth: "final" },
  blockKept: { _tag: "blockKept", depth: "confirmed" },
  blockKeptFinal: { _tag: "blockKept", depth: "final" },
  blockReplaced: { _tag: "blockReplaced" },
  nonceUsed: { _tag: "nonceUsed", depth: "confirmed" },
  nonceUsedFinal: { _tag: "nonceUsed", depth: "final" },
  nonceOpen: { _tag: "nonceOpen" }
} as const satisfies Readonly<Record<string, TransactionState.Event>>

type Name = keyof typeof states

/** Next state, and action if any. `missed`: since now, or since first missed. prose-ignore-next long: a table */
const table = `
                  signed                            mined             missed            missedLong        settled            externallyUsed
silent            signed                            mined             missed            missedLong        settled            externallyUsed
unseen            signed/care                       missed            missed            signed/withdraw   settled            externallyUsed
shallow           signed                            mined             mined             mined             settled            externallyUsed
confirmed         mined/record                      mined             mined             mined             settled            externallyUsed
final             settled/record                    settled/finalise  settled/finalise  settled/finalise  settled            externallyUsed
inAnotherBlock    settled/record                    missed            signed/withdraw   signed/withdraw   settled            externallyUsed
asAnotherVersion  settled/record                    missed            signed/withdraw   signed/withdraw   settled            externallyUsed
blockKept         signed                            mined             mined             mined             settled            externallyUsed
blockKeptFinal    signed                            settled/finalise  settled/finalise  settled/finalise  settled            externallyUsed
blockReplaced     signed                            missed            signed/withdraw   signed/withdraw   settled            externallyUsed
nonceUsed         signed                            missed            missed            missedLong        settled            externallyUsed
nonceUsedFinal    externallyUsed/recordExternalUse  missed            signed/withdraw   signed/withdraw   settled            externallyUsed
nonceOpen         signed/care                       missed            missed            signed/withdraw   settled/broadcastAgain externallyUsed/report
`

describe("a transaction", () => {
  it.each(Cells.of<keyof typeof events, Name>(table))(
    "after event %s in state %s becomes %s",
    (event, state, cell) => {
      const [next = "signed", action = "none"] = cell.split("/") as [Name, string?]
      const step = TransactionState.step(states[state], events[event], now)
      const newlyMissed = state === "mined" && next === "missed"
      expect(step.state).toEqual(newlyMissed ? mined(now) : states[next])
      expect(step.action._tag).toBe(action)
    }
  )

  it("is recorded as the node showed it, and settled only at settled depth", () => {
    const { signed } = states
    expect(TransactionState.step(signed, events.confirmed, now).action).toMatchObject({
      receipt,
      final: false
    })
    expect(TransactionState.step(signed, events.inAnotherBlock, now)).toMatchObject({
      action: { receipt: moved, final: true }
    })
  })
})

const block = (number: bigint): Block => ({
  number,
  hash: Make.word(Number(number)),
  timestamp: 0,
  gasLimit: 30_000_000n,
  baseFeePerGas: 1n
})

const answer = (rest: Partial<TransactionState.Answer>): TransactionState.Answer => ({
  isOperators: false,
  isWitness: false,
  receipt: null,
  head: null,
  block: null,
  ...rest
})

describe("the event from several nodes' replies", () => {
  const depths = { confirmations: 2, settledDepth: 4 }
  const waiting = { state: "signed", mined: null } as const
  const { blockHash, blockNumber, success, txHash } = receipt
  const inBlock = { state: "mined", mined: { blockHash, blockNumber, success, txHash } } as const
  const eventOf = (
    record: typeof waiting | typeof inBlock,
    ...answers: ReadonlyArray<TransactionState.Answer>
  ) => TransactionState.eventOf(record, answers, depths)

  it("is silent when no node replies, and unseen when no node shows a receipt", () => {
    expect(eventOf(waiting)).toEqual({ _tag: "silent" })
    expect(eventOf(inBlock)).toEqual({ _tag: "silent" })
    expect(eventOf(waiting, answer({}), answer({ isOperators: true }))).toEqual({ _tag: "unseen" })
  })

  it("is the receipt of any node; if two differ, the operator's", () => {
    const shown = answer({ receipt, head: block(11n) })
    const operators = { isOperators: true, head: block(13n) }
    expect(eventOf(waiting, shown, answer(operators))).toEqual({ _tag: "shown", receipt, depth: "confirmed" })
    expect(eventOf(waiting, shown, answer({ ...operators, receipt: moved }))).toMatchObject({
      receipt: moved,
      depth: "final"
    })
  })

  it("is, for a mined transaction, its witness's reply, or that of others while the witness is silent", () => {
    const lagging = answer({ isOperators: true })
    const witness = answer({ isWitness: true, receipt, head: block(11n) })
    expect(eventOf(inBlock, lagging, witness)).toMatchObject({ _tag: "shown", depth: "confirmed" })
    expect(eventOf(inBlock, lagging)).toEqual({ _tag: "unseen" })
    expect(eventOf(inBlock, answer({ isWitness: true, block: "replaced" }), lagging)).toEqual({
      _tag: "blockReplaced"
    })
    expect(eventOf(inBlock, answer({ isWitness: true, block: "kept", head: block(13n) }))).toEqual({
      _tag: "blockKept",
      depth: "final"
    })
  })

  it("ignores blocks for a transaction that is not mined, or has no recorded block", () => {
    const { mined } = inBlock
    const told = answer({ isWitness: true, block: "replaced" })
    expect(TransactionState.eventOf({ state: "signed", mined }, [told], depths)).toEqual({ _tag: "unseen" })
    expect(TransactionState.eventOf({ state: "mined", mined: null }, [told], depths)).toEqual({
      _tag: "unseen"
    })
  })

  it("counts the including block in its depth, which is shallow without a head", () => {
    const depthAt = (head: bigint | null) =>
      TransactionState.depthOf(10n, head === null ? null : block(head), depths)
    expect([null, 9n, 10n, 11n, 12n, 13n].map(depthAt)).toEqual([
      "shallow",
      "shallow",
      "shallow",
      "confirmed",
      "confirmed",
      "final"
    ])
    expect(TransactionState.depthOf(10n, null, { confirmations: 1, settledDepth: 1 })).toBe("final")
  })
})

describe("the state of a transaction in the journal", () => {
  const record = recordOf(0, callers)
  const { blockHash, blockNumber, success, txHash } = receipt
  const inBlock = { blockHash, blockNumber, success, txHash }

  it("follows its record", () => {
    expect(TransactionState.from(record)).toEqual(states.signed)
    expect(TransactionState.from({ ...record, state: "mined", mined: inBlock })).toEqual(states.mined)
    expect(TransactionState.from({ ...record, state: "settled", mined: inBlock })).toEqual(states.settled)
    expect(TransactionState.from({ ...record, state: "external" })).toEqual(states.externallyUsed)
  })

  it("is signed if its block is unknown, or if it left its block", () => {
    expect(TransactionState.from({ ...record, state: "mined", mined: null })).toEqual(states.signed)
    expect(TransactionState.from({ ...record, state: "signed", mined: inBlock })).toEqual(states.signed)
  })

  it("keeps the time since which a mined transaction is missed", () => {
    expect(TransactionState.from({ ...record, state: "mined", mined: inBlock }, now)).toEqual(mined(now))
  })
})
