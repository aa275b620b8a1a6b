import type { Block, Receipt } from "../../ports/chain/ChainRpc.js"
import type { TransactionRecord } from "../../ports/journal/Transactions.js"

/**
 * The state machine of a transaction: what follows from what the nodes said of it. Pure, so that every pair of a state
 * and an event is tested; `TransactionMonitor` executes the actions.
 */
export type State =
  | { readonly _tag: "signed" }
  | {
      readonly _tag: "mined"
      readonly blockHash: Receipt["blockHash"]
      readonly txHash: Receipt["txHash"]
      /** Since when it is not to be seen any more, by `MonotonicTime`; null: it was seen at the last look. */
      readonly missedSince: number | null
    }
  | { readonly _tag: "settled" }
  | { readonly _tag: "externallyUsed" }

/** `shallow`: below the confirmations; `confirmed`: above them; `final`: at settled depth. */
export type Depth = "shallow" | "confirmed" | "final"

/** What the nodes that may decide said in one look. */
export type Event =
  /** None of them answered: nothing is known. */
  | { readonly _tag: "silent" }
  /** No version has a receipt. Nodes behind a balancer lag: a hint, no proof. */
  | { readonly _tag: "unseen" }
  | { readonly _tag: "shown"; readonly receipt: Receipt; readonly depth: Depth }
  /** The receipt was not given, and the chain still has the block that it is in. */
  | { readonly _tag: "blockKept"; readonly depth: Depth }
  /** The chain has another block at that number: proof, as long as it lasts. */
  | { readonly _tag: "blockReplaced" }
  /** A transaction that is not of the journal has the nonce. */
  | { readonly _tag: "nonceUsed"; readonly depth: Depth }
  /** The account's nonce on the chain is not above this one. */
  | { readonly _tag: "nonceOpen" }

export type Action =
  | { readonly _tag: "none" }
  /** Look at what keeps it from being mined: offers, prices, nonces below. */
  | { readonly _tag: "care" }
  | { readonly _tag: "record"; readonly receipt: Receipt; readonly final: boolean }
  | { readonly _tag: "finalise" }
  /** It has left the chain: it is signed again. */
  | { readonly _tag: "withdraw" }
  | { readonly _tag: "recordExternalUse" }
  /** Its stored bytes go to the nodes again, and nothing else changes. */
  | { readonly _tag: "offerAgain" }
  /** Nobody but the operator can say what is to become of it. */
  | { readonly _tag: "report" }

export interface Step {
  readonly state: State
  readonly action: Action
}

/** A transaction that is only unseen has left the chain after that long: balanced nodes lag by seconds. */
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
  /** Proof counts when it is the second look in a row that misses it. */
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

/** What becomes of a transaction at an event, and what is to be done. */
export const step = (state: State, event: Event, now: number): Step => {
  switch (state._tag) {
    case "signed":
      return ofSigned(state, event)
    case "mined":
      return ofMined(state, event, now)
    case "settled":
      return event._tag === "nonceOpen" ? { state, action: { _tag: "offerAgain" } } : stay(state)
    case "externallyUsed":
      // Its work has gone on under another nonce: its bytes must not be mined any more.
      return event._tag === "nonceOpen" ? { state, action: { _tag: "report" } } : stay(state)
  }
}

/** The state of a transaction as the journal has it. */
export const from = ({ mined, state }: TransactionRecord, missedSince: number | null = null): State => {
  if (state === "settled") return settled
  if (state === "external") return externallyUsed
  if (state === "signed" || mined === null) return signed
  return { _tag: "mined", blockHash: mined.blockHash, txHash: mined.txHash, missedSince }
}

/** What one node told in one look. */
export interface Answer {
  readonly isOperators: boolean
  /** It is the node that showed the receipt of a mined one. */
  readonly isWitness: boolean
  readonly receipt: Receipt | null
  /** The node's latest block; null: it did not tell, or was not asked. */
  readonly head: Block | null
  /** Whether it has the block in which a missed transaction was mined; null: not asked, or not known. */
  readonly block: "kept" | "replaced" | null
}

interface Depths {
  readonly confirmations: number
  readonly settledDepth: number
}

/** How deep a block is below a head. */
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
 * One event out of what several nodes told. Of a mined transaction the node that showed it has the word as long as it
 * answers. Where nodes disagree, the operator's is preferred.
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
  const teller = ranked.find(({ isWitness }) => isWitness) ?? ranked[0]
  if (teller === undefined) return { _tag: "silent" }
  const { block, head, receipt } = teller
  if (receipt !== null) return { _tag: "shown", receipt, depth: depthOf(receipt.blockNumber, head, depths) }
  if (block === null) return { _tag: "unseen" }
  return block === "kept"
    ? { _tag: "blockKept", depth: depthOf(mined.blockNumber, head, depths) }
    : { _tag: "blockReplaced" }
}
