import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as ManagedRuntime from "effect/ManagedRuntime"
import { id as hashOf } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as CancelRequest from "../../../src/application/usecases/operations/CancelRequest.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as GetRequest from "../../../src/application/usecases/operations/GetRequest.js"
import { Address, type LifeOptions, type Ports, type Stack, startStack } from "../../support/stack/Stack.js"

type Life = ManagedRuntime.ManagedRuntime<Ports, unknown>

let stack: Stack
let folder: string
let counter: Address.Address
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "schedules-"))
  stack = await startStack()
  counter = Address.unsafe(await stack.counter.getAddress())
  await stack.create("one", "two")
  await stack.provider.send("evm_setIntervalMining", [1])
})
afterAll(async () => {
  await stack.stop()
  rmSync(folder, { recursive: true, force: true })
})

const now = async () => Number((await stack.provider.getBlock("latest"))?.timestamp)
const countOf = async (id: string): Promise<number> => Number(await stack.counter.getFunction("count")(id))
const hit = (salt: string, id: string, more: Partial<Operation>): Operation => ({
  salt,
  walletCustody: 1,
  to: counter,
  funcSignature: "hit(bytes32)",
  funcParams: [id],
  ...more
})

/** A life of the service that looks after its journal. */
const living = async <A>(
  database: string,
  body: (life: Life) => Promise<A>,
  profile: NonNullable<LifeOptions["profile"]> = {}
): Promise<A> => {
  const life = stack.begin({ database: join(folder, database), profile })
  try {
    await life.runPromise(Sweep.start)
    return await body(life)
  } finally {
    await life.dispose()
  }
}

/** Its caller leaves as soon as it is accepted. */
const accepted = async (life: Life, ...operations: ReadonlyArray<Operation>): Promise<Caller> => {
  const caller = stack.caller()
  await new Promise<void>((resolve, reject) => {
    const asked: Caller = { ...caller, isAsynchronous: true, onAccepted: () => resolve() }
    life.runPromise(ExecuteOperations.run(asked, { operations, settings: stack.settings })).catch(reject)
  })
  return caller
}

const stateOf = (life: Life, caller: Caller, wait?: string) =>
  life.runPromise(
    GetRequest.run(caller, { requestId: caller.requestId, ...(wait !== undefined && { wait }) })
  )
const eventsOf = async (life: Life, { requestId }: Caller) => {
  const events = await life.runPromise(
    Effect.flatMap(RequestJournal, (journal) => journal.events(requestId, 0, 100))
  )
  return events.map(({ data, kind }) => (kind === "scheduled" ? [kind, data.notBefore] : [kind]))
}

