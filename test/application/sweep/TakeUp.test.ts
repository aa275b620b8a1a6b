import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Redacted } from "effect"
import type { Engine } from "../../../src/application/lanes/Engine.js"
import { Requests } from "../../../src/application/lanes/requests/Requests.js"
import { TransactionMonitor } from "../../../src/application/lanes/TransactionMonitor.js"
import * as Troubles from "../../../src/application/observe/Troubles.js"
import * as Losses from "../../../src/application/pay/Losses.js"
import * as Sponsorships from "../../../src/application/pay/Sponsorships.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { ChainRpc, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import type { RequestRecord } from "../../../src/application/ports/journal/Requests.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import * as ServiceSubmission from "../../../src/application/prepare/ServiceEoa.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import type { Obstacle } from "../../../src/application/sweep/Obstacles.js"
import * as TakeUp from "../../../src/application/sweep/TakeUp.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import * as Log from "../../support/Log.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import * as Ops from "../../support/lanes/Ops.js"
import * as Parties from "../../support/Parties.js"
import { test } from "../../support/Test.js"

const accepted = {
  requestId: "r",
  accountId: Make.bob,
  lane: Make.lane,
  endpoint: ExecuteOperations.kind.endpoint,
  body: JSON.stringify({
    operations: [],
    settings: { entryPoint: Make.entryPoint, signer: { clientId: "key", versionId: "1" } }
  }),
  outcome: null
}

/** What stands in the way of taking something up; null: nothing. Of what that requires the context has what it looks at. */
const obstacleTo = <R>(takingUp: Effect.Effect<void, Obstacle, R>, context: Context.Context<never>) =>
  Effect.provide(
    Effect.match(takingUp, { onFailure: ({ message }) => message, onSuccess: () => null }),
    context as Context.Context<R>
  )

/** The callers for whom work on the request goes on; and what stands in its way. */
const resumed = (record: Partial<RequestRecord> | null) =>
  Effect.gen(function* () {
    const callers: Array<Caller> = []
    const context = Context.make(RequestJournal, {
      request: () => Effect.succeed(record === null ? null : { ...accepted, ...record })
    } as unknown as RequestJournal["Service"]).pipe(
      Context.add(Requests, {
        run: (_: unknown, caller: Caller) => Effect.sync(() => void callers.push(caller))
      } as unknown as Requests)
    )
    const obstacle = yield* obstacleTo(TakeUp.resume("r"), context)
    return { callers, obstacle }
  })

describe("an accepted request that is taken up", () => {
  test("goes on for its account, on the chain of its lane, as one that was accepted before", function* () {
    const { callers, obstacle } = yield* resumed({})
    expect(obstacle).toBeNull()
    expect(callers).toMatchObject([
      {
        principal: { accountId: Make.bob },
        requestId: "r",
        resumed: true,
        chainId: Make.chainId
      }
    ])
  })

  test("does not begin again once it has its answer, is held until an operator decides, or is no more", function* () {
    for (const record of [{ outcome: "{}" }, { held: "otherNonce" }, null])
      expect(yield* resumed(record as Partial<RequestRecord>)).toEqual({ callers: [], obstacle: null })
  })

  test("waits where its body can not be read, or is of another version of the program", function* () {
    for (const [record, obstacle] of [
      [{ body: null }, "the request was sealed under another key, or changed"],
      [{ body: "{}" }, "the request is of another version of the program"],
      [{ endpoint: "former" }, "this version has no endpoint former"]
    ] as const)
      expect(yield* resumed(record)).toEqual({ callers: [], obstacle })
  })
})

describe("a transaction that is taken up", () => {
  const record = Monitor.recordOf(3, Monitor.callers)
  /** The nonces that are given to the monitor; and what stands in the way. */
  const watched = (isWatched: boolean, isConfigured = true) =>
    Effect.gen(function* () {
      const nonces: Array<bigint> = []
      const context = Context.make(TransactionMonitor, {
        isWatched: () => isWatched,
        watch: (given: { readonly record: typeof record }) =>
          Effect.sync(() => void nonces.push(given.record.nonce))
      } as unknown as TransactionMonitor).pipe(
        Context.add(Networks, {
          profile: () => Effect.succeed(isConfigured ? Monitor.profile : null),
          chainIds: Effect.succeed([])
        })
      )
      const obstacle = yield* obstacleTo(TakeUp.watch(record), context)
      return { nonces, obstacle }
    })

  test("is watched, and not given to nodes once more where it is watched already", function* () {
    expect(yield* watched(false)).toEqual({ nonces: [3n], obstacle: null })
    expect(yield* watched(true)).toEqual({ nonces: [], obstacle: null })
  })

  test("waits for its network to be configured again", function* () {
    expect(yield* watched(false, false)).toEqual({
      nonces: [],
      obstacle: "its network is not configured any more"
    })
  })
})

