import { writeSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Journals from "./Journals.js"
import { at } from "./Layers.js"
import * as Make from "./Make.js"

/**
 * A process that writes to a journal until it is killed: `Writer.ts <database> <name>`. It prints each step once the
 * journal has confirmed it.
 */
const [, , database = "", name = ""] = process.argv

const tell = (line: string) => Effect.sync(() => writeSync(1, `${line}\n`))

const work = (n: number, hash: number) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const id = `${name} ${n}`
    const leased = yield* Make.lease(journal, Make.leaseRequest(id, { keys: { from: 0n, to: 1_000_000n } }))
    const nonceKey = leased?.[0]
    if (nonceKey === undefined) return yield* Effect.die(new Error("no free key"))
    yield* tell(`leased ${nonceKey}`)
    const userOpHash = Make.word(hash)
    // Each settlement frees a key, so the sequence is the number of the work.
    const lane = { ...Make.lane, signer: Make.address(name.charCodeAt(0)) }
    const ops = [0, 1].map((index) =>
      Make.op({
        index,
        space: Make.space(1, { authority: lane.signer }),
        nonceKey: nonceKey + BigInt(index) * 2n ** 100n,
        sequence: BigInt(hash),
        userOpHash: Make.word(hash + index),
        reserve: 1n
      })
    )
    yield* journal.accept([Make.acceptance(id, ops, { lane })])
    yield* tell(`accepted ${hash}`)
    const { nonce } = yield* journal.nextNonce(lane, 0n)
    const ready = yield* journal.ready(lane, 2)
    const { _tag } = yield* journal.record(Make.recording(nonce, ready, lane))
    if (_tag !== "recorded") return yield* Effect.die(new Error(_tag))
    yield* tell(`signed ${hash} ${nonce}`)
    yield* journal.settle(Make.mined(nonce, lane), [Make.landed(userOpHash, nonce)], false)
    yield* tell(`settled ${hash}`)
  })

const first = name.charCodeAt(0) * 1_000_000

await Effect.runPromise(
  Effect.gen(function* () {
    yield* tell("ready")
    for (let n = 0; ; n++) yield* work(n, first + 2 * n)
  }).pipe(Effect.provide(at(database)))
)
