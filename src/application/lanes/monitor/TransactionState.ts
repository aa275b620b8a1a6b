import type { Block, Receipt } from "../../ports/chain/ChainRpc.js"
import type { TransactionRecord } from "../../ports/journal/Transactions.js"

/**
 * State machine of a transaction, driven by nodes' replies. Pure: every pair of state and event is tested; `TransactionMonitor`
 * executes the actions.
 */
export type State =
  | { readonly _tag: "signed" }
  | {
      readonly _tag: "mined"
      readonly blockHash: Receipt["blockHash"]
      readonly txHash: Receipt["txHash"]
      /** Time at which it was first missed, by `MonotonicTime`; null: the last poll showed it. */
      readonly missedSince: number | null
    }
  | { readonly _tag: "settled" }
  | { readonly _tag: "externallyUsed" }

/** Depth `final` is the settled depth, `confirmed` has the confirmations of an answer, `shallow` has fewer. */
export type Depth = "shallow" | "confirmed" | "final"

/** Result of one poll of the nodes that may decide. */
export type Event =
  /** No node replied: nothing is known. */
  | { readonly _tag: "silent" }
  /** No version has a receipt. Nodes behind a balancer lag: a hint, not proof. */
  | { readonly _tag: "unseen" }
  | { readonly _tag: "shown"; readonly receipt: Receipt; readonly depth: Depth }
  /** The receipt is missing, but the chain still has its block. */
  | { readonly _tag: "blockKept"; readonly depth: Depth }
  /** The chain has another block at that number: proof while it lasts. */
  | { readonly _tag: "blockReplaced" }
  /** A transaction outside the journal used the nonce. */
  | { readonly _tag: "nonceUsed"; readonly depth: Depth }
  /** The account's nonce on the chain is not above this nonce. */
  | { readonly _tag: "nonceOpen" }

export type Action =
  | { readonly _tag: "none" }
  /** Check broadcasts, prices and lower nonces: something delays it. */
  | { readonly _tag: "care" }
  | { readonly _tag: "record"; readonly receipt: Receipt; readonly final: boolean }
  | { readonly _tag: "finalise" }
  /** It left the chain: back to `signed`. */
  | { readonly _tag: "withdraw" }
  | { readonly _tag: "recordExternalUse" }
  /** Broadcast its stored bytes again; nothing else changes. */
  | { readonly _tag: "broadcastAgain" }
  /** Only the operator can decide. */
  | { readonly _tag: "report" }

export interface Step {
  readonly state: State
  readonly action: Action
}

/** An unseen transaction has left the chain after this time, milliseconds: balanced nodes lag by seconds. */
export const missedMillis = 15_000

const signed: State = { _tag: "signed" }
const settled: State = { _tag: "settled" }
const externallyUsed: State = { _tag: "externallyUsed" }

const stay = (state: State): Step => ({ state, action: { _tag: "none" } })

const ofSigned = (state: State, event: Event): Step => {
  switch (event._tag) {
    case "unseen":
    case "nonceOpen":
      return { state, action: { _tag: "care" } }
    case "shown": {
      const { depth, receipt } = event
      if (depth === "shallow") return stay(state)
      const final = depth === "final"
      const { blockHash, txHash } = receipt
      return {
        state: final ? settled : { _tag: "mined", blockHash, txHash, missedSince: null },
        action: { _tag: "record", receipt, final }
      }
    }
    case "nonceUsed":
      return event.depth === "final"
        ? { state: externallyUsed, action: { _tag: "recordExternalUse" } }
        : stay(state)
    case "silent":
    case "blockKept":
    case "blockReplaced":
      return stay(state)
  }
}

