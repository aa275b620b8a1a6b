import { randomUUID } from "node:crypto"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterEach, expect, it } from "vitest"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as Layers from "../../support/journal/Layers.js"
import { useStack } from "../../support/stack/Stack.js"
import * as Life from "../../support/worker/Life.js"

/** Requests from their bodies to the chain: accepted, brought into transactions by their lane's worker, and settled. */

const salts = Array.from({ length: 8 }, (_, at) => `worker ${at}`)
const stack = useStack({}, (stack) => stack.create(...salts))

type Begun = Awaited<ReturnType<typeof Life.begin>>

const lives: Array<Begun> = []
const bodies = new Map<string, ReadonlyArray<Operation>>()

const begin = async (file: string): Promise<Begun> => {
  const life = await Life.begin(stack, Layers.sqliteAt(file), bodies)
  lives.push(life)
  return life
}
const end = (life: Begun): Promise<void> => stack.runtime.runPromise(Scope.close(life.scope, Exit.void))

afterEach(async () => {
  await Promise.all(lives.splice(0).map(end))
})

/** Accepts concurrent requests of these operations; returns their ids. */
const take = (life: Begun, requests: ReadonlyArray<ReadonlyArray<Operation>>) =>
  stack.runtime.runPromise(
    Effect.forEach(
      requests,
      (operations) =>
        Effect.gen(function* () {
          const caller = stack.caller()
          bodies.set(caller.requestId, operations)
          const offer = yield* ExecuteOperations.kind.offerOf(
            caller,
            { operations, settings: stack.settings },
            "{}"
          )
          yield* life.intake.take(offer)
          return caller.requestId
        }),
      { concurrency: "unbounded" }
    )
  )

const opsOf = (life: Begun, requestId: string) =>
  stack.runtime.runPromise(Context.get(life.ports, OpJournal).ofRequest(requestId))
const requestOf = (life: Begun, requestId: string) =>
  stack.runtime.runPromise(Context.get(life.ports, RequestJournal).request(requestId))

/** Once none of their ops is under way. */
const settled = async (life: Begun, requestIds: ReadonlyArray<string>) => {
  await expect
    .poll(
      async () => {
        const all = await Promise.all(requestIds.map((requestId) => opsOf(life, requestId)))
        return all.flatMap(({ ops }) => ops).filter(({ state }) => state === "accepted" || state === "sent")
          .length
      },
      { timeout: 20_000 }
    )
    .toBe(0)
  return (await Promise.all(requestIds.map((requestId) => opsOf(life, requestId)))).flatMap(({ ops }) => ops)
}

const idOf = () => `0x${randomUUID().replaceAll("-", "").padEnd(64, "0")}`

it("brings one op onto the chain", async () => {
  const life = await begin(stack.database())
  const id = idOf()
  const requestIds = await take(life, [[stack.hit("worker 0", id)]])
  const ops = await settled(life, requestIds)
  expect(ops.map(({ state, success }) => [state, success])).toEqual([["settled", true]])
  expect(await stack.counts(id)).toEqual([1])
})

it("brings forty requests of one moment into one transaction", async () => {
  const life = await begin(stack.database())
  const ids = Array.from({ length: 40 }, idOf)
  const before = await stack.nonce()
  const requestIds = await take(
    life,
    ids.map((id, at) => [stack.hit(`worker ${at % 8}`, id)])
  )
  const ops = await settled(life, requestIds)
  expect(ops.map(({ success }) => success)).toEqual(ids.map(() => true))
  expect(await stack.counts(...ids)).toEqual(ids.map(() => 1))
  expect(new Set(ops.map(({ txHash }) => txHash)).size).toBeLessThanOrEqual(3)
  expect((await stack.nonce()) - before).toBeLessThanOrEqual(3)
})

it("resumes in the next life the work that the previous one accepted", async () => {
  const file = stack.database()
  const before = await begin(file)
  await stack.automine(false)
  const ids = Array.from({ length: 6 }, idOf)
  const requestIds = await take(
    before,
    ids.map((id, at) => [stack.hit(`worker ${at}`, id)])
  )
  await stack.pooled(1)
  await end(before)
  lives.splice(0)
  const after = await begin(file)
  await stack.runtime.runPromise(after.lanes.wake(after.lane))
  await stack.mine()
  const ops = await settled(after, requestIds)
  expect(ops.map(({ success }) => success)).toEqual(ids.map(() => true))
  expect(await stack.counts(...ids)).toEqual(ids.map(() => 1))
})

it("rejects only the op that its bundle makes fail, and lands the others", async () => {
  const life = await begin(stack.database())
  await stack.mint(stack.predict("worker 1"), 5n)
  const ids = Array.from({ length: 3 }, idOf)
  const send = stack.transfer("worker 1", stack.signer.address, "5")
  const requestIds = await take(life, [
    [send],
    ...ids.map((id, at) => [stack.hit(`worker ${at + 2}`, id)]),
    [send]
  ])
  await settled(life, requestIds)
  const transfers = await Promise.all(
    [requestIds[0], requestIds.at(-1)].map((requestId) => requestOf(life, requestId ?? ""))
  )
  expect(await stack.balanceOf(stack.predict("worker 1"))).toBe(0n)
  expect(transfers.map((request) => request?.failed.map(({ code }) => code))).toEqual([
    [],
    ["execution_failed"]
  ])
  expect(await stack.counts(...ids)).toEqual(ids.map(() => 1))
})
