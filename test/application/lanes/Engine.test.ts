import { describe, expect } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, Stream } from "effect"
import { WakeUps } from "../../../src/application/answers/WakeUps.js"
import * as Engine from "../../../src/application/lanes/Engine.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { BundlerRpc } from "../../../src/application/ports/chain/BundlerRpc.js"
import { ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import { PaymasterRpc } from "../../../src/application/ports/chain/PaymasterRpc.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import { Replicas, type Signal } from "../../../src/application/ports/Replicas.js"
import { Signers, SystemSigners } from "../../../src/application/ports/Signers.js"
import { Lifetime } from "../../../src/application/runtime/Lifetime.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as InMemory from "../../support/journal/InMemory.js"
import { testOver } from "../../support/Test.js"

const lane = (digit: string) => ({ chainId: 1n, signer: Address.unsafe(`0x${digit.repeat(40)}`) })

/** An engine that owns one lane and receives signals. */
const engineOf = (assigned: Stream.Stream<void>) =>
  Layer.unwrap(
    Effect.map(Queue.unbounded<Signal>(), (signals) =>
      Layer.provideMerge(
        Layer.fresh(Engine.layer),
        Layer.mergeAll(
          InMemory.journal,
          Layer.mock(Budgets)({}),
          Layer.mock(BundlerRpc)({}),
          Layer.mock(ChainRpc)({}),
          Layer.mock(Networks)({}),
          Layer.mock(PaymasterRpc)({}),
          Layer.mock(Signers)({}),
          Layer.mock(SystemSigners)({}),
          Layer.succeed(Replicas, {
            process: "this one",
            owns: ({ signer }) => signer === lane("1").signer,
            independent: Effect.succeed([]),
            tell: (signal) => Effect.asVoid(Queue.offer(signals, signal)),
            assigned,
            signals: Stream.fromQueue(signals)
          })
        )
      )
    )
  )

const engine = engineOf(Stream.never)

describe("the engine", () => {
  testOver(engine)("wakes waiters on a final answer from another process, before any poll", function* () {
    const wakeUps = yield* WakeUps
    const { tell } = yield* Replicas
    let looks = 0
    const waiter = yield* Effect.forkChild(
      wakeUps.until(
        "request",
        Effect.sync(() => (++looks === 1 ? null : "its answer"))
      )
    )
    yield* Effect.repeat(Effect.yieldNow, { until: () => looks === 1 })
    yield* tell({ _tag: "final", requestId: "another request" })
    yield* tell({ _tag: "final", requestId: "request" })
    expect(yield* Fiber.join(waiter)).toBe("its answer")
    expect(looks).toBe(2)
  })

  testOver(engine)("sweeps the journal for requests accepted on its own lanes only", function* () {
    const { nudges } = yield* Lifetime
    const { tell } = yield* Replicas
    yield* tell({ _tag: "accepted", lane: lane("2") })
    yield* Effect.repeat(Effect.yieldNow, { times: 50 })
    expect(yield* Queue.size(nudges)).toBe(0)
    yield* tell({ _tag: "accepted", lane: lane("1") })
    yield* Queue.take(nudges)
  })

  testOver(engineOf(Stream.make(undefined)))(
    "sweeps the journal when it is assigned more lanes",
    function* () {
      const { nudges } = yield* Lifetime
      yield* Queue.take(nudges)
    }
  )
})
