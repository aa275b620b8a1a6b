import type { Block, ChainClient } from "../../ports/chain/ChainRpc.js"
import type { LaneAccess } from "../../ports/journal/Transactions.js"
import type { AccountId } from "../../ports/Tenants.js"
import type { Entry, LaneNode } from "./Entry.js"
import type { Answer } from "./TransactionState.js"

/** Notes what a node told in a look; of one that told nothing it is not known whether it serves the chain. */
export const note = (
  node: LaneNode,
  { answers, head }: { readonly answers: Map<Entry, Answer>; readonly head: Block | null }
): void => {
  node.isSilent = answers.size === 0
  node.isKnown = !node.isSilent
  node.head = head
  node.answers = answers
}

/** Nodes of one account that a lane remembers. */
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
 * Whether what the node says of a transaction counts, and whether it is given its bytes. The operator's does for every
 * transaction; an account's own does for what that account sends by nodes of its own, and for nothing that a system key
 * has signed.
 */
export const serves = (node: LaneNode, { accountId, trust }: LaneAccess): boolean =>
  node.account === null || (trust === "caller" && node.account === accountId)

/** The nodes of one lane. Those of callers are in the order of their use, the latest last. */
export class LaneNodes {
  private callers: ReadonlyArray<LaneNode> = []
  private operators: ReadonlyArray<LaneNode> = []

  /** All of them, the operator's first. */
  get all(): ReadonlyArray<LaneNode> {
    return [...this.operators, ...this.callers]
  }

  /** The node of a request of the account. */
  ofCaller(chain: ChainClient, account: AccountId): LaneNode {
    const node = this.callers.find((known) => known.chain === chain) ?? make(chain, account)
    const others = this.callers.filter((known) => known !== node)
    const crowded = others.filter((known) => known.account === account).slice(0, 1 - maxNodes)
    this.callers = [...others.filter((known) => !crowded.includes(known)), node]
    return node
  }

  /** A present node of the operator. */
  ofOperator(chain: ChainClient): LaneNode {
    const node = this.operators.find((known) => known.chain === chain) ?? make(chain, null)
    this.operators = [node, ...this.operators.filter((known) => known !== node)]
    return node
  }

  /** The operator's present nodes, in the place of the earlier ones. */
  setOperators(chains: ReadonlyArray<ChainClient>): void {
    this.operators = [...new Set(chains)].map(
      (chain) => this.operators.find((known) => known.chain === chain) ?? make(chain, null)
    )
  }

  /** Those that serve a transaction: its own home first, then the operator's, then those used last. */
  of({ home, record: { access } }: Entry): ReadonlyArray<LaneNode> {
    const nodes = this.operators.concat(this.callers.toReversed()).filter((node) => serves(node, access))
    return home !== null && nodes.includes(home) ? [home, ...nodes.filter((node) => node !== home)] : nodes
  }
}

/**
 * Which nodes are asked of a transaction in this round: its home; the others when that one does not answer, and from time
 * to time when it has waited for long. A home that says "unknown" may have lost it, or lie.
 */
export const asked = (
  { doubtAt, record, witness }: Entry,
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
