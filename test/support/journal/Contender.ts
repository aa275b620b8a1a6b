import { writeSync } from "node:fs"
import * as Effect from "effect/Effect"
import { available, rounds } from "./Contest.js"
import * as Journals from "./Journals.js"
import { at } from "./Layers.js"
import * as Make from "./Make.js"

/**
 * A process that competes for keys and funds of one wallet, and for each round's idempotency key.
 * `Contender.ts <database> <name>` prints each round's number, key, outcome and owner.
 */
const [, , database = "", name = ""] = process.argv

const play = (round: number) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const id = `${name}${round}`
    const leased = yield* Make.lease(
      journal,
      Make.leaseRequest(id, { keys: { from: 0n, to: 1_000_000n }, ttlMillis: 3_600_000 })
    )
    const nonceKey = leased?.[0]
    if (nonceKey === undefined) return yield* Effect.die(new Error("no free key"))
    const [result] = yield* journal.accept([
      Make.acceptance(id, [Make.op({ nonceKey, reserve: 1n })], {
        idempotency: { key: `round ${round}`, bodyHash: Make.word(round) },
        funds: [{ space: Make.space(1), available: BigInt(available) }]
      })
    ])
    const owner = result?._tag === "known" ? result.requestId : id
    yield* Effect.sync(() => writeSync(1, `${round} ${nonceKey} ${result?._tag} ${owner}\n`))
  })

await Effect.runPromise(
  Effect.gen(function* () {
    for (let round = 0; round < rounds; round++) yield* play(round)
  }).pipe(Effect.provide(at(database)))
)