describe("sponsored ops that a process left when it stopped", () => {
  const hold = (account: typeof Make.alice, chainId: bigint) => ({
    accountId: account,
    chainId,
    name: Sponsorships.budget,
    id: `${account} on ${chainId}`,
    bound: true
  })
  const rpcs = new Map([
    [1n, "http://present"],
    [2n, null],
    [3n, "http://forbidden"]
  ])

  test("are followed at the operator's node of their chain, account by account", function* () {
    const followed: Array<string> = []
    const lines = yield* Log.listen
    const context = Context.make(Budgets, {
      open: (chainId: bigint) => Effect.succeed([hold(Make.alice, chainId), hold(Make.bob, chainId)])
    } as unknown as Budgets["Service"]).pipe(
      Context.add(Sponsorships.Sponsorships, {
        watch: ({ accountId, chain, profile }) =>
          Effect.sync(() => void followed.push(`${accountId} on ${profile.chainId} at ${chain.origin}`))
      }),
      Context.add(ChainRpc, {
        connect: (url, by) =>
          url.includes("forbidden")
            ? Effect.fail(new ChainRpcError({ reason: "forbidden", origin: url, message: "not allowed" }))
            : Effect.succeed({ origin: `${url} of ${by}` } as never)
      }),
      Context.add(Networks, {
        profile: (_, chainId) => {
          const rpc = rpcs.get(chainId)
          return Effect.succeed(
            rpc === undefined
              ? null
              : NetworkProfile.make({ chainId, rpc: rpc === null ? null : Redacted.make(rpc) })
          )
        },
        chainIds: Effect.succeed([1n, 2n, 3n, 4n])
      })
    )
    yield* Effect.repeat(TakeUp.followSponsored(Troubles.make()), { times: 1 }).pipe(
      Effect.provide(context as Context.Context<ChainRpc | Networks | Engine>)
    )
    expect(followed.slice(2)).toEqual([
      "alice on 1 at http://present of operator",
      "bob on 1 at http://present of operator"
    ])
    // One for each chain, however many accounts and looks.
    expect(lines.filter(({ level }) => level === "ERROR")).toHaveLength(3)
  })
})

describe("what is set aside for an op that the service's EOA submits", () => {
  const profile = NetworkProfile.make({ chainId: Make.chainId })
  const prices = { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n, legacy: false }
  const limited = { ...profile, serviceSubmission: { ...profile.serviceSubmission, maxInFlight: 2 } }
  const setAside = (requestId: string) =>
    Effect.gen(function* () {
      const caller = Parties.caller(requestId)
      const risk = { requestId, index: 0, op: Ops.plain, l1Fee: 1_000_000n }
      const { accountId } = caller.principal
      const site = { accountId, connection: { profile: limited }, version: "v0.7" as const }
      const [refused] = yield* ServiceSubmission.reserve(site, [risk], prices)
      if (refused === null) yield* ServiceSubmission.bind(site, risk)
      return refused === null
    })
  /** The journal has the answer of those that begin with "ended". */
  const journal = {
    finalAmong: (requestIds: ReadonlyArray<string>) =>
      Effect.succeed(requestIds.filter((requestId) => requestId.startsWith("ended")))
  } as unknown as RequestJournal["Service"]

  it.effect("is given back once the request was cancelled or has expired, whoever worked on it", () =>
    Effect.gen(function* () {
      const budgets = yield* Budgets
      const open = Effect.map(budgets.open(Make.chainId), (holds) => holds.map(({ id }) => id))
      expect(yield* setAside("ended")).toBe(true)
      expect(yield* setAside("open")).toBe(true)
      expect(yield* setAside("next")).toBe(false)
      yield* TakeUp.giveBackEnded
      expect(yield* open).toEqual(["service-eoa:open:0"])
      expect(yield* setAside("next")).toBe(true)
    }).pipe(
      Effect.provide(InMemory.budgets),
      Effect.provideService(RequestJournal, journal),
      Effect.provideService(Networks, {
        profile: () => Effect.succeed(profile),
        chainIds: Effect.succeed([Make.chainId])
      })
    )
  )

  it.effect("and what a transaction of it has cost is not", () =>
    Effect.gen(function* () {
      const budgets = yield* Budgets
      const entry = { accountId: Make.alice, chainId: Make.chainId, name: Losses.budget, wei: 7n }
      const id = `${Losses.budget}:${Make.lane.signer}:3:${Make.alice}`
      yield* budgets.reserve([[{ ...entry, id, limit: null, maxOpen: null, daily: true, expiresAt: 1_000 }]])
      yield* budgets.bind({ ...entry, id }, "")
      yield* ServiceSubmission.giveBackEnded(Make.chainId)
      expect(yield* budgets.open(Make.chainId)).toHaveLength(1)
    }).pipe(
      Effect.provide(InMemory.budgets),
      Effect.provideService(RequestJournal, {
        finalAmong: (requestIds: ReadonlyArray<string>) => Effect.succeed(requestIds)
      } as unknown as RequestJournal["Service"])
    )
  )
})
