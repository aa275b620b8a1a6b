import { Effect } from "effect"
import { id as hashOf } from "ethers"
import { expect, it } from "vitest"
import type { Lane } from "../../../src/application/ports/journal/Transactions.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Ground from "../../replicas/support/Ground.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Layers from "../../support/journal/Layers.js"

const { freshUrl, rigOn } = Ground.perFile()

/** Another process that takes the lane over and prepares the op again, as the next owner does once more. */
const takeOver = (lane: Lane, opId: number) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    yield* journal.claim(lane, { process: "another", independent: [] })
    const op = (yield* journal.ready(lane, 9)).find((each) => each.opId === opId)
    if (op?.prepared == null) throw new Error("it is ready")
    const anew = { ...op.prepared, userOpHash: Hex.unsafe32(hashOf("anew")), goodUntil: 0 }
    expect(yield* journal.renew(lane, [anew])).toEqual([opId])
  })

/** The first process builds a transaction from its own view, and finds in the journal what the other one stored. */
it("an op that another process prepared again while its first transaction was made is executed once", async () => {
  const url = await freshUrl()
  const rig = await rigOn({ url })
  let isArmed = false
  const service = await rig.begin({
    journal: Journals.mapped((journal) => ({
      ...journal,
      record: (recording) =>
        Effect.gen(function* () {
          const [carried] = recording.ops
          if (isArmed && carried !== undefined) {
            isArmed = false
            const { chainId, signer } = recording
            yield* takeOver({ chainId, signer }, carried.opId).pipe(
              Effect.provide(Layers.at(url)),
              Effect.scoped,
              Effect.orDie
            )
            // It assumes that it owns the lane, and owns it again.
            yield* journal.claim({ chainId, signer }, { process: "the first", independent: [] })
          }
          return yield* journal.record(recording)
        })
    }))
  })
  await rig.prepare(service)
  const id = hashOf("handed back")
  isArmed = true
  expect(await rig.insist(() => service, "/execute", "handed-back", rig.hit(0, id))).toMatchObject({
    status: 200,
    body: { status: 1 }
  })
  expect(isArmed).toBe(false)
  expect(await rig.count(id)).toBe(1)
}, 120_000)
