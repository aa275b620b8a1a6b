import * as BigIntMath from "effect/BigInt"
import * as Brand from "effect/Brand"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Connection from "../chain/Connection.js"
import * as Metrics from "../observe/Metrics.js"
import * as Troubles from "../observe/Troubles.js"
import { type ChainClient, ChainRpc, ChainRpcError, type Header } from "../ports/chain/ChainRpc.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import { Networks } from "../ports/Networks.js"
import { Replicas } from "../ports/Replicas.js"
import type { AccountId } from "../ports/Tenants.js"
import {
  type Position,
  type WatchCursor,
  Watches,
  type WatchesError,
  type WatchSource
} from "../ports/Watches.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import * as Cursor from "./Cursor.js"
import * as Emission from "./Emission.js"
import { Followed } from "./Followed.js"
import * as Reading from "./Reading.js"

/**
 * Reads the chains of watches and stores the events that they select. `Reading` reads blocks, `Emission` makes events,
 * and `Deliver` sends them later.
 *
 * Gotchas: a step fails when another process or a change of a watch has revised the source meanwhile, so no event is
 * stored twice.
 */

/** An account without network settings. */
const nobody = Brand.nominal<AccountId>()("")

/**
 * The message that the account may see. For its own node it is the message that requests get for such nodes, which does
 * not reveal the names inside the operator's network. For the operator's node only the operator sees it.
 */
const problemText = ({ rpc }: WatchSource, error: ChainRpcError | Reading.Unreadable): string => {
  const isOwn = error instanceof ChainRpcError && rpc !== null
  const why = isOwn ? Connection.refusal("caller", "rpc")(error).details[0]?.message : undefined
  return `${why ?? error.message}${isMalformed(error) ? (rpc === null ? otherNode : otherRpc) : ""}`
}

const isMalformed = (error: ChainRpcError | Reading.Unreadable): boolean =>
  error instanceof ChainRpcError && error.reason === "notAnRpc"

const otherNode = "; if it stays so, give networks[].rpc another node"
const otherRpc = "; if that persists, recreate the watch with another rpc"

/** Times since a node's first malformed answer: incomplete logs suffice from the first on, and no longer after the second. */
const patienceMillis = 60_000
const incompleteMillis = 600_000

/** The node's client, which returns incomplete logs. */
const withIncompleteLogs = (chain: ChainClient): ChainClient => ({
  ...chain,
  logs: (filter) => chain.logs(filter, "placed"),
  logsOf: (blockHash, filter) => chain.logsOf(blockHash, filter, "placed")
})

/** Blocks per range where no reorganisation is expected; the node may allow fewer. */
const settledBlocks = 1_000n
/** Blocks read by their hashes in one step. */
const recentBlocks = 64n
/** Limits of one step: it is in memory, and one transaction. Larger blocks are processed in parts. */
const mostOfStep: Emission.Bounds = { events: 4_000, characters: 8_388_608 }
/** Duration of a claim, renewed each turn; a longer step fails if another process claims the source. */
const claimMillis = 30_000
/** Interval of the check for watches whose backlog is over its limit. */
const balanceMillis = 5_000

/** The node's owner as the metrics' label, since callers choose their own URLs. */
const nameOf = ({ rpc }: WatchSource): string => (rpc === null ? "operator" : "caller")

interface Node {
  readonly chain: ChainClient
  readonly profile: NetworkProfile
}

/** Connects a source to its node: the account's own URL, or the operator's for the chain. */
const connect = Effect.fnUntraced(function* ({
  accountId,
  chainId,
  rpc
}: WatchSource): Effect.fn.Return<Node, ChainRpcError | Reading.Unreadable, ChainRpc | Networks> {
  const rpcs = yield* ChainRpc
  const profile = yield* (yield* Networks).profile(accountId ?? nobody, chainId)
  if (profile === null) return yield* new Reading.Unreadable({ message: `chain ${chainId} has no profile` })
  const own = profile.rpc
  if (rpc === null && own === null)
    return yield* new Reading.Unreadable({ message: `the operator has no node of chain ${chainId}` })
  const url = Redacted.value(rpc ?? own ?? Redacted.make(""))
  const by = rpc === null || accountId === null ? "operator" : { account: accountId }
  const chain = yield* rpcs.connect(url, by)
  const served = yield* chain.chainId
  if (served !== chainId)
    return yield* new Reading.Unreadable({ message: `${chain.origin}: it serves chain ${served}` })
  return { chain, profile }
})

