import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { AccountId } from "./Tenants.js"

/** The events that a watch selects. */
export interface WatchSpec {
  /** Empty: every contract. */
  readonly contracts: ReadonlyArray<Address>
  /** Canonical definitions; an event that matches any of them is delivered. */
  readonly events: ReadonlyArray<string>
  /** As in `/filterEvent`. */
  readonly fields: Readonly<Record<string, unknown>>
}

/** The node that serves a watch's reads. */
export interface WatchNode {
  readonly chainId: bigint
  /** The account that owns the node, or has it assigned by the operator. Null: the operator's, for all. */
  readonly accountId: AccountId | null
  /** Null: the operator's node. */
  readonly rpc: Redacted.Redacted<string> | null
}

export interface NewWatch {
  readonly accountId: AccountId
  readonly webhookId: string
  readonly node: WatchNode
  readonly spec: WatchSpec
  /** Whether no indexed field narrows it. */
  readonly isBroad: boolean
  /** Blocks, including the event's own, before the event is delivered. */
  readonly confirmations: number
  readonly fromBlock: bigint
}

/** A subscription: an account's webhook receives events of contracts. */
export interface Watch extends Omit<NewWatch, "node" | "isBroad"> {
  readonly watchId: string
  /** Position in creation order. */
  readonly number: number
  readonly chainId: bigint
  /** Null: the operator's node, or sealed under another key. */
  readonly rpc: Redacted.Redacted<string> | null
  /** `held`: paused by the service while the webhook's backlog is over its limit. */
  readonly state: "enabled" | "paused" | "held"
  /** The next block to read. */
  readonly nextBlock: bigint
  /** Events delivered to the webhook's queue, numbered from 1. */
  readonly sequence: number
  /** Undelivered events, and abandoned events. */
  readonly waiting: number
  readonly dead: number
  /** The problem that keeps the node from being read; null: none. */
  readonly problem: string | null
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** A page of watches, in creation order. */
export interface WatchPage {
  /** Only watches with a higher number. */
  readonly after?: number | undefined
  readonly limit: number
}

/** The processed part of a block. Events are ordered by log, then by watch. */
export interface PartOfBlock {
  readonly hash: Bytes32
  readonly logIndex: number
  readonly watch: number
}

/** Read progress of watches, and the blocks that a reorganisation may undo. */
export interface Position {
  /** The first block read. */
  readonly first: bigint
  readonly next: bigint
  /** Hashes of the blocks before `next` that a reorganisation may undo, newest last. */
  readonly hashes: ReadonlyArray<Bytes32>
  /** The part of `next` that is already processed. Absent: none. */
  readonly part?: PartOfBlock | undefined
}

/** Shared progress of some of a node's watches. */
export interface WatchCursor extends Position {
  readonly cursor: number
}

/** The fields of a watch that select its events. */
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

export interface WatchedEvent {
  readonly watch: number
  readonly blockNumber: bigint
  readonly blockHash: Bytes32
  readonly logIndex: number
  /** JSON for the webhook. */
  readonly data: Readonly<Record<string, unknown>>
}

/** An event queued for the webhook. */
export interface WatchEvent {
  /** From 1 on, without a gap. */
  readonly sequence: number
  /** `removed`: a reorganisation removed an event that was queued before. */
  readonly kind: "event" | "removed"
  readonly data: Readonly<Record<string, unknown>>
  /** Unix milliseconds. */
  readonly at: number
}

/** The result of one read for a cursor's watches. */
export interface WatchStep {
  readonly cursor: number
  readonly position: Position
  /** The highest previously read block that is still in the chain; null: no reorganisation. */
  readonly ancestor: bigint | null
  readonly events: ReadonlyArray<WatchedEvent>
  /** The chain's newest block when the blocks were read. */
  readonly head: bigint
}

/** The active watches of a source, as of a revision. */
export interface WatchSourceState {
  readonly revision: number
  readonly cursors: ReadonlyArray<WatchCursor>
  /** Cursor of each watch, by the watch's number. */
  readonly watches: ReadonlyMap<number, number>
  /** Watches added or resumed since the requested revision. */
  readonly fresh: ReadonlyArray<FollowedWatch>
}

/**
 * - `tooMany`: the account has reached its limit
 * - `noWebhook`: the account has no such webhook
 * - `stale`: a change of the source's watches, or another process, has changed the source; nothing was written
 * - `unavailable`: the store failed
 */
export class WatchesError extends Data.TaggedError("WatchesError")<{
  readonly reason: "tooMany" | "noWebhook" | "stale" | "unavailable"
  readonly message: string
}> {}

type Asked<A> = Effect.Effect<A, WatchesError>

/**
 * Watches, their read progress and their queued events. One transaction writes a step's events, their sequence numbers,
 * their deliveries and the new position, provided that the source still has the revision the step was made from. So of
 * two processes that follow one node, the second writes nothing.
 */
export class Watches extends Context.Service<
  Watches,
  {
    /** `by` is the author in the log of changes: a request id or `operator`. */
    readonly add: (watch: NewWatch, by: string) => Asked<string>
    /** In creation order, for one account or all. */
    readonly list: (accountId: AccountId | null, page: WatchPage) => Asked<ReadonlyArray<Watch>>
    /** Null: no such watch. */
    readonly get: (watchId: string) => Asked<Watch | null>
    /** A paused watch keeps its position and resumes from there. False: no such watch. */
    readonly setState: (watchId: string, state: "enabled" | "paused", by: string) => Asked<boolean>
    /** Removes its undelivered events too. */
    readonly remove: (watchId: string, by: string) => Asked<boolean>

    /** Sources that have active watches and that no other process has claimed. */
    readonly sources: (process: string) => Asked<ReadonlyArray<WatchSource>>
    /**
     * Claims the source for this process until `until`, at most some minutes from now. Returns the source's revision;
     * null: another process has it.
     */
    readonly claim: (source: number, process: string, until: number) => Asked<number | null>
    readonly release: (source: number, process: string) => Asked<void>
    /** `after`: the revision that the caller has; 0: none. */
    readonly state: (source: number, after: number) => Asked<WatchSourceState>
    /**
     * Writes a step and returns the new revision. Queued events above the ancestor are queued again as `removed`,
     * newest first; events not yet queued are deleted. Then new events are stored, and events with enough confirmations
     * are queued, in chain order.
     */
    readonly advance: (source: number, revision: number, step: WatchStep) => Asked<number>
    /** Moves the watches of one cursor to another. */
    readonly merge: (source: number, revision: number, from: number, into: number) => Asked<number>
    /** Holds watches with a backlog over its limit, resumes other held ones; returns the number of changes. */
    readonly balance: (source: number) => Asked<number>
    /** Records the problem that keeps the source from being read; null: none. */
    readonly note: (source: number, problem: string | null) => Asked<void>
  }
>()("castellan/Watches") {}
