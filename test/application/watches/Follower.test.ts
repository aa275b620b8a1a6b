import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Sqlite from "../../../src/adapters/sql/Sqlite.js"
import * as SqlWatches from "../../../src/adapters/sql/watches/Watches.js"
import * as SqlWebhooks from "../../../src/adapters/sql/webhooks/Webhooks.js"
import { Replicas } from "../../../src/application/ports/Replicas.js"
import { type WatchEvent, Watches } from "../../../src/application/ports/Watches.js"
import * as Followers from "../../../src/application/watches/Followers.js"
import { options } from "../../support/journal/Layers.js"
import * as Following from "../../support/watches/Following.js"
import { ForkingChain } from "../../support/watches/ForkingChain.js"

const store = Layer.provide(
  Layer.mergeAll(SqlWatches.layer(options), SqlWebhooks.layer(options)),
  Layer.orDie(Sqlite.layer({ filename: ":memory:" }))
).pipe(Layer.orDie)

const replica = (process: string) =>
  Layer.succeed(Replicas, {
    process,
    owns: () => true,
    assigned: Stream.empty,
    independent: Effect.succeed([]),
    tell: () => Effect.void,
    heard: Stream.empty
  })

/** A process that follows the chain, until the scope ends. */
const begin = (chain: ForkingChain, process = "this one") =>
  Effect.provide(Followers.start, Layer.merge(Following.around(chain), replica(process)))

const placeOf = ({ data }: WatchEvent): string => `${data.blockNumber} ${data.blockHash} ${data.logIndex}`

/** What a receiver has after it was told all of this: fails where a number is missing, or what was not there is removed. */
const fold = (told: ReadonlyArray<WatchEvent>): ReadonlyArray<string> => {
  const standing = new Set<string>()
  told.forEach((event, index) => {
    expect(event.sequence).toBe(index + 1)
    const place = placeOf(event)
    expect(standing.has(place)).toBe(event.kind === "removed")
    if (event.kind === "removed") standing.delete(place)
    else standing.add(place)
  })
  return [...standing]
}

const truth = (chain: ForkingChain, to: number | null, confirmations: number, fromBlock: bigint) =>
  chain.blocks
    .filter(({ number }) => number >= fromBlock && number + BigInt(confirmations) - 1n <= chain.head.number)
    .flatMap(({ hash, logs, number }) =>
      logs
        .filter((log) => log.address === Following.token && (to === null || log.topics[2]?.endsWith(`${to}`)))
        .map(({ logIndex }) => `${number} ${hash} ${logIndex}`)
    )

