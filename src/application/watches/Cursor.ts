import * as BigIntMath from "effect/BigInt"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { BlockRange } from "../chain/logs/LogRefusal.js"
import type { Header } from "../ports/chain/ChainRpc.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { Position } from "../ports/Watches.js"

/**
 * How watches follow a chain: a pure state machine over their position, which decides the queries and interprets the
 * answers. A node may be several nodes that answer in turn, some lagging, some on another fork. So a block is read only
 * if its parent was read before, and a reorganisation is believed only from a chain at least as high as the blocks
 * read.
 */

/** Lowest depth of reorganisations that are reported, however soon the chain settles. */
const leastDepth = 64

/** Blocks, including the newest, that a reorganisation may still remove. */
export const depthOf = ({ settledDepth }: Pick<NetworkProfile, "settledDepth">): number =>
  Math.max(settledDepth, leastDepth)

export interface Bounds {
  /** See `depthOf`. */
  readonly depth: bigint
  /** Blocks per read where no reorganisation is expected. */
  readonly settledBlocks: bigint
  /** Blocks per read, each by its hash, where a reorganisation may remove one. */
  readonly recentBlocks: bigint
  /** The last block to read; null: as far as the chain goes. */
  readonly until: bigint | null
}

/**
 * - `wait`: no block to read, or the node lags behind
 * - `settled`: read these blocks by number
 * - `recent`: read these blocks one by one; also for a partly processed block, at any depth
 * - `fork`: the last block read is not in the chain
 */
export type Plan =
  | { readonly _tag: "wait" }
  | ({ readonly _tag: "settled" } & BlockRange)
  | ({ readonly _tag: "recent" } & BlockRange)
  | { readonly _tag: "fork" }

/** The last block read, if its hash is known. */
export const tip = ({ hashes, next }: Position): Pick<Header, "number" | "hash"> | null => {
  const hash = hashes.at(-1)
  return hash === undefined ? null : { number: next - 1n, hash }
}

/** The oldest block with a known hash; `next` when there is none. */
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

/** Whether each block's parent is the one before it. */
const isChain = (headers: ReadonlyArray<Header>): boolean =>
  headers.every((header, index) => {
    const before = headers[index - 1]
    return before === undefined || (before.hash === header.parentHash && before.number + 1n === header.number)
  })

/**
 * The position after these blocks, which start at `next`. `forked`: the first block's parent is not the last block
 * read, or the first block is not the partly processed one. `incoherent`: the blocks are of several chains, and must be
 * read again.
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

/** The position after settled blocks whose last one has this hash. */
export const pass = ({ first }: Position, to: bigint, hash: Bytes32): Position => ({
  first,
  next: to + 1n,
  hashes: [hash]
})

/**
 * The highest block read that is still in the chain. `present` has the chain's current hashes of the blocks read. Null:
 * none is known, and older blocks were read.
 */
export const ancestor = (position: Position, present: ReadonlyMap<bigint, Bytes32>): bigint | null => {
  for (let index = position.hashes.length - 1; index >= 0; index--) {
    const number = oldest(position) + BigInt(index)
    if (present.get(number) === position.hashes[index]) return number
  }
  return oldest(position) === position.first ? position.first - 1n : null
}

/** The position after a block that was read, as it was then. */
export const rewind = (position: Position, to: bigint): Position => ({
  first: position.first,
  next: to + 1n,
  hashes: position.hashes.slice(0, position.hashes.length - Number(position.next - 1n - to))
})

/** `rewind` to a block whose hash is still known; null: unknown, and only reading up to that block reveals it. */
export const cut = (position: Position, to: bigint): Position | null =>
  to < oldest(position) ? null : rewind(position, to)

/** Whether watches of the two positions continue with the same blocks. */
export const meets = (one: Position, other: Position): boolean =>
  one.next === other.next &&
  one.part === undefined &&
  other.part === undefined &&
  (one.hashes.length === 0 || other.hashes.length === 0 || one.hashes.at(-1) === other.hashes.at(-1))

/** Whether the first of two positions that meet knows more of the earlier blocks. */
export const knowsMore = (one: Position, other: Position): boolean =>
  one.hashes.length > other.hashes.length ||
  (one.hashes.length === other.hashes.length && one.first <= other.first)
