import type { Address } from "../primitives/Address.js"
import type { Bytes32, Hex } from "../primitives/Hex.js"

/** A log as a receipt carries it. */
export interface RawLog {
  /** The contract that emitted it. */
  readonly address: Address
  /** Up to four; the first is the event's, unless it is anonymous. */
  readonly topics: ReadonlyArray<Bytes32>
  readonly data: Hex
  /** Position in the block. */
  readonly logIndex: number
}
