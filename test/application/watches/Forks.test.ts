import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { Watches } from "../../../src/application/ports/Watches.js"
import * as Following from "./Following.js"
import { ForkingChain } from "./ForkingChain.js"
import * as Watching from "./Watching.js"

const Step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ mine: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      takeBack: fc.integer({ min: 1, max: 20 }),
      mine: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 })
    })
  },
  { weight: 6, arbitrary: fc.record({ rest: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      to: fc.option(fc.integer({ min: 1, max: 3 })),
      confirmations: fc.integer({ min: 1, max: 4 }),
      back: fc.integer({ min: 0, max: 85 })
    })
  },
  { weight: 1, arbitrary: fc.record({ pause: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ restart: fc.boolean() }) }
)

interface Known {
  readonly to: number | null
  readonly confirmations: number
  readonly fromBlock: bigint
}

/** A chain of random forks, read from a balanced node: each reply may come from a backend that lags or is on a fork. */
const story = (
  steps: ReadonlyArray<typeof Step extends fc.Arbitrary<infer A> ? A : never>,
  seeds: ReadonlyArray<number>,
  events: number
) =>
  Effect.gen(function* () {
    const most = { events, characters: 1_000_000 }
    const chain = new ForkingChain(5)
    for (let n = 0; n < 85; n++) chain.mine(n % 7 === 0 ? [Following.transfer(1 + (n % 3))] : [])
    const known = new Map<string, Known>()
    const paused = new Set<string>()
    const watches = yield* Watches
    const past: Array<ForkingChain["blocks"]> = []
    let turn = 0
    chain.view = () => {
      turn += 1
      const seed = seeds[turn % seeds.length] ?? 0
      return seed < 4 ? (past.at(-2 - (seed % 2)) ?? chain.blocks) : chain.blocks
    }
    const remember = () => past.push(chain.blocks)
    const scoped = (rest: typeof steps): Effect.Effect<void, unknown, Following.Ports> =>
      Effect.scoped(
        Effect.gen(function* () {
          yield* Watching.begin(chain, `process ${rest.length}`, most)
          for (const [index, step] of rest.entries()) {
            if ("takeBack" in step) {
              // Settled blocks stay: a higher chain reaches its height again before the next fork.
              const { length } = chain.blocks
              chain.takeBack(step.takeBack)
              while (chain.blocks.length <= length) chain.mine(step.mine.map((to) => Following.transfer(to)))
              remember()
            } else if ("mine" in step) {
              chain.mine(step.mine.map((to) => Following.transfer(to)))
              remember()
            } else if ("rest" in step) yield* Following.rounds(4)
            else if ("back" in step) {
              const fromBlock = chain.head.number - BigInt(step.back)
              const watch = { to: step.to, confirmations: step.confirmations, fromBlock }
              const fields: Readonly<Record<string, unknown>> =
                step.to === null ? {} : { to: Following.addressOf(step.to) }
              const watchId = yield* Following.add({ ...watch, spec: { ...Following.spec, fields } })
              known.set(watchId, watch)
            } else if ("pause" in step) {
              const watchId = [...known.keys()][step.pause]
              if (watchId !== undefined) {
                const isPaused = paused.has(watchId)
                yield* watches.setState(watchId, isPaused ? "enabled" : "paused", "operator")
                if (isPaused) paused.delete(watchId)
                else paused.add(watchId)
              }
            } else return rest.slice(index + 1)
          }
          return null
        })
      ).pipe(Effect.flatMap((left) => (left === null ? Effect.void : scoped(left))))
    const first = { to: null, confirmations: 1, fromBlock: chain.head.number }
    known.set(yield* Following.add(first), first)
    yield* scoped(steps)
    for (const watchId of paused) yield* watches.setState(watchId, "enabled", "operator")
    chain.view = () => chain.blocks
    yield* Watching.begin(chain, "the last one", most)
    chain.mine([Following.transfer(1)])
    // A watch is held until the webhook has received its backlog.
    const before = yield* Following.deliveries()
    yield* Following.caughtUp(chain)
    const told = yield* Following.deliveries()
    for (const [watchId, { confirmations, fromBlock, to }] of known)
      expect(Watching.fold([before, told].flatMap((some) => some.get(watchId) ?? []))).toEqual(
        Watching.truth(chain, to, confirmations, fromBlock)
      )
  }).pipe(Effect.scoped, Watching.inMemory)

it(
  "across all forks of a chain, a watch's events have gapless numbers and add up to the chain's events",
  { timeout: 300_000 },
  () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(Step, { minLength: 20, maxLength: 50 }),
        fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 20 }),
        // Mostly small steps: reorganisations and process ends fall between the parts of a block.
        fc.constantFrom(1, 2, 3, 1_000),
        (steps, seeds, events) => Effect.runPromise(story(steps, seeds, events))
      ),
      { numRuns: Number(process.env.FC_RUNS ?? 25) }
    )
)
