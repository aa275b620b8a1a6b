import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { AccountId } from "./Tenants.js"

/** Which events a watch is about. */
export interface WatchSpec {
  /** Empty: of every contract. */
  readonly contracts: ReadonlyArray<Address>
  /** Canonical texts of definitions: an event that is one of them is told. */
  readonly events: ReadonlyArray<string>
  /** As in `/filterEvent`. */
  readonly fields: Readonly<Record<string, unknown>>
}

/** The node that a watch is read from. */
export interface WatchNode {
  readonly chainId: bigint
  /** Whose node it is: the account's own, or one that the operator gave it. Null: the operator's for everybody. */
  readonly accountId: AccountId | null
  /** Null: the operator's. */
  readonly rpc: Redacted.Redacted<string> | null
}

export interface NewWatch {
  readonly accountId: AccountId
  readonly webhookId: string
  readonly node: WatchNode
  readonly spec: WatchSpec
  /** Whether no indexed field narrows it. */
  readonly isBroad: boolean
  /** Blocks, the event's own counted, after which it is told. */
  readonly confirmations: number
  readonly fromBlock: bigint
}

/** An account's webhook is told of events of contracts. */
export interface Watch extends Omit<NewWatch, "node" | "isBroad"> {
  readonly watchId: string
  /** Its place in the order of their making. */
  readonly number: number
  readonly chainId: bigint
  /** Null: the operator's, or sealed under another key. */
  readonly rpc: Redacted.Redacted<string> | null
  /** `held`: paused by the service as long as more is owed to the webhook than may be. */
  readonly state: "enabled" | "paused" | "held"
  /** The block that is read next. */
  readonly nextBlock: bigint
  /** Events that were told, from 1 on. */
  readonly sequence: number
  /** Of those: not delivered yet, and given up. */
  readonly waiting: number
  readonly dead: number
  /** Why the node is not read at present. */
  readonly problem: string | null
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** Some of the watches, in the order of their making. */
export interface WatchPage {
  /** Those that were made after the one of this number. */
  readonly after?: number | undefined
  readonly limit: number
}

/** How much of a block was noted: its events are in the order of its logs, those of one log in the order of the watches. */
export interface PartOfBlock {
  readonly hash: Bytes32
  /** The last event. */
  readonly logIndex: number
  readonly watch: number
}

/** How far watches have read, and what they may have to take back. */
export interface Position {
  /** The block that was read first. */
  readonly first: bigint
  readonly next: bigint
  /** Hashes of the blocks before `next`, the newest last: those that a reorganisation may take back. */
  readonly hashes: ReadonlyArray<Bytes32>
  /** What of `next` was noted already. Absent: nothing. */
  readonly part?: PartOfBlock | undefined
}

/** A position of some watches of a node. */
export interface WatchCursor extends Position {
  readonly cursor: number
}

/** What of a watch decides which events are told. */
export interface FollowedWatch {
  readonly watch: number
  readonly cursor: number
  readonly spec: WatchSpec
  readonly fromBlock: bigint
}

/** A node that watches are read from, by one process at a time. */
export interface WatchSource extends WatchNode {
  readonly source: number
}

/** An event that a watch is about. */
export interface WatchedEvent {
  readonly watch: number
  readonly blockNumber: bigint
  readonly blockHash: Bytes32
  readonly logIndex: number
  /** JSON that is told. */
  readonly data: Readonly<Record<string, unknown>>
}

/** What a watch was told. */
export interface WatchEvent {
  /** From 1 on, without a gap. */
  readonly sequence: number
  /** `removed`: an event that was told is in no block any more, after a reorganisation. */
  readonly kind: "event" | "removed"
  readonly data: Readonly<Record<string, unknown>>
  /** Unix milliseconds. */
  readonly at: number
}

/** What was read for the watches of a cursor. */
export interface WatchStep {
  readonly cursor: number
  readonly position: Position
  /** The highest block of what was read before that is in the chain still; null: nothing was taken back. */
  readonly ancestor: bigint | null
  readonly events: ReadonlyArray<WatchedEvent>
  /** The newest block of the chain that the blocks are part of. */
  readonly head: bigint
}

/** The watches of a source that read on, as they are after a revision. */
export interface WatchSourceState {
  readonly revision: number
  readonly cursors: ReadonlyArray<WatchCursor>
  /** By number the cursor of each. */
  readonly watches: ReadonlyMap<number, number>
  /** Those that are new, or read on again, since the revision that was asked for. */
  readonly fresh: ReadonlyArray<FollowedWatch>
}

/**
 * - `tooMany`: the account has as many as it may
 * - `noWebhook`: the account has no such webhook
 * - `stale`: the source was changed meanwhile, by a change of its watches or another process; nothing was written
 * - `unavailable`: the store failed
 */
export class WatchesError extends Data.TaggedError("WatchesError")<{
  readonly reason: "tooMany" | "noWebhook" | "stale" | "unavailable"
  readonly message: string
}> {}

type Asked<A> = Effect.Effect<A, WatchesError>

/**
 * Watches, how far each has been read, and what it was told. What a step finds, the sequence numbers of it, what is owed
 * to webhooks and the position after it are written in one transaction, against the revision of the source that the step
 * was made from: of two processes that follow one node the second one writes nothing.
 */
export class Watches extends Context.Service<
  Watches,
  {
    /** `by`: whom the log of changes names, the id of a request or `operator`. */
    readonly add: (watch: NewWatch, by: string) => Asked<string>
    /** In the order of their making; of one account, or of all. */
    readonly list: (accountId: AccountId | null, page: WatchPage) => Asked<ReadonlyArray<Watch>>
    /** Null: there is none. */
    readonly get: (watchId: string) => Asked<Watch | null>
    /** Stays where it is until it is enabled again, and then reads on from there. False: there is no such watch. */
    readonly setState: (watchId: string, state: "enabled" | "paused", by: string) => Asked<boolean>
    /** With all that is owed of it. */
    readonly remove: (watchId: string, by: string) => Asked<boolean>

    /** Sources with watches that read on, and which no other process has claimed. */
    readonly sources: (process: string) => Asked<ReadonlyArray<WatchSource>>
    /**
     * This process reads the source until that time, some minutes from now at most; tells its revision. Null: another
     * process does.
     */
    readonly claim: (source: number, process: string, until: number) => Asked<number | null>
    readonly release: (source: number, process: string) => Asked<void>
    /** `after`: the revision that the caller knows; 0: none. */
    readonly state: (source: number, after: number) => Asked<WatchSourceState>
    /**
     * Writes a step, and tells the revision after it. Events above the ancestor that were told are told as removed, newest
     * first; those that were not are forgotten. Then the new ones are noted, and what has its confirmations is told, in
     * chain order.
     */
    readonly advance: (source: number, revision: number, step: WatchStep) => Asked<number>
    /** The watches of one cursor go on with those of another. */
    readonly merge: (source: number, revision: number, from: number, into: number) => Asked<number>
    /** Holds watches of which too much is owed, and lets those go on of which that is not so any more; how many. */
    readonly balance: (source: number) => Asked<number>
    /** What keeps the source from being read; null: nothing. */
    readonly note: (source: number, problem: string | null) => Asked<void>
  }
>()("castellan/Watches") {}
