import { describe, expect } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import {
  type ChainClient,
  ChainRpcError,
  type FoundLog
} from "../../../src/application/ports/chain/ChainRpc.js"
import { Watches } from "../../../src/application/ports/Watches.js"
import * as Follower from "../../../src/application/watches/Follower.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Log from "../../support/Log.js"
import * as SetClock from "../../support/SetClock.js"
import { testOver } from "../../support/Test.js"
import * as Following from "./Following.js"
import { ForkingChain } from "./ForkingChain.js"
import * as Watching from "./Watching.js"

const few = { events: 20, characters: 1_000_000 }

/** Whether a process ends before a step is written, or after that without its reply. */
type Crash = "before" | "after"

/** A process that makes this many steps, and ends at the next one. */
const untilStep = (chain: ForkingChain, process: string, steps: number, crash: Crash) =>
  Effect.gen(function* () {
    const watches = yield* Watches
    const dead = yield* Deferred.make<void>()
    let left = steps
    const advance: typeof watches.advance = (...step) => {
      if (left-- > 0) return watches.advance(...step)
      const end = Effect.andThen(Deferred.succeed(dead, undefined), Effect.never)
      return crash === "before" ? end : Effect.andThen(watches.advance(...step), end)
    }
    yield* Effect.forEach(yield* watches.sources(process), (source) =>
      Effect.raceFirst(
        Effect.provide(Follower.follow(source, process, few), Following.around(chain)),
        Deferred.await(dead)
      )
    ).pipe(Effect.provideService(Watches, { ...watches, advance }))
  })

const test = testOver(Watching.store)