describe("an operation whose window has not begun, of a caller that does not wait", () => {
  it("is accepted, keeps nothing, goes out when it begins, and is told of", () =>
    living("alone", async (life) => {
      const id = hashOf("alone")
      const validAfter = (await now()) + 6
      const caller = await accepted(life, hit("one", id, { validAfter }))
      await expect
        .poll(() => stateOf(life, caller))
        .toMatchObject({ state: "pending", notBefore: validAfter })
      const journal = await life.runPromise(RequestJournal)
      const record = await life.runPromise(journal.request(caller.requestId))
      expect(record?.ops).toEqual([])
      // The wallet is free for other work meanwhile.
      const other = hashOf("alone, other")
      await life.runPromise(
        ExecuteOperations.run(stack.caller(), {
          operations: [hit("one", other, {})],
          settings: stack.settings
        })
      )
      expect(await countOf(other)).toBe(1)
      expect(await countOf(id)).toBe(0)
      const final = await stateOf(life, caller, "30")
      expect(final).toMatchObject({ state: "final", httpStatus: 200, notBefore: null, answer: { status: 1 } })
      expect(await countOf(id)).toBe(1)
      const block = await stack.provider.getTransactionReceipt(String(final.txHashes[0]))
      expect((await block?.getBlock())?.timestamp).toBeGreaterThan(validAfter)
      const events = await eventsOf(life, caller)
      expect(events.slice(0, 3)).toEqual([["accepted"], ["scheduled", validAfter], ["signed"]])
    }))

  it("lets the others of its request go first, and takes what depends on it along", () =>
    living("others", async (life) => {
      const [a, b, c] = ["a", "b", "c"].map((name) => hashOf(`others ${name}`)) as [string, string, string]
      const validAfter = (await now()) + 7
      const caller = await accepted(
        life,
        hit("one", a, { validAfter }),
        hit("two", b, {}),
        hit("one", c, { dependsOn: 0 })
      )
      await expect.poll(() => countOf(b), { timeout: 10_000 }).toBe(1)
      await expect
        .poll(() => stateOf(life, caller), { timeout: 10_000 })
        .toMatchObject({ notBefore: validAfter })
      expect([await countOf(a), await countOf(c)]).toEqual([0, 0])
      expect(await stateOf(life, caller, "30")).toMatchObject({ state: "final", answer: { status: 1 } })
      expect(await Promise.all([a, b, c].map(countOf))).toEqual([1, 1, 1])
    }))

  it("goes out after a restart, once, and not before its time", async () => {
    const id = hashOf("restart")
    const validAfter = (await now()) + 7
    const caller = await living("restart", async (life) => {
      const caller = await accepted(life, hit("one", id, { validAfter }))
      await expect.poll(() => stateOf(life, caller)).toMatchObject({ notBefore: validAfter })
      return caller
    })
    await living("restart", async (life) => {
      expect(await stateOf(life, caller)).toMatchObject({ state: "pending", notBefore: validAfter })
      expect(await countOf(id)).toBe(0)
      expect(await stateOf(life, caller, "30")).toMatchObject({ state: "final", answer: { status: 1 } })
      expect(await countOf(id)).toBe(1)
    })
  })

  it("is not sent once it is cancelled", () =>
    living("cancelled", async (life) => {
      const id = hashOf("cancelled")
      const caller = await accepted(life, hit("one", id, { validAfter: (await now()) + 1_000 }))
      const { requestId } = caller
      expect(await life.runPromise(CancelRequest.run(caller, { requestId }))).toEqual({
        requestId,
        state: "final",
        cancelled: [0],
        kept: []
      })
      expect(await stateOf(life, caller)).toMatchObject({
        state: "final",
        notBefore: null,
        answer: { code: "request_cancelled" }
      })
    }))

  it("comes to nothing when its window is over before it could go out", async () => {
    const time = await now()
    const caller = await living("over", (life) =>
      accepted(life, hit("one", hashOf("over"), { validAfter: time + 3, validUnitl: time + 5 }))
    )
    await expect.poll(now, { timeout: 15_000 }).toBeGreaterThan(time + 5)
    await living("over", async (life) => {
      expect(await stateOf(life, caller, "30")).toMatchObject({
        state: "final",
        httpStatus: 422,
        txHashes: [],
        answer: { error: "validity window over before it was executed", code: "window_passed" }
      })
    })
  })

  it("does not expire before its time, whatever the network's time for requests is", () =>
    living(
      "expiry",
      async (life) => {
        const id = hashOf("expiry")
        const caller = await accepted(life, hit("one", id, { validAfter: (await now()) + 10 }))
        expect(await stateOf(life, caller, "30")).toMatchObject({ state: "final", answer: { status: 1 } })
      },
      { requestExpiryMillis: 7_000 }
    ))

  it("is refused as ever when its wallet can not act, and when its caller waits", () =>
    living("refused", async (life) => {
      const validAfter = (await now()) + 1_000
      await expect(accepted(life, hit("nobody", hashOf("x"), { validAfter }))).rejects.toMatchObject({
        message: expect.stringContaining("wallet not deployed")
      })
      const failure = await life.runPromise(
        Effect.flip(
          ExecuteOperations.run(stack.caller(), {
            operations: [hit("one", hashOf("x"), { validAfter })],
            settings: stack.settings
          })
        )
      )
      expect(failure).toMatchObject({ code: "not_valid_yet" })
    }))
})
