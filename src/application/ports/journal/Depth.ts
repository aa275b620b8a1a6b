/** The block that something is in, and how deep that is. */
export interface Depth {
  readonly blockNumber: bigint
  /** Blocks from that one to the head of the chain, both counted: so many at least, when it was seen. */
  readonly confirmations: number
}