describe("watches", () => {
  test("receive new events, and removals of reorganised events, newest first", function* () {
    const chain = new ForkingChain(3)
    yield* Watching.begin(chain)
    const watchId = yield* Following.add()
    chain.mine([Following.transfer(1), Following.transfer(2, 1, Following.other)])
    chain.mine([Following.transfer(3), Following.transfer(4)])
    yield* Following.caughtUp(chain)
    chain.takeBack(1)
    chain.mine([])
    chain.mine([Following.transfer(5)])
    yield* Following.caughtUp(chain)
    const told = (yield* Following.deliveries()).get(watchId) ?? []
    expect(
      told.map(({ data, kind, sequence }) => [
        sequence,
        kind,
        Number((data.args as { readonly to: string }).to)
      ])
    ).toEqual([
      [1, "event", 1],
      [2, "event", 3],
      [3, "event", 4],
      [4, "removed", 4],
      [5, "removed", 3],
      [6, "event", 5]
    ])
    expect(Watching.fold(told)).toEqual(Watching.truth(chain, null, 1, 0n))
  })

  test("receive events in bounded steps, of whole blocks or parts of one, without a gap", function* () {
    const chain = new ForkingChain(1)
    const transfers = [1, 2, 3].map((to) => Following.transfer(to))
    // Final blocks, and blocks read by their hashes, one with more events than a step.
    for (let n = 0; n < 12; n++) chain.mine(transfers)
    for (let n = 0; n < Following.depth - 12; n++) chain.mine([])
    for (let n = 0; n < 11; n++) chain.mine(transfers)
    chain.mine([...transfers, ...transfers])
    const [watchId = ""] = yield* Effect.forEach([1, 2, 3, 4], () => Following.add())
    const watches = yield* Watches
    const steps: Array<number> = []
    const counting = Watches.of({
      ...watches,
      advance: (source, revision, step) => {
        steps.push(step.events.length)
        return watches.advance(source, revision, step)
      }
    })
    for (const source of yield* watches.sources("this one"))
      yield* Effect.forkScoped(
        Effect.provide(Follower.follow(source, "this one", few), Following.around(chain)).pipe(
          Effect.provideService(Watches, counting)
        )
      )
    yield* Following.caughtUp(chain)
    expect(steps).toEqual([
      ...Array.from({ length: 12 }, () => 12),
      ...Array.from({ length: 11 }, () => 12),
      20,
      4
    ])
    const told = (yield* Following.deliveries()).get(watchId) ?? []
    expect(Watching.fold(told)).toEqual(Watching.truth(chain, null, 1, 0n))
    expect(told).toHaveLength(12 * 3 + 11 * 3 + 6)
  })

  for (const crash of ["before", "after"] as const)
    test(`receive each event once when processes end ${crash} each part of a block`, function* () {
      const chain = new ForkingChain(3)
      const watches = yield* Watches
      const ids = yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7], () => Following.add())
      chain.mine(Array.from({ length: 13 }, (_, to) => Following.transfer(to)))
      chain.mine([Following.transfer(1)])
      // 91 events in the first block; every process but the first writes 20.
      for (let n = 0; n < 4; n++) {
        yield* untilStep(chain, `process ${n}`, crash === "before" ? 1 : 0, crash)
        yield* TestClock.adjust("31 seconds")
      }
      const { nextBlock, sequence } = (yield* watches.get(ids[0] ?? "")) ?? {}
      yield* Watching.begin(chain, "the last one")
      yield* Following.caughtUp(chain)
      expect([nextBlock, sequence]).toEqual([3n, 9])
      const told = yield* Following.deliveries()
      for (const id of ids) {
        expect(Watching.fold(told.get(id) ?? [])).toEqual(Watching.truth(chain, null, 1, 0n))
        expect(told.get(id)).toHaveLength(14)
      }
    })

  test("resume after their node was away, report the cause meanwhile, and log it once", function* () {
    const lines = yield* Log.listen
    const chain = new ForkingChain(3)
    const watches = yield* Watches
    const watchId = yield* Following.add()
    yield* Watching.begin(chain)
    chain.mine([Following.transfer(1)])
    yield* Following.caughtUp(chain)
    chain.broken = "unreachable"
    chain.mine([Following.transfer(2)])
    yield* Following.until(
      Effect.map(watches.get(watchId), (watch) => watch?.problem === "away" && watch.nextBlock === 4n)
    )
    yield* Following.rounds(50)
    chain.broken = null
    yield* Following.caughtUp(chain)
    yield* Following.until(Effect.map(watches.get(watchId), (watch) => watch?.problem === null))
    expect(Log.told(lines, "a node is not read for watches")).toEqual(["WARN", "INFO"])
    expect(Watching.fold((yield* Following.deliveries()).get(watchId) ?? [])).toEqual(
      Watching.truth(chain, null, 1, 0n)
    )
  })

  test("deliver an event whose data the node withholds after a minute, and name the missing data", function* () {
    const chain = new ForkingChain(3)
    const watches = yield* Watches
    const watchId = yield* Following.add({ fromBlock: 0n })
    const { client } = chain
    const odd = new ChainRpcError({
      reason: "notAnRpc",
      origin: "http://node",
      message: "http://node: the answer to eth_getLogs is malformed at 0.data"
    })
    const withoutData = (log: FoundLog): FoundLog => ({ ...log, data: Hex.empty, missing: ["data"] })
    const reading = (how: string | undefined) => (logs: ReadonlyArray<FoundLog>) =>
      logs.length === 0 || how === "placed" ? Effect.succeed(logs.map(withoutData)) : Effect.fail(odd)
    Object.defineProperty(chain, "client", {
      value: {
        ...client,
        logs: (filter, how) => Effect.flatMap(client.logs(filter), reading(how)),
        logsOf: (hash, filter, how) => Effect.flatMap(client.logsOf(hash, filter), reading(how))
      } satisfies ChainClient
    })
    chain.mine([Following.transfer(1), Following.transfer(2)])
    yield* Watching.begin(chain)
    yield* Following.until(
      Effect.map(
        watches.get(watchId),
        (watch) =>
          watch?.problem?.includes(
            "malformed at 0.data; if it stays so, give networks[].rpc another node"
          ) === true
      )
    )
    expect((yield* Following.deliveries()).size).toBe(0)
    yield* Following.caughtUp(chain)
    const told = (yield* Following.deliveries()).get(watchId) ?? []
    expect(told.map(({ data }) => [data.logIndex, data.args, data.missing])).toEqual(
      [1, 2].map((to, place) => [
        place,
        { from: Following.addressOf(0xff), to: Following.addressOf(to), value: null },
        ["data"]
      ])
    )
    expect((yield* watches.get(watchId))?.problem ?? null).toBeNull()
  })

  test("reject a chain without any of the blocks that were read", function* () {
    const chain = new ForkingChain(200)
    const watches = yield* Watches
    const watchId = yield* Following.add({ fromBlock: 100n })
    yield* Watching.begin(chain)
    yield* Following.caughtUp(chain)
    const { blocks } = chain
    chain.takeBack(90)
    for (let n = 0; n < 95; n++) chain.mine([Following.transfer(n)])
    yield* Following.until(
      Effect.map(
        watches.get(watchId),
        (watch) => watch?.problem?.includes("has none of the last 64 blocks") === true
      )
    )
    expect((yield* watches.get(watchId))?.sequence).toBe(0)
    chain.blocks = blocks
    chain.mine([Following.transfer(1)])
    yield* Following.caughtUp(chain)
    expect((yield* watches.get(watchId))?.sequence).toBe(1)
  })

  test("are held while too many events wait for the webhook, and lose none", function* () {
    const chain = new ForkingChain(3)
    const watches = yield* Watches
    const watchId = yield* Following.add()
    yield* Watching.begin(chain)
    for (let n = 0; n < 6; n++) {
      chain.mine(Array.from({ length: 250 }, (_, to) => Following.transfer(to)))
      yield* Following.rounds(8)
    }
    yield* Following.until(Effect.map(watches.get(watchId), (watch) => watch?.state === "held"))
    const held = yield* watches.get(watchId)
    chain.mine([Following.transfer(1)])
    yield* Following.rounds(8)
    expect((yield* watches.get(watchId))?.nextBlock).toBe(held?.nextBlock)
    const first = (yield* Following.deliveries()).get(watchId) ?? []
    yield* Following.until(Effect.map(watches.get(watchId), (watch) => watch?.state === "enabled"))
    yield* Following.caughtUp(chain)
    const rest = (yield* Following.deliveries()).get(watchId) ?? []
    expect(Watching.fold([...first, ...rest])).toEqual(Watching.truth(chain, null, 1, 0n))
  })

  test("poll waiting work at the same rate when the machine's clock is set back", function* () {
    const chain = new ForkingChain(3)
    const watches = yield* Watches
    yield* Following.add()
    let [looks, setBack] = [0, 0]
    const balance: typeof watches.balance = (source) => {
      looks += 1
      return watches.balance(source)
    }
    yield* Effect.forEach(yield* watches.sources("one"), (source) =>
      Follower.follow(source, "one").pipe(
        Effect.provide(Following.around(chain)),
        Effect.provideService(Watches, { ...watches, balance }),
        SetClock.settable(() => -setBack),
        Effect.forkScoped
      )
    )
    yield* Following.until(Effect.sync(() => looks === 1))
    setBack = 3_600_000
    yield* Following.rounds(12)
    expect(looks).toBeGreaterThan(1)
  })

  test("are read by one process per node; a stale owner writes nothing", function* () {
    const chain = new ForkingChain(3)
    const watches = yield* Watches
    const watchId = yield* Following.add()
    yield* Effect.forEach(["one", "two", "three"], (process) => Watching.begin(chain, process))
    // No claim separates these.
    const claim: typeof watches.claim = (source, _, until) => watches.claim(source, "the same", until)
    yield* Effect.forEach(["four", "five"], (process) =>
      Effect.provideService(Watching.begin(chain, process), Watches, { ...watches, claim })
    )
    for (let n = 0; n < 20; n++) {
      chain.mine([Following.transfer(n)])
      if (n % 5 === 4) chain.takeBack(2)
      yield* Following.rounds(2)
    }
    chain.mine([])
    chain.mine([])
    chain.mine([])
    yield* Following.caughtUp(chain)
    expect(Watching.fold((yield* Following.deliveries()).get(watchId) ?? [])).toEqual(
      Watching.truth(chain, null, 1, 0n)
    )
  })
})
