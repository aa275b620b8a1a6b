import { describe, expect } from "@effect/vitest"
import { Effect, References } from "effect"
import * as NodePolls from "../../../src/application/lanes/monitor/NodePolls.js"
import * as RemoteOps from "../../../src/application/lanes/remote/RemoteOps.js"
import * as HoldFollower from "../../../src/application/payers/HoldFollower.js"
import type { Budgets } from "../../../src/application/ports/Budgets.js"
import type { ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Holding from "../../../src/application/ports/journal/Holding.js"
import * as Make from "../../support/journal/Make.js"
import * as Landings from "../../support/lanes/Landings.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

/** Records the epoch of the claim in force at each call; null: no claim. */
const noting = () => {
  const epochs: Array<number | null> = []
  const note = Effect.map(Holding.begun, ({ holding }) => void epochs.push(holding?.epoch ?? null))
  return { epochs, note }
}

/** Work of a request that began under the claim of this epoch. */
const under =
  (epoch: number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.provideService(effect, Holding.begun, { holding: { ...Make.lane, epoch } })

const { profile } = Monitor
const { client } = Landings.makeChain()

describe("shared work begun by a request whose lane another process has claimed since", () => {
  test("runs without the request's claim and log annotations when detached", function* () {
    const { epochs, note } = noting()
    const annotations: Array<unknown> = []
    const scope = yield* Effect.scope
    const noted = Effect.flatMap(References.CurrentLogAnnotations, (own) =>
      Effect.andThen(note, () => Effect.sync(() => void annotations.push(own)))
    )
    yield* NodePolls.detach(noted, scope).pipe(under(1), Effect.annotateLogs({ requestId: "r" }))
    yield* Time.settle
    expect([epochs, annotations]).toEqual([[null], [{}]])
  })

  test("runs without the request's claim when polling ops at remote bundlers", function* () {
    const { epochs, note } = noting()
    const chain: ChainClient = { ...client, block: (tag) => Effect.andThen(note, client.block(tag)) }
    const remoteOps = yield* RemoteOps.make({
      remoteOpJournal: {} as never,
      listener: { affected: () => Effect.void, reopened: Effect.void, notifyEvents: Effect.void }
    })
    yield* under(1)(
      remoteOps.resume({
        chain,
        profile,
        bundler: null,
        offer: null,
        validUntil: 0,
        submission: {
          requestId: "r",
          index: 0,
          accountId: Make.alice,
          space: { ...Make.space(1), entryPoint: Landings.entryPoint },
          userOpHash: Make.word(1),
          node: { rpc: Monitor.callers.rpc, trust: "caller" },
          since: 0n,
          signed: null,
          isRefused: false,
          includedIn: null,
          landedAs: Make.word(1)
        }
      })
    )
    yield* Time.settle
    expect(epochs[0]).toBeNull()
  })

  test("runs without the request's claim when polling sponsored ops", function* () {
    const { epochs, note } = noting()
    const due = () => Effect.as(note, { holds: [], hasLater: false })
    const budgets = { due } as unknown as Budgets["Service"]
    const follower = HoldFollower.make(budgets, yield* Effect.scope)
    yield* under(1)(follower.watch({ accountId: Make.alice, chain: client, profile }))
    yield* Time.settle
    expect(epochs).toEqual([null])
  })
})