describe("watches", () => {
  it.scoped("are told of what comes, and of what a reorganisation takes back, newest first", () =>
    Effect.gen(function* () {
      const chain = new ForkingChain(3)
      yield* begin(chain)
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
      expect(fold(told)).toEqual(truth(chain, null, 1, 0n))
    }).pipe(Effect.provide(Layer.fresh(store)))
  )

  it.scoped("are told after their confirmations, and of nothing that was taken back before", () =>
    Effect.gen(function* () {
      const chain = new ForkingChain(3)
      yield* begin(chain)
      const watchId = yield* Following.add({ confirmations: 3 })
      chain.mine([Following.transfer(1)])
      chain.mine([Following.transfer(2)])
      yield* Following.caughtUp(chain)
      expect((yield* Following.deliveries()).size).toBe(0)
      chain.takeBack(1)
      chain.mine([])
      chain.mine([Following.transfer(3)])
      chain.mine([])
      yield* Following.caughtUp(chain)
      const told = (yield* Following.deliveries()).get(watchId) ?? []
      expect(told.map(({ data, kind }) => [kind, data.blockNumber])).toEqual([["event", 3]])
      expect(fold(told)).toEqual(truth(chain, null, 3, 0n))
    }).pipe(Effect.provide(Layer.fresh(store)))
  )

  it.scoped(
    "ten thousand of them cost one query of logs for a range of blocks, and one for a block",
    () =>
      Effect.gen(function* () {
        const chain = new ForkingChain(5)
        for (let n = 0; n < 2_500; n++) chain.mine(n % 50 === 0 ? [Following.transfer(n)] : [])
        const ids: Array<string> = []
        for (let n = 0; n < 10_000; n++) {
          const to = Following.addressOf(n)
          ids.push(yield* Following.add({ isBroad: false, spec: { ...Following.spec, fields: { to } } }))
        }
        yield* begin(chain)
        yield* Following.readBy(chain, ids[0] ?? "")
        const logs = (method: string) => chain.asked.filter((one) => one.method === method)
        // Blocks 0 to 2,440 are settled, in ranges of 1,000.
        expect(logs("logs")).toHaveLength(3)
        expect(logs("logsOf")).toHaveLength(Following.depth)
        chain.mine([Following.transfer(9_999), Following.transfer(9_999), Following.transfer(70_000)])
        yield* Following.readBy(chain, ids[0] ?? "")
        expect(logs("logsOf")).toHaveLength(Following.depth + 1)
        expect(logs("logs")).toHaveLength(3)
        const told = yield* Following.deliveries()
        expect(told.size).toBe(51)
        expect(told.get(ids[50] ?? "")).toHaveLength(1)
        expect(told.get(ids[9_999] ?? "")?.map(({ sequence }) => sequence)).toEqual([1, 2])
      }).pipe(Effect.provide(Layer.fresh(store))),
    { timeout: 120_000 }
  )

  it.scoped("go on where they were after their node was away, and say why meanwhile", () =>
    Effect.gen(function* () {
      const chain = new ForkingChain(3)
      const watches = yield* Watches
      const watchId = yield* Following.add()
      yield* begin(chain)
      chain.mine([Following.transfer(1)])
      yield* Following.caughtUp(chain)
      chain.broken = "unreachable"
      chain.mine([Following.transfer(2)])
      yield* Following.until(
        Effect.map(watches.get(watchId), (watch) => watch?.problem === "away" && watch.nextBlock === 4n)
      )
      chain.broken = null
      yield* Following.caughtUp(chain)
      yield* Following.until(Effect.map(watches.get(watchId), (watch) => watch?.problem === null))
      expect(fold((yield* Following.deliveries()).get(watchId) ?? [])).toEqual(truth(chain, null, 1, 0n))
    }).pipe(Effect.provide(Layer.fresh(store)))
  )

  it.scoped("believe no chain that has none of the blocks that were read", () =>
    Effect.gen(function* () {
      const chain = new ForkingChain(200)
      const watches = yield* Watches
      const watchId = yield* Following.add({ fromBlock: 100n })
      yield* begin(chain)
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
    }).pipe(Effect.provide(Layer.fresh(store)))
  )

  it.scoped("that are far behind go on with the others when they meet them, and hold none up", () =>
    Effect.gen(function* () {
      const chain = new ForkingChain(3_000)
      chain.mine([Following.transfer(1)])
      const early = yield* Following.add({ fromBlock: 10n })
      const late = yield* Following.add({ fromBlock: 2_900n })
      yield* begin(chain)
      yield* Following.caughtUp(chain)
      chain.asked.length = 0
      chain.mine([Following.transfer(2)])
      yield* Following.caughtUp(chain)
      expect(chain.asked.filter(({ method }) => method === "logsOf")).toHaveLength(1)
      const told = yield* Following.deliveries()
      expect(fold(told.get(early) ?? [])).toEqual(truth(chain, null, 1, 10n))
      expect(fold(told.get(late) ?? [])).toEqual(truth(chain, null, 1, 2_900n))
    }).pipe(Effect.provide(Layer.fresh(store)))
  )

  it.scoped("are read in as many parts as the node allows", () =>
    Effect.gen(function* () {
      const chain = new ForkingChain(10)
      for (let n = 0; n < 300; n++) chain.mine([Following.transfer(n)])
      chain.mostBlocks = 30n
      const watchId = yield* Following.add()
      yield* begin(chain)
      yield* Following.caughtUp(chain)
      expect(fold((yield* Following.deliveries()).get(watchId) ?? [])).toEqual(truth(chain, null, 1, 0n))
    }).pipe(Effect.provide(Layer.fresh(store)))
  )

  it.scoped("are held while too much waits for the webhook, and lose nothing of it", () =>
    Effect.gen(function* () {
      const chain = new ForkingChain(3)
      const watches = yield* Watches
      const watchId = yield* Following.add()
      yield* begin(chain)
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
      expect(fold([...first, ...rest])).toEqual(truth(chain, null, 1, 0n))
    }).pipe(Effect.provide(Layer.fresh(store)))
  )

  it.scoped(
    "of one node are read by one process; one that believes it is that process still writes nothing",
    () =>
      Effect.gen(function* () {
        const chain = new ForkingChain(3)
        const watches = yield* Watches
        const watchId = yield* Following.add()
        yield* Effect.forEach(["one", "two", "three"], (process) => begin(chain, process))
        // No claim keeps these from each other.
        const claim: typeof watches.claim = (source, _, until) => watches.claim(source, "the same", until)
        yield* Effect.forEach(["four", "five"], (process) =>
          Effect.provideService(begin(chain, process), Watches, { ...watches, claim })
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
        expect(fold((yield* Following.deliveries()).get(watchId) ?? [])).toEqual(truth(chain, null, 1, 0n))
      }).pipe(Effect.provide(Layer.fresh(store)))
  )
})
