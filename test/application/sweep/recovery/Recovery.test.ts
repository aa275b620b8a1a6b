import { describe, expect } from "@effect/vitest"
import { Context, Effect, Redacted } from "effect"
import { Requests } from "../../../../src/application/lanes/requests/Requests.js"
import { ChainRpc, ChainRpcError } from "../../../../src/application/ports/chain/ChainRpc.js"
import { JournalError } from "../../../../src/application/ports/journal/JournalError.js"
import { RecoveryJournal } from "../../../../src/application/ports/journal/RecoveryJournal.js"
import { RequestJournal } from "../../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../../src/application/ports/journal/TransactionJournal.js"
import { Networks } from "../../../../src/application/ports/Networks.js"
import * as Recovery from "../../../../src/application/sweep/recovery/Recovery.js"
import * as TransactSigner from "../../../../src/application/usecases/operations/TransactSigner.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import { test } from "../../../support/Test.js"

const node = "http://host/node"
const otherNode = "http://host/other"
const failure = (reason: ChainRpcError["reason"]) =>
  new ChainRpcError({ reason, origin: node, message: `the node is ${reason}` })

/** A lane with one nonce, used by what the journal knows, and its accepted transactions of the key. */
const world = () => {
  const state = {
    /** What the node says to questions for its chain id, and for blocks; null: it answers. */
    atConnection: null as ChainRpcError | null,
    atBlocks: null as ChainRpcError | null,
    pending: 1n,
    /** The nonces of the key below it are known. */
    known: 0n,
    hasBundler: false,
    isStoreAway: false,
    /** All nonces are known from now on. */
    isExplained: false,
    isConfigured: true
  }
  const held: Array<string> = []
  const answer = <A>(error: ChainRpcError | null, value: A) =>
    error === null ? Effect.succeed(value) : Effect.fail(error)
  const chainOf = (url: string) => ({
    origin: node,
    chainId: Effect.suspend(() => answer(state.atConnection, Make.chainId)),
    block: () =>
      Effect.suspend(() => answer(url === node ? state.atBlocks : null, { number: 0n, timestamp: 0 })),
    transactionCount: (_: unknown, tag: unknown) =>
      Effect.sync(() => (tag === "pending" ? state.pending : 1n))
  })
  const chains = new Map([node, otherNode].map((url) => [url, chainOf(url)]))
  const request = (requestId: string) =>
    Effect.suspend(() =>
      state.isStoreAway
        ? Effect.fail(new JournalError({ message: "the store is away" }))
        : Effect.succeed({
            requestId,
            accountId: Make.alice,
            lane: Make.lane,
            endpoint: TransactSigner.kind.endpoint,
            body: JSON.stringify({
              to: Make.address(1),
              settings: {
                rpc: requestId === "other" ? otherNode : node,
                signer: { clientId: "key", versionId: "1" }
              }
            }),
            acceptedAt: 0,
            failed: [],
            ops: [],
            txHashes: [],
            outcome: null
          })
    )
  const context = Context.make(ChainRpc, {
    connect: (url) => Effect.succeed(chains.get(url) as never)
  }).pipe(
    Context.add(Networks, {
      profile: () =>
        Effect.sync(() =>
          state.isConfigured
            ? {
                ...Monitor.profile,
                remoteBundler: state.hasBundler ? Redacted.make("http://host/bundler") : null
              }
            : null
        ),
      chainIds: Effect.succeed([Make.chainId])
    }),
    Context.add(Requests, { isWorkedOn: () => false } as unknown as Requests),
    Context.add(RequestJournal, { request } as unknown as RequestJournal["Service"]),
    Context.add(TransactionJournal, {
      openOf: () => Effect.succeed([]),
      transactionsBetween: () => Effect.succeed([{ nonce: 0n }])
    } as unknown as TransactionJournal["Service"])
  )
  const recovery = Recovery.make()
  /** What stands in the way of the requests; null: nothing. */
  const examine = (...requestIds: ReadonlyArray<string>) =>
    Effect.match(recovery.examine(Make.lane, requestIds), {
      onFailure: ({ message, passes }) => ({ message, passes }),
      onSuccess: () => null
    }).pipe(
      Effect.provide(
        Context.add(context, RecoveryJournal, {
          knownTo: () => Effect.sync(() => state.known),
          openIn: () =>
            Effect.succeed(requestIds.map((requestId) => ({ requestId, acceptedAt: 0, isReleased: false }))),
          keepUnread: () => Effect.void,
          explain: () => Effect.sync(() => Object.assign(state, { isExplained: true })),
          hold: (_: unknown, requestId: string) => Effect.sync(() => held.push(requestId) > 0)
        } as unknown as RecoveryJournal["Service"])
      )
    ) as Effect.Effect<{ readonly message: string; readonly passes: boolean } | null>
  return { examine, held, state }
}

describe("a lane whose key's nonces are all known", () => {
  test("is compared with the chain where a bundler sends its ops, and not where they go under those nonces", function* () {
    for (const hasBundler of [false, true]) {
      const { examine, state } = world()
      Object.assign(state, { known: 1n, hasBundler })
      expect(yield* examine("request")).toBeNull()
      expect(state.isExplained).toBe(hasBundler)
    }
  })
})

describe("what keeps a lane from being compared with the chain", () => {
  test("passes where a node or the store is away, or the chain has to go on", function* () {
    const passing = { passes: true }
    for (const reason of ["unreachable", "unavailable", "rateLimited", "notAnRpc"] as const) {
      const { examine, state } = world()
      state.atConnection = failure(reason)
      expect(yield* examine("request")).toMatchObject(passing)
      state.atConnection = null
      state.atBlocks = failure(reason)
      expect(yield* examine("request")).toMatchObject(passing)
      state.atBlocks = null
      expect(yield* examine("request")).toBeNull()
    }
    const { examine, state } = world()
    state.isStoreAway = true
    expect(yield* examine("request")).toMatchObject(passing)
    state.isStoreAway = false
    state.pending = 2n
    expect(yield* examine("request")).toMatchObject(passing)
  })

  test("does not pass where the operator serves its chain no more", function* () {
    const { examine, state } = world()
    state.isConfigured = false
    expect(yield* examine("request")).toMatchObject({ passes: false })
  })

  test("holds what a node refuses to tell of three times on end, and not three times in all", function* () {
    const { examine, held, state } = world()
    for (const requestId of ["first", "second", "third", "fourth"]) {
      state.atBlocks = failure("rejected")
      expect(yield* examine(requestId)).toEqual({ message: "the node is rejected", passes: true })
      state.atBlocks = null
      expect(yield* examine(requestId)).toBeNull()
    }
    expect(held).toEqual([])
    state.atBlocks = failure("rejected")
    expect(yield* examine("last")).not.toBeNull()
    expect(yield* examine("last")).not.toBeNull()
    expect(yield* examine("last")).toBeNull()
    expect(held).toEqual(["last"])
  })

  test("holds what one node refuses to tell of, and not what another one tells of", function* () {
    const { examine, held, state } = world()
    state.atBlocks = failure("unsupported")
    // The other one's goes on at once, and makes no nonce known for this one's.
    expect(yield* examine("other", "one")).toBeNull()
    expect(yield* examine("other", "one")).not.toBeNull()
    expect(state.isExplained).toBe(false)
    expect(yield* examine("other", "one")).toBeNull()
    expect(held).toEqual(["one"])
    expect(state.isExplained).toBe(true)
  })
})
