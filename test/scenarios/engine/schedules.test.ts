import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { describe, expect, it } from "vitest"
import * as CancelRequest from "../../../src/application/endpoints/operations/CancelRequest.js"
import * as GetRequest from "../../../src/application/endpoints/operations/GetRequest.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Known from "../../support/stack/Known.js"
import { type Runtime, useStack } from "../../support/stack/Stack.js"

const stack = useStack({}, async (stack) => {
  await stack.create("one", "two")
  await stack.provider.send("evm_setIntervalMining", [1])
})

const accepted = (life: Runtime, ...operations: ReadonlyArray<Operation>) => stack.accepted(life, operations)
const stateOf = (life: Runtime, caller: Caller, wait?: string) =>
  life.runPromise(
    GetRequest.run(caller, { requestId: caller.requestId, ...(wait !== undefined && { wait }) })
  )
const scheduled = (life: Runtime, caller: Caller, notBefore: number) =>
  expect.poll(() => stateOf(life, caller), { timeout: 10_000 }).toMatchObject({ state: "pending", notBefore })
const ended = async (life: Runtime, caller: Caller) =>
  expect(await stateOf(life, caller, "30")).toMatchObject({ state: "final", answer: { status: 1 } })

describe("an operation whose window has not begun, of a caller that does not wait", () => {
  it("is accepted, reserves nothing, goes out when it begins, and is reported", () =>
    stack.living({}, async (life) => {
      const [id, other] = [hashOf("alone"), hashOf("alone, other")]
      const validAfter = (await stack.now()) + 6
      const caller = await accepted(life, stack.hit("one", id, { validAfter }))
      await scheduled(life, caller, validAfter)
      expect((await stack.requestOf(life, caller.requestId))?.ops).toEqual([])
      // The wallet is free for other work meanwhile.
      await life.runPromise(stack.execute([stack.hit("one", other)]))
      expect(await stack.counts(other, id)).toEqual([1, 0])
      const final = await stateOf(life, caller, "30")
      expect(final).toMatchObject({ state: "final", httpStatus: 200, notBefore: null, answer: { status: 1 } })
      expect(await stack.counts(id)).toEqual([1])
      const block = await stack.provider.getTransactionReceipt(String(final.txHashes[0]))
      expect((await block?.getBlock())?.timestamp).toBeGreaterThan(validAfter)
      const events = await stack.eventsOf(life, caller.requestId)
      expect(events.slice(0, 3)).toMatchObject([
        { kind: "accepted" },
        { kind: "scheduled", data: { notBefore: validAfter } },
        { kind: "signed" }
      ])
    }))

  it("lets the others of its request go first, takes its dependents along, and does not expire before its time", () =>
    stack.living({ profile: { requestExpiryMillis: 5_000 } }, async (life) => {
      const [a = "", b = "", c = ""] = ["a", "b", "c"].map((name) => hashOf(`others ${name}`))
      const validAfter = (await stack.now()) + 8
      const caller = await accepted(
        life,
        stack.hit("one", a, { validAfter }),
        stack.hit("two", b),
        stack.hit("one", c, { dependsOn: 0 })
      )
      await expect.poll(() => stack.counts(b), { timeout: 10_000 }).toEqual([1])
      await scheduled(life, caller, validAfter)
      expect(await stack.counts(a, c)).toEqual([0, 0])
      await ended(life, caller)
      expect(await stack.counts(a, b, c)).toEqual([1, 1, 1])
    }))

  it("goes out after a restart, once, and not before its time", async () => {
    const [id, database] = [hashOf("restart"), stack.database()]
    const validAfter = (await stack.now()) + 7
    const caller = await stack.living({ database }, async (life) => {
      await Known.past(stack, life)
      const caller = await accepted(life, stack.hit("one", id, { validAfter }))
      await scheduled(life, caller, validAfter)
      return caller
    })
    await stack.living({ database }, async (life) => {
      expect(await stateOf(life, caller)).toMatchObject({ state: "pending", notBefore: validAfter })
      expect(await stack.counts(id)).toEqual([0])
      await ended(life, caller)
      expect(await stack.counts(id)).toEqual([1])
    })
  })

  it("is not sent once it is cancelled", () =>
    stack.living({}, async (life) => {
      const validAfter = (await stack.now()) + 1_000
      const caller = await accepted(life, stack.hit("one", hashOf("cancelled"), { validAfter }))
      const { requestId } = caller
      const cancelled = { requestId, state: "final", cancelled: [0], kept: [] }
      expect(await life.runPromise(CancelRequest.run(caller, { requestId }))).toEqual(cancelled)
      const answer = { code: "request_cancelled" }
      expect(await stateOf(life, caller)).toMatchObject({ state: "final", notBefore: null, answer })
    }))

  it("expires when its window ends before it could go out", async () => {
    const [time, database] = [await stack.now(), stack.database()]
    const window = { validAfter: time + 3, validUnitl: time + 5 }
    const caller = await stack.living({ database }, async (life) => {
      await Known.past(stack, life)
      return accepted(life, stack.hit("one", hashOf("over"), window))
    })
    await expect.poll(stack.now, { timeout: 15_000 }).toBeGreaterThan(time + 5)
    await stack.living({ database }, async (life) => {
      expect(await stateOf(life, caller, "30")).toMatchObject({
        state: "final",
        httpStatus: 422,
        txHashes: [],
        answer: { error: "validity window over before it was executed", code: "window_passed" }
      })
    })
  })

  it("is refused as ever when its wallet cannot act, and when its caller waits", () =>
    stack.living({}, async (life) => {
      const validAfter = (await stack.now()) + 1_000
      await expect(accepted(life, stack.hit("nobody", hashOf("x"), { validAfter }))).rejects.toMatchObject({
        message: expect.stringContaining("wallet not deployed")
      })
      const waiting = Effect.flip(stack.execute([stack.hit("one", hashOf("x"), { validAfter })]))
      expect(await life.runPromise(waiting)).toMatchObject({ code: "not_valid_yet" })
    }))
})