interface Parts {
  readonly source: WatchSource
  readonly followed: Followed
  readonly watches: Watches["Service"]
  readonly node: Node
  readonly most: Emission.Bounds
}

/** Reads the next blocks of a cursor; returns whether there were any. */
const advance = Effect.fnUntraced(function* (
  parts: Parts,
  cursor: WatchCursor,
  head: Header,
  until: bigint | null
) {
  const { followed, node, source, watches } = parts
  const { chain, profile } = node
  let last = until
  for (;;) {
    const read = yield* Reading.next(chain, followed.queries(cursor.cursor), cursor, head, {
      depth: BigInt(Cursor.depthOf(profile)),
      settledBlocks,
      recentBlocks,
      until: last
    })
    if (read === null) return false
    const { ancestor, before, logs } = read
    const after = ancestor === null ? cursor.part : undefined
    const found = { after, first: before.next, logs }
    const step = yield* Emission.step(followed.index(cursor.cursor), found, parts.most)
    const position = positionAfter(read, step)
    if (position === null) {
      last = step.until
      continue
    }
    const revision = yield* watches.advance(source.source, followed.revision, {
      cursor: cursor.cursor,
      position,
      ancestor,
      events: step.events,
      head: read.head
    })
    followed.move({ cursor: cursor.cursor, ...position }, revision)
    return true
  }
})

/** The position after a step; null: it ends at a block whose hash only reading up to that block reveals. */
const positionAfter = (
  { before, position }: Reading.Read,
  { part, until }: Emission.Step
): Position | null => {
  if (part !== undefined) return { ...before, part }
  return until === null ? position : Cursor.cut(position, until)
}

const isLower = (one: WatchCursor, other: WatchCursor): number => Number(one.next - other.next)

/** Merges the cursors of watches at the same position. */
const meet = Effect.fnUntraced(function* ({ followed, source, watches }: Parts) {
  const [one, other] = [...followed.cursors].sort(isLower)
  if (one === undefined || other === undefined || !Cursor.meets(one, other)) return
  const [into, from] = Cursor.knowsMore(one, other) ? [one, other] : [other, one]
  const revision = yield* watches.merge(source.source, followed.revision, from.cursor, into.cursor)
  followed.merge(from.cursor, into.cursor, revision)
})

/**
 * Reads the chain once: first for the cursor furthest ahead, then for the one furthest behind, up to the next cursor,
 * where the two merge. Returns whether there is more to read now.
 */
const poll = Effect.fnUntraced(function* (parts: Parts) {
  const { followed, node } = parts
  const head = yield* node.chain.header("latest")
  if (head === null)
    return yield* new Reading.Unreadable({ message: `${node.chain.origin}: it has no block` })
  if (head.number > BigInt(Number.MAX_SAFE_INTEGER))
    return yield* new Reading.Unreadable({ message: `${node.chain.origin}: its blocks are malformed` })
  const ordered = [...followed.cursors].sort(isLower)
  const newest = ordered.at(-1)
  if (newest === undefined) return false
  let more = yield* advance(parts, newest, head, null)
  const [behind, above] = [...followed.cursors].sort(isLower)
  if (behind !== undefined && above !== undefined) {
    // Two cursors at the same height that do not meet are on different forks; each continues separately.
    const until = above.next > behind.next ? above.next - 1n : null
    const isRead = yield* advance(parts, behind, head, until)
    more = isRead || more
    yield* meet(parts)
  }
  const lowest = followed.cursors.reduce((least, { next }) => BigIntMath.min(least, next), head.number + 1n)
  yield* Metrics.note(
    Metrics.watchBlocksBehind,
    { chain: node.profile.chainId.toString(), node: nameOf(parts.source) },
    Number(head.number + 1n - lowest)
  )
  return more
})

