import { Effect } from "effect"
import { id as hashOf } from "ethers"
import { expect, it } from "vitest"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Ground from "../../replicas/support/Ground.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Layers from "../../support/journal/Layers.js"

const { freshUrl, rigOn } = Ground.perFile()

/** Another process that takes the lane over, gives the request's op up, and accepts it under another nonce. */
const takeOver = (requestId: string) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const record = yield* journal.request(requestId)
    const [op] = record?.ops ?? []
    if (record === null || record.lane === null || op === undefined) throw new Error("it is accepted")
    const { lane } = record
    yield* journal.claim(lane, { process: "another", independent: [] })
    yield* journal.abandonUnsigned(requestId, [0])
    const { accountId, body, endpoint } = record
    expect(
      yield* journal.acceptOps({
        ...{ requestId, accountId, endpoint, lane, body: body ?? "" },
        ops: [
          {
            index: 0,
            space: op.space,
            nonceKey: op.nonceKey + 1n,
            sequence: 0n,
            userOpHash: Hex.unsafe32(hashOf("anew")),
            reserve: 0n,
            returned: null
          }
        ],
        funds: [{ space: op.space, available: 2n ** 128n }],
        key: "serviceEoa",
        idempotency: null,
        deployments: [],
        failed: [],
        note: null,
        schedule: null,
        elements: 1,
        metadata: {}
      })
    ).toEqual({ _tag: "accepted" })
    return lane
  })

/** The first process makes a transaction of what it has in mind, and meets in the journal what the other one has in its place. */
it("an op that another process accepted anew while its first transaction was made is executed once", async () => {
  const url = await freshUrl()
  const rig = await rigOn({ url })
  let isArmed = false
  const service = await rig.begin({
    journal: Journals.mapped((journal) => ({
      ...journal,
      allocate: (request) =>
        Effect.gen(function* () {
          const [carried] = request.ops
          if (isArmed && carried !== undefined) {
            isArmed = false
            const lane = yield* takeOver(carried.requestId).pipe(
              Effect.provide(Layers.at(url)),
              Effect.scoped,
              Effect.orDie
            )
            // It believes that the lane is its own, and has it again.
            yield* journal.claim(lane, { process: "the first", independent: [] })
          }
          return yield* journal.allocate(request)
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
