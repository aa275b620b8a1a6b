import type { Block, ChainClient } from "../../ports/chain/ChainRpc.js"
import type { LaneAccess } from "../../ports/journal/Transactions.js"
import type { AccountId } from "../../ports/Tenants.js"
import type { FollowedTransaction, LaneNode } from "./FollowedTransaction.js"
import type { Answer } from "./TransactionState.js"

/** Stores the replies of a poll. A node without replies is not known to serve the chain. */
export const note = (
  node: LaneNode,
  { answers, head }: { readonly answers: Map<FollowedTransaction, Answer>; readonly head: Block | null }
): void => {
  node.isSilent = answers.size === 0
  node.isKnown = !node.isSilent
  node.head = head
  node.answers = answers
}

const maxNodes = 8

const make = (chain: ChainClient, account: AccountId | null): LaneNode => ({
  chain,
  account,
  isKnown: false,
  isSilent: false,
  isBusy: false,
  head: null,
  answers: new Map(),
  restsUntil: 0
})

/**
 * Whether the node's replies about a transaction count, and whether it gets the bytes. The operator's node serves every
 * transaction. An account's node serves the transactions that the account sends through its own nodes, never those that a
 * system key signed.
 */
export const serves = (node: LaneNode, { accountId, trust }: LaneAccess): boolean =>
  node.account === null || (trust === "caller" && node.account === accountId)

/** Nodes of one lane. Callers' nodes are ordered by use, latest last. */
export class LaneNodes {
  private callers: ReadonlyArray<LaneNode> = []
  private operators: ReadonlyArray<LaneNode> = []

  /** All nodes, the operator's first. */
  get all(): ReadonlyArray<LaneNode> {
    return [...this.operators, ...this.callers]
  }

  ofCaller(chain: ChainClient, account: AccountId): LaneNode {
    const node = this.callers.find((known) => known.chain === chain) ?? make(chain, account)
    const others = this.callers.filter((known) => known !== node)
    const crowded = others.filter((known) => known.account === account).slice(0, 1 - maxNodes)
    this.callers = [...others.filter((known) => !crowded.includes(known)), node]
    return node
  }

  ofOperator(chain: ChainClient): LaneNode {
    const node = this.operators.find((known) => known.chain === chain) ?? make(chain, null)
    this.operators = [node, ...this.operators.filter((known) => known !== node)]
    return node
  }

  setOperators(chains: ReadonlyArray<ChainClient>): void {
    this.operators = [...new Set(chains)].map(
      (chain) => this.operators.find((known) => known.chain === chain) ?? make(chain, null)
    )
  }

  /** Nodes that serve a transaction: its home, then the operator's, then the most recently used. */
  of({ home, record: { access } }: FollowedTransaction): ReadonlyArray<LaneNode> {
    const nodes = this.operators.concat(this.callers.toReversed()).filter((node) => serves(node, access))
    return home !== null && nodes.includes(home) ? [home, ...nodes.filter((node) => node !== home)] : nodes
  }
}

/**
 * Nodes to poll for a transaction in this round: its home. The others too if the home is silent, and at intervals once the
 * transaction is in doubt: a home that answers "unknown" may have lost it, or lie.
 */
export const toPoll = (
  { doubtAt, record, witness }: FollowedTransaction,
  [home, ...others]: ReadonlyArray<LaneNode>,
  now: number
): ReadonlyArray<LaneNode> => {
  if (home === undefined) return []
  if (record.state === "mined") {
    const first = others.find((node) => node === witness) ?? home
    return first.isSilent ? [home, ...others] : [first]
  }
  if (home.isSilent) return [home, ...others]
  return now < doubtAt ? [home] : [home, ...others.filter(({ restsUntil }) => now >= restsUntil)]
}