/**
 * Follows the chain of a source for all of its watches, until another process has the source or it has no watches.
 * Retries failures: a node that is away or answers inconsistently delays events, but none is lost. `most` limits one
 * step, for all watches together.
 */
export const follow = Effect.fnUntraced(function* (source: WatchSource, process: string, most = mostOfStep) {
  const watches = yield* Watches
  const networks = yield* Networks
  const followed = new Followed()
  let problem: string | null | undefined
  const troubles = Troubles.make()
  const trouble = { what: "a node is not read for watches", place: String(source.source), isDelay: true }
  let balanced: number | null = null
  const report = Effect.fnUntraced(function* (now: string | null, shown = now) {
    const outcome = now === null ? troubles.passed(trouble) : troubles.failed(trouble, Cause.fail(now))
    yield* Effect.annotateLogs(outcome, { chainId: source.chainId.toString() })
    if (now === problem) return
    problem = now
    yield* watches.note(source.source, shown)
  })
  /** When the node began to answer with unreadable data. */
  let malformedSince: number | null = null
  const turn: Effect.Effect<boolean, WatchesError, ChainRpc | Networks> = Effect.gen(function* () {
    const node = yield* connect(source)
    const malformedMillis = malformedSince === null ? null : (yield* MonotonicTime.millis) - malformedSince
    const isPatient = malformedMillis === null || malformedMillis < patienceMillis
    const chain = isPatient ? node.chain : withIncompleteLogs(node.chain)
    const more = yield* poll({ source, followed, watches, node: { ...node, chain }, most })
    if (isPatient || malformedMillis > incompleteMillis) malformedSince = null
    yield* report(null)
    return more
  }).pipe(
    Effect.catchTags({
      ChainRpcError: (error) => failed(error),
      Unreadable: (error) => failed(error)
    })
  )
  const failed = Effect.fnUntraced(function* (error: ChainRpcError | Reading.Unreadable) {
    if (isMalformed(error)) malformedSince ??= yield* MonotonicTime.millis
    yield* Metrics.count(Metrics.watchReadErrors, {
      chain: source.chainId.toString(),
      node: nameOf(source)
    })
    yield* report(error.message, problemText(source, error))
    return false
  })
  for (;;) {
    const now = yield* Clock.currentTimeMillis
    const revision = yield* watches.claim(source.source, process, now + claimMillis)
    if (revision === null) return
    const passed = yield* MonotonicTime.millis
    const isDue = balanced === null || passed - balanced >= balanceMillis
    if (isDue) {
      balanced = passed
      yield* watches.balance(source.source)
    }
    if (revision !== followed.revision || isDue)
      yield* followed.update(yield* watches.state(source.source, followed.revision))
    if (followed.cursors.length === 0) return yield* watches.release(source.source, process)
    const more = yield* turn.pipe(
      Effect.catchIf(
        (error) => error.reason === "stale",
        () => Effect.succeed(true)
      )
    )
    if (more) continue
    const profile = yield* networks.profile(source.accountId ?? nobody, source.chainId)
    yield* Effect.sleep(profile?.pollIntervalMillis ?? 1_000)
  }
})

/** Polling interval for nodes without a reader. */
const pollMillis = 1_000

/**
 * Reads the nodes of watches until the scope closes, each in a separate fiber, so that a slow node delays no other. One
 * process reads each node. `most` limits one step.
 */
export const startWith = Effect.fnUntraced(function* (most?: Emission.Bounds) {
  const watches = yield* Watches
  const { process } = yield* Replicas
  const scope = yield* Effect.scope
  const followed = new Set<number>()
  const failed = (cause: unknown) => Effect.logDebug("watches' new events unavailable", cause)
  const poll = Effect.gen(function* () {
    for (const source of yield* watches.sources(process)) {
      if (followed.has(source.source)) continue
      followed.add(source.source)
      const own = follow(source, process, most).pipe(
        Effect.catchCause(failed),
        Effect.ensuring(Effect.ignore(watches.release(source.source, process))),
        Effect.ensuring(Effect.sync(() => followed.delete(source.source)))
      )
      yield* Effect.forkIn(Effect.interruptible(own), scope)
    }
  })
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.catchCause(poll, failed), Effect.sleep(pollMillis)))
  )
})

export const start = startWith()