const ofMined = (state: Extract<State, { readonly _tag: "mined" }>, event: Event, now: number): Step => {
  const seen = (depth: Depth): Step =>
    depth === "final"
      ? { state: settled, action: { _tag: "finalise" } }
      : stay({ ...state, missedSince: null })
  const missed = stay({ ...state, missedSince: state.missedSince ?? now })
  const gone: Step = { state: signed, action: { _tag: "withdraw" } }
  /** Proof counts at the second poll in a row that misses it. */
  const proven = state.missedSince === null ? missed : gone
  switch (event._tag) {
    case "silent":
      return stay(state)
    case "shown":
      return event.receipt.blockHash === state.blockHash && event.receipt.txHash === state.txHash
        ? seen(event.depth)
        : proven
    case "blockKept":
      return seen(event.depth)
    case "blockReplaced":
      return proven
    case "nonceUsed":
      return event.depth === "final" ? proven : missed
    case "unseen":
    case "nonceOpen":
      return state.missedSince !== null && now - state.missedSince >= missedMillis ? gone : missed
  }
}

export const step = (state: State, event: Event, now: number): Step => {
  switch (state._tag) {
    case "signed":
      return ofSigned(state, event)
    case "mined":
      return ofMined(state, event, now)
    case "settled":
      return event._tag === "nonceOpen" ? { state, action: { _tag: "broadcastAgain" } } : stay(state)
    case "externallyUsed":
      // Its work continues under another nonce: these bytes must not be mined.
      return event._tag === "nonceOpen" ? { state, action: { _tag: "report" } } : stay(state)
  }
}

export const from = ({ mined, state }: TransactionRecord, missedSince: number | null = null): State => {
  if (state === "settled") return settled
  if (state === "external") return externallyUsed
  if (state === "signed" || mined === null) return signed
  return { _tag: "mined", blockHash: mined.blockHash, txHash: mined.txHash, missedSince }
}

export interface Answer {
  readonly isOperators: boolean
  /** It is the node that showed the receipt of the mined transaction. */
  readonly isWitness: boolean
  readonly receipt: Receipt | null
  /** The node's latest block; null: no reply, or not requested. */
  readonly head: Block | null
  /** Whether the node has the block of a missed transaction; null: not requested, or unknown. */
  readonly block: "kept" | "replaced" | null
}

interface Depths {
  readonly confirmations: number
  readonly settledDepth: number
}

export const depthOf = (
  blockNumber: bigint,
  head: Block | null,
  { confirmations, settledDepth }: Depths
): Depth => {
  const isAt = (depth: number) =>
    depth <= 1 || (head !== null && blockNumber + BigInt(depth) - 1n <= head.number)
  if (!isAt(confirmations)) return "shallow"
  return isAt(settledDepth) ? "final" : "confirmed"
}

/**
 * Reduces the replies of several nodes to one event. For a mined transaction the node that showed it decides while it replies.
 * Where nodes disagree, the operator's node wins.
 */
export const eventOf = (
  { mined, state }: Pick<TransactionRecord, "mined" | "state">,
  answers: ReadonlyArray<Answer>,
  depths: Depths
): Event => {
  const ranked = [...answers].sort((a, b) => Number(b.isOperators) - Number(a.isOperators))
  if (state !== "mined" || mined === null) {
    const shown = ranked.find(({ receipt }) => receipt !== null)
    if (shown?.receipt != null)
      return {
        _tag: "shown",
        receipt: shown.receipt,
        depth: depthOf(shown.receipt.blockNumber, shown.head, depths)
      }
    return { _tag: ranked.length === 0 ? "silent" : "unseen" }
  }
  const source = ranked.find(({ isWitness }) => isWitness) ?? ranked[0]
  if (source === undefined) return { _tag: "silent" }
  const { block, head, receipt } = source
  if (receipt !== null) return { _tag: "shown", receipt, depth: depthOf(receipt.blockNumber, head, depths) }
  if (block === null) return { _tag: "unseen" }
  return block === "kept"
    ? { _tag: "blockKept", depth: depthOf(mined.blockNumber, head, depths) }
    : { _tag: "blockReplaced" }
}
