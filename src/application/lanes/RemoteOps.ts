import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import * as Nonce from "../../domain/erc4337/Nonce.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import * as WalletConfig from "../../domain/wallet/WalletConfig.js"
import * as Inclusions from "../chain/Inclusions.js"
import type { BundlerClient, Offer } from "../ports/chain/BundlerRpc.js"
import type { Block, ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { RemoteOpJournal } from "../ports/journal/RemoteOpJournal.js"
import type { RemoteSubmission } from "../ports/journal/RemoteSubmissions.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { WakeUps } from "./requests/WakeUps.js"

/** An op that somebody else's bundler was given. */
export interface Held {
  readonly chain: ChainClient
  readonly profile: NetworkProfile
  /** Null: the profile names none any more, and the op can only be waited for. */
  readonly bundler: BundlerClient | null
  readonly handover: RemoteSubmission
  readonly offer: Offer
  /** Last second at which it may land, by the chain's clock; 0: no bound. */
  readonly validUntil: number
}

/** What is remembered of one op until its landing is at settled depth, or it can land no more. */
export interface Entry extends Held {
  /** First block that is still to be looked at. */
  next: bigint
  /** Where the bundler says that it landed, as far as the chain agrees. */
  hint: Inclusions.Inclusion | null
  /** Where it landed, once that is recorded. The block is null until it was looked at in this life of the process. */
  landed: {
    readonly txHash: Hex.Bytes32
    readonly block: Pick<Inclusions.Inclusion, "blockNumber" | "blockHash"> | null
  } | null
  /** Head at which its landing was last looked at. */
  lookedAt: bigint
  /** How often in a row a landing was not to be seen any more. */
  missed: number
  /** When the bundler is asked for it again, milliseconds, and how long after that once more. */
  offerAt: number
  offerDelay: number
  /** Something with it is under way in a fiber of its own. */
  busy: boolean
}

export interface RemoteOps {
  /** Watches an op that was handed over, however long that takes. It is `busy` until its first offer is done: see `offered`. */
  readonly watch: (held: Held) => Effect.Effect<Entry>
  /** The bundler was given the op, or perhaps was: it is asked for it later, sooner when nobody knows. */
  readonly offered: (entry: Entry, certain: boolean) => Effect.Effect<void>
  readonly isWatched: (handover: RemoteSubmission) => boolean
  /** Forgets an op that is at no remote bundler any more. */
  readonly forget: (entry: Entry) => Effect.Effect<void>
}

export const RemoteOps: Context.Tag<RemoteOps, RemoteOps> = Context.GenericTag("castellan/RemoteOps")

/** A bundler is asked whether it still has an op so long after it was given it. */
const offerMillis = 10_000
/** After an unknown answer it is sooner, and then twice as late each time, up to a minute. */
const firstOfferMillis = 250
const longestOfferMillis = 60_000
/** Most blocks of one look, and most ops. */
const maxBlocks = 1_024n
const maxOps = 128
/** Blocks that are looked at again although they are at settled depth: nodes behind a balancer lag. */
const lagBlocks = 8n
/** A landing is gone when this many looks in a row do not show it. */
const missesForGone = 2

const keyOf = ({ handover: { space, userOpHash } }: Pick<Held, "handover">): string =>
  `${space.authority}:${userOpHash}`

const later = (one: bigint, other: bigint): bigint => (one > other ? one : other)
const earlier = (one: bigint, other: bigint): bigint => (one < other ? one : other)

/**
 * Watches ops at remote bundlers by what the EntryPoint logs of them: one loop per node serves all of them. Those that the
 * bundler has lost are offered to it again, as they were signed, as long as they may land.
 */
export const make = (options: {
  readonly remoteOpJournal: RemoteOpJournal["Type"]
  readonly wakeUps: Pick<WakeUps, "notify" | "signal">
  /** The final answer of some request was undone by a reorganisation. */
  readonly reopened: Effect.Effect<void>
}): Effect.Effect<RemoteOps, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const { remoteOpJournal, wakeUps, reopened } = options
    const nodes = new Map<ChainClient, Map<string, Entry>>()

    const wake = ({ handover: { space } }: Held, requestIds: ReadonlyArray<string>) =>
      Effect.zipRight(
        wakeUps.notify(requestIds),
        wakeUps.signal({ chainId: space.chainId, signer: space.authority })
      )

    const drop = (entry: Entry) => {
      const entries = nodes.get(entry.chain)
      if (entries?.get(keyOf(entry)) === entry) entries.delete(keyOf(entry))
    }

    const deepEnough = (blockNumber: bigint, depth: number, head: Block) =>
      blockNumber + BigInt(depth) - 1n <= head.number

    /** The newest block that is at settled depth. */
    const settledBlock = ({ profile }: Held, head: Block) =>
      later(0n, head.number - BigInt(profile.settledDepth) + 1n)

    const finalise = (entry: Entry) => {
      const { authority, chainId } = entry.handover.space
      return Effect.tap(
        remoteOpJournal.finaliseInclusions(authority, chainId, [entry.handover.userOpHash]),
        () => Effect.sync(() => drop(entry))
      )
    }

    const land = (entry: Entry, landing: Inclusions.Inclusion, head: Block) =>
      Effect.gen(function* () {
        const { handover, profile } = entry
        const { authority, chainId } = handover.space
        const { blockNumber, revertData, success, txHash } = landing
        entry.next = earlier(entry.next, blockNumber)
        if (!deepEnough(blockNumber, profile.confirmations, head)) return
        const outcome = { userOpHash: handover.userOpHash, success, revertData, txHash }
        const affected = yield* remoteOpJournal.recordInclusions(authority, chainId, [outcome])
        entry.landed = { txHash, block: landing }
        entry.lookedAt = head.number
        entry.missed = 0
        if (deepEnough(blockNumber, profile.settledDepth, head)) yield* finalise(entry)
        yield* wake(entry, affected)
      })

    /** Looks whether a recorded landing is still there, and whether it is at settled depth by now. */
    const confirm = (entry: Entry, landed: NonNullable<Entry["landed"]>, head: Block) =>
      Effect.gen(function* () {
        const { chain, handover, profile } = entry
        const { authority, chainId, entryPoint } = handover.space
        if (head.number === entry.lookedAt && entry.missed === 0) return
        const receipt = yield* chain.receipt(landed.txHash)
        entry.lookedAt = head.number
        const known = landed.block
        const there =
          receipt !== null &&
          (known === null || known.blockHash === receipt.blockHash) &&
          Inclusions.inReceipt(entryPoint, receipt, [handover.userOpHash]).size > 0
        if (!there) {
          entry.missed += 1
          if (entry.missed < missesForGone) return
          entry.landed = null
          entry.hint = null
          entry.next = handover.since
          entry.offerAt = 0
          entry.offerDelay = firstOfferMillis
          const affected = yield* remoteOpJournal.revertInclusions(authority, chainId, [handover.userOpHash])
          yield* wake(entry, affected)
          return yield* reopened
        }
        entry.missed = 0
        entry.landed = { txHash: landed.txHash, block: receipt }
        if (deepEnough(receipt.blockNumber, profile.settledDepth, head)) yield* finalise(entry)
      })

    /** What the blocks that were not looked at yet say of these ops of one EntryPoint; true: all of them were. */
    const look = (
      chain: ChainClient,
      entryPoint: RemoteSubmission["space"]["entryPoint"],
      entries: ReadonlyArray<Entry>,
      head: Block
    ) =>
      Effect.gen(function* () {
        const from = entries.reduce((least, { next }) => earlier(least, next), head.number)
        const to = earlier(head.number, from + maxBlocks - 1n)
        const hashes = entries.map(({ handover }) => handover.userOpHash)
        const landings = yield* Inclusions.within(chain, entryPoint, hashes, { from, to })
        for (const entry of entries) {
          const bound = earlier(to + 1n, settledBlock(entry, head) - lagBlocks)
          entry.next = later(entry.next, bound)
        }
        return { landings, complete: to === head.number }
      })

    const isOver = ({ validUntil }: Held, head: Block) => validUntil !== 0 && head.timestamp > validUntil

    /**
     * Whether the op can land no more: its time is over, another op has its nonce, or its wallet has another configuration
     * than its nonce names, for good.
     */
    const isPast = (entry: Entry, head: Block): Effect.Effect<boolean, ChainRpcError> =>
      Effect.gen(function* () {
        const { chain, handover, offer, validUntil } = entry
        const at = settledBlock(entry, head)
        if (isOver(entry, head)) {
          const settled = at === head.number ? head : yield* chain.block(at)
          if (settled !== null && settled.timestamp > validUntil) return true
        }
        const { entryPoint, wallet } = handover.space
        const { initCode, nonce } = offer.op
        const data = Nonce.question(wallet, Nonce.keyOf(nonce))
        const { data: answer, success } = yield* chain.call({ to: entryPoint, data }, undefined, at)
        if (success && answer.length === 66 && BigInt(answer) > Nonce.sequenceOf(nonce)) return true
        if (initCode !== Hex.empty) return false
        const state = yield* chain.call({ to: wallet, data: WalletCalls.configuration }, undefined, at)
        const configuration = WalletConfig.decode(state.data)
        return (
          state.success &&
          Either.isRight(configuration) &&
          WalletConfig.epochOf(configuration.right) !== Nonce.epochOf(nonce)
        )
      })

    const takeBack = (entry: Entry, head: Block) =>
      Effect.gen(function* () {
        const { chain, handover } = entry
        // Everything once more: what was overlooked would be done twice.
        for (let from = handover.since; from <= head.number; from += maxBlocks) {
          const to = earlier(head.number, from + maxBlocks - 1n)
          const range = { from, to }
          const hashes = [handover.userOpHash]
          const landings = yield* Inclusions.within(chain, handover.space.entryPoint, hashes, range)
          const landing = landings.get(handover.userOpHash)
          if (landing !== undefined) return yield* land(entry, landing, head)
        }
        yield* remoteOpJournal.revokeRemote(handover.requestId, [handover.index])
        drop(entry)
        yield* wake(entry, [handover.requestId])
      })

    /** Asks the bundler for the op, and gives it the op again when it has none. */
    const offer = (entry: Entry, bundler: BundlerClient, head: Block) =>
      Effect.gen(function* () {
        const { chain, handover } = entry
        const { entryPoint } = handover.space
        const found = yield* Effect.orElseSucceed(bundler.find(handover.userOpHash), () => null)
        if (found !== null) {
          if (found.txHash === null) return
          const receipt = yield* chain.receipt(found.txHash)
          if (receipt === null) return
          const outcome = Inclusions.inReceipt(entryPoint, receipt, [handover.userOpHash]).get(
            handover.userOpHash
          )
          const { blockHash, blockNumber } = receipt
          if (outcome !== undefined) entry.hint = { ...outcome, blockHash, blockNumber }
          return
        }
        if (isOver(entry, head)) return
        yield* bundler.send(entry.offer, handover.userOpHash)
      })

    /** At most once at a time for one op, beside the poll: a bundler may take long. */
    const attend = (entry: Entry, head: Block, now: number) =>
      Effect.suspend(() => {
        entry.busy = true
        entry.offerAt = now + entry.offerDelay
        entry.offerDelay = Math.min(entry.offerDelay * 2, longestOfferMillis)
        const work = Effect.gen(function* () {
          if (yield* isPast(entry, head)) return yield* takeBack(entry, head)
          if (entry.bundler !== null) yield* offer(entry, entry.bundler, head)
        })
        return Effect.asVoid(
          Effect.forkIn(
            work.pipe(
              Effect.catchAllCause((cause) =>
                Effect.logWarning("an op at a remote bundler is left as it is", cause)
              ),
              Effect.ensuring(
                Effect.sync(() => {
                  entry.busy = false
                })
              ),
              Effect.annotateLogs({ userOpHash: entry.handover.userOpHash })
            ),
            scope
          )
        )
      })

    /** Whatever fails is looked at again in the next round. */
    const tolerated = (entry: Entry, step: Effect.Effect<void, unknown>) =>
      step.pipe(
        Effect.catchAllCause((cause) =>
          Effect.logWarning("a look at an op at a remote bundler failed and is repeated", cause)
        ),
        Effect.annotateLogs({ userOpHash: entry.handover.userOpHash })
      )

    const group = (chain: ChainClient, entries: ReadonlyArray<Entry>, head: Block) =>
      Effect.gen(function* () {
        const [first] = entries
        if (first === undefined) return
        const seen = yield* Effect.either(look(chain, first.handover.space.entryPoint, entries, head))
        if (Either.isLeft(seen))
          yield* Effect.logWarning("the node does not tell what became of ops at remote bundlers", seen.left)
        const { complete, landings } = Either.getOrElse(seen, () => ({
          complete: false,
          landings: new Map<Hex.Bytes32, Inclusions.Inclusion>()
        }))
        const now = yield* Clock.currentTimeMillis
        for (const entry of entries) {
          const landing = landings.get(entry.handover.userOpHash) ?? entry.hint
          if (landing !== null) yield* tolerated(entry, land(entry, landing, head))
          else if (entry.busy || (!complete && Either.isRight(seen))) continue
          else if (now >= entry.offerAt || isOver(entry, head)) yield* attend(entry, head, now)
        }
      })

    const round = (chain: ChainClient, entries: ReadonlyMap<string, Entry>) =>
      Effect.gen(function* () {
        const head = yield* chain.block("latest")
        if (head === null) return
        const groups = new Map<string, Array<Entry>>()
        for (const entry of entries.values()) {
          const { landed } = entry
          if (landed !== null) {
            yield* tolerated(entry, confirm(entry, landed, head))
            continue
          }
          const of = groups.get(entry.handover.space.entryPoint) ?? []
          groups.set(entry.handover.space.entryPoint, of)
          of.push(entry)
        }
        for (const all of groups.values())
          for (let at = 0; at < all.length; at += maxOps)
            yield* group(chain, all.slice(at, at + maxOps), head)
      }).pipe(
        // The loop serves everybody who waits at this node: it ends with the process only.
        Effect.catchAllCause((cause) => Effect.logWarning("a look at ops at remote bundlers failed", cause))
      )

    const loop = (chain: ChainClient, entries: ReadonlyMap<string, Entry>): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (entries.size === 0) {
          nodes.delete(chain)
          return Effect.void
        }
        const interval = Math.min(...[...entries.values()].map(({ profile }) => profile.pollIntervalMillis))
        return round(chain, entries).pipe(
          Effect.zipRight(Effect.suspend(() => (entries.size === 0 ? Effect.void : Effect.sleep(interval)))),
          Effect.zipRight(loop(chain, entries))
        )
      })

    return {
      watch: (held) =>
        Effect.gen(function* () {
          const { chain, handover } = held
          const entry: Entry = {
            ...held,
            next: handover.since,
            hint: null,
            landed: handover.includedIn === null ? null : { txHash: handover.includedIn, block: null },
            lookedAt: -1n,
            missed: 0,
            offerAt: 0,
            offerDelay: firstOfferMillis,
            busy: true
          }
          const known = nodes.get(chain)
          const entries = known ?? new Map<string, Entry>()
          entries.set(keyOf(entry), entry)
          if (known === undefined) {
            nodes.set(chain, entries)
            yield* Effect.forkIn(Effect.interruptible(loop(chain, entries)), scope)
          }
          return entry
        }).pipe(Effect.uninterruptible),
      offered: (entry, certain) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          entry.offerAt = now + (certain ? offerMillis : firstOfferMillis)
          entry.busy = false
        }),
      isWatched: (handover) => [...nodes.values()].some((entries) => entries.has(keyOf({ handover }))),
      forget: (entry) => Effect.sync(() => drop(entry))
    }
  })
