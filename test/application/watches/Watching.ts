import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { expect } from "vitest"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as SqlWatches from "../../../src/adapters/sql/watches/Watches.js"
import * as SqlWebhooks from "../../../src/adapters/sql/webhooks/Webhooks.js"
import { Replicas } from "../../../src/application/ports/Replicas.js"
import type { WatchEvent } from "../../../src/application/ports/Watches.js"
import type * as Emission from "../../../src/application/watches/Emission.js"
import * as Follower from "../../../src/application/watches/Follower.js"
import { options } from "../../support/journal/Layers.js"
import * as Following from "./Following.js"
import type { ForkingChain } from "./ForkingChain.js"

export const store = Layer.provide(
  Layer.mergeAll(SqlWatches.layer(options), SqlWebhooks.layer(options)),
  Layer.orDie(Sqlite.layer({ filename: ":memory:" }))
).pipe(Layer.orDie)

/** Over a separate in-memory database; only `Time` advances the clock. */
export const inMemory = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, Layer.merge(Layer.fresh(store), TestClock.layer()))

const replica = (process: string) =>
  Layer.succeed(Replicas, {
    process,
    owns: () => true,
    assigned: Stream.empty,
    independent: Effect.succeed([]),
    tell: () => Effect.void,
    signals: Stream.empty
  })

/** A process that follows the chain, until the scope ends. */
export const begin = (chain: ForkingChain, process = "this one", most?: Emission.Bounds) =>
  Effect.provide(Follower.startWith(most), Layer.merge(Following.around(chain), replica(process)))

const placeOf = ({ data }: WatchEvent): string => `${data.blockNumber} ${data.blockHash} ${data.logIndex}`

/** A receiver's state after these events; fails on a missing number or a removal of an absent event. */
export const fold = (told: ReadonlyArray<WatchEvent>): ReadonlyArray<string> => {
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

/** The events that a watch of transfers should have received and not removed, for the current chain. */
export const truth = (chain: ForkingChain, to: number | null, confirmations: number, fromBlock: bigint) =>
  chain.blocks
    .filter(({ number }) => number >= fromBlock && number + BigInt(confirmations) - 1n <= chain.head.number)
    .flatMap(({ hash, logs, number }) =>
      logs
        .filter((log) => log.address === Following.token && (to === null || log.topics[2]?.endsWith(`${to}`)))
        .map(({ logIndex }) => `${number} ${hash} ${logIndex}`)
    )
