import * as BigIntMath from "effect/BigInt"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { BlockRange } from "../chain/logs/LogRefusal.js"
import type { Header } from "../ports/chain/ChainRpc.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { Position } from "../ports/Watches.js"

/**
 * How watches follow a chain, as a pure state machine over their position. Nothing here asks a node: it is decided what
 * to ask, and what the answers mean. A node may be several that answer in turn, some of them behind, some on another
 * fork: no block is read that does not stand on the one before it, and a reorganisation is believed from a chain alone
 * that is at least as high as what was read.
 */

/** However few blocks settle a chain, reorganisations of so many are told. */
const leastDepth = 64

/** Blocks, the newest one counted, of which a reorganisation may take any back. */
export const depthOf = ({ settledDepth }: Pick<NetworkProfile, "settledDepth">): number =>
  Math.max(settledDepth, leastDepth)

export interface Bounds {
  /** Blocks, the newest one counted, of which a reorganisation may take any back. */
  readonly depth: bigint
  /** Blocks that are read at once where none is taken back any more. */
  readonly settledBlocks: bigint
  /** Blocks that are read at once, each by its hash, where one may be taken back. */
  readonly recentBlocks: bigint
  /** The last block to be read; null: as far as the chain goes. */
  readonly until: bigint | null
}

/**
 * - `wait`: there is nothing to read, or the node is behind
 * - `settled`: these blocks are read by number
 * - `recent`: these blocks are read one by one; so is a block of which a part was told, whatever its depth
 * - `fork`: the last block that was read is not in the chain
 */
export type Plan =
  | { readonly _tag: "wait" }
  | ({ readonly _tag: "settled" } & BlockRange)
  | ({ readonly _tag: "recent" } & BlockRange)
  | { readonly _tag: "fork" }

/** The last block that was read, as far as its hash is known. */
export const tip = ({ hashes, next }: Position): Pick<Header, "number" | "hash"> | null => {
  const hash = hashes.at(-1)
  return hash === undefined ? null : { number: next - 1n, hash }
}

/** The oldest block whose hash is known; `next` when none is. */
export const oldest = ({ hashes, next }: Position): bigint => next - BigInt(hashes.length)

export const plan = (
  position: Position,
  head: Header,
  { depth, recentBlocks, settledBlocks, until }: Bounds
): Plan => {
  const { next, part } = position
  const last = until === null ? head.number : BigIntMath.min(head.number, until)
  if (head.number < next) {
    const at = tip(position)
    return at !== null && at.number === head.number && at.hash !== head.hash
      ? { _tag: "fork" }
      : { _tag: "wait" }
  }
  if (last < next) return { _tag: "wait" }
  if (part !== undefined) return { _tag: "recent", from: next, to: next }
  const settled = BigIntMath.min(last, head.number - depth)
  return settled >= next
    ? { _tag: "settled", from: next, to: BigIntMath.min(settled, next + settledBlocks - 1n) }
    : { _tag: "recent", from: next, to: BigIntMath.min(last, next + recentBlocks - 1n) }
}

/** Whether each block stands on the one before it. */
const isChain = (headers: ReadonlyArray<Header>): boolean =>
  headers.every((header, index) => {
    const before = headers[index - 1]
    return before === undefined || (before.hash === header.parentHash && before.number + 1n === header.number)
  })

/**
 * The position after these blocks, which were asked for from `next` on. `forked`: the first of them stands on another
 * block than the last one that was read, or is another one than that of which a part was told. `incoherent`: they are of
 * several chains; they are asked for anew.
 */
export const extend = (
  position: Position,
  headers: ReadonlyArray<Header>,
  depth: bigint
): Position | "forked" | "incoherent" => {
  const [first] = headers
  if (first === undefined) return position
  if (first.number !== position.next || !isChain(headers)) return "incoherent"
  const at = tip(position)
  if (at !== null && first.parentHash !== at.hash) return "forked"
  if (position.part !== undefined && position.part.hash !== first.hash) return "forked"
  const hashes = [...position.hashes, ...headers.map(({ hash }) => hash)]
  return {
    first: position.first,
    next: position.next + BigInt(headers.length),
    hashes: hashes.slice(-Number(depth))
  }
}

/** The position after blocks that nothing takes back, of which the last one has this hash. */
export const pass = ({ first }: Position, to: bigint, hash: Bytes32): Position => ({
  first,
  next: to + 1n,
  hashes: [hash]
})

/**
 * The highest block that was read and is in the chain still, by the hashes of the blocks that were read as the chain has
 * them now. Null: none is that is known, and blocks were read before those.
 */
export const ancestor = (position: Position, present: ReadonlyMap<bigint, Bytes32>): bigint | null => {
  for (let index = position.hashes.length - 1; index >= 0; index--) {
    const number = oldest(position) + BigInt(index)
    if (present.get(number) === position.hashes[index]) return number
  }
  return oldest(position) === position.first ? position.first - 1n : null
}

/** The position as it was after a block that was read. */
export const rewind = (position: Position, to: bigint): Position => ({
  first: position.first,
  next: to + 1n,
  hashes: position.hashes.slice(0, position.hashes.length - Number(position.next - 1n - to))
})

/** The same, of a block whose hash is known still; null: it is not, and only reading as far as there tells it. */
export const cut = (position: Position, to: bigint): Position | null =>
  to < oldest(position) ? null : rewind(position, to)

/** Whether what watches of one position are told next is what those of the other one are. */
export const meets = (one: Position, other: Position): boolean =>
  one.next === other.next &&
  one.part === undefined &&
  other.part === undefined &&
  (one.hashes.length === 0 || other.hashes.length === 0 || one.hashes.at(-1) === other.hashes.at(-1))

/** Which of two positions that meet knows more of the blocks before. */
export const knowsMore = (one: Position, other: Position): boolean =>
  one.hashes.length > other.hashes.length ||
  (one.hashes.length === other.hashes.length && one.first <= other.first)
