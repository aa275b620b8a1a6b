import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Build from "../../faults/support/Build.js"
import * as Rig from "../../faults/support/Rig.js"
import * as World from "../../faults/support/World.js"

const node = async (url: string) => ({ url, stop: async () => {} })

let world: World.World
let build: Build.Build
beforeAll(async () => {
  build = await Build.make()
  world = await World.start()
})
afterAll(async () => {
  await world.stop()
  build.remove()
})

/** A service whose process is killed once, when `kill` says so, and starts again on the same database. */
const start = async () => {
  const rig = await Rig.start(world, build, {
    salts: ["one"],
    node,
    kills: [{ at: "clock", millis: 0 }],
    receiptTimeoutMillis: 1_000
  })
  return {
    rig,
    kill: async () => {
      rig.supervisor.arm()
      await expect.poll(() => rig.supervisor.restarts(), { timeout: 50_000 }).toBe(1)
      await rig.supervisor.url()
    }
  }
}

/** The outcome of a request, however often it is asked for until the service knows. */
const outcome = async (
  ask: () => ReturnType<Rig.Rig<unknown>["once"]>
): ReturnType<Rig.Rig<unknown>["once"]> => {
  for (;;) {
    const answer = await ask()
    if (answer?.body.code !== "outcome_unknown") return answer
  }
}

describe("after the process was killed and started again on its database", () => {
  it("the same key is the same request, answered as before; another body is refused", async () => {
    const { kill, rig } = await start()
    try {
      const id = Rig.idOf("once")
      const body = { operations: [rig.hit("one", id)], settings: rig.settings }
      const before = await outcome(() => rig.once("/execute", "final", body))
      expect([before?.status, before?.body.status]).toEqual([200, 1])
      await kill()
      expect(await rig.once("/execute", "final", body)).toEqual(before)
      const other = await rig.once("/execute", "final", {
        ...body,
        settings: { ...rig.settings, useABI: [] }
      })
      expect([other?.status, other?.body.code]).toEqual([400, "idempotency_key_reused"])
      expect(await rig.count(id)).toBe(1)
      expect(rig.supervisor.complaints()).toEqual([])
    } finally {
      await rig.stop()
    }
  })

  it.each(["/execute", "/transactSigner"])(
    "a pending request of %s goes on to one outcome, under its key and its id",
    async (path) => {
      const { kill, rig } = await start()
      try {
        const id = Rig.idOf(`pending ${path}`)
        const [to, call] = [
          await world.counter.getAddress(),
          { funcSignature: "hit(bytes32)", funcParams: [id] }
        ]
        const body =
          path === "/execute"
            ? { operations: [rig.hit("one", id)], settings: rig.settings }
            : { to, ...call, settings: rig.settings }
        await world.send("evm_setAutomine", false)
        const unknown = await rig.once(path, "pending", body)
        expect([unknown?.status, unknown?.body.code]).toEqual([422, "outcome_unknown"])
        const state = `/requests/${unknown?.body.requestId}`
        // Whoever is told early that the outcome is unknown is told before there is a transaction.
        await expect.poll(async () => (await rig.pending()).length, { timeout: 30_000 }).toBe(1)
        const [waiting, pending] = [await rig.pending(), await rig.get(state, "pending")]
        expect(pending?.body).toMatchObject({ state: "pending", txHashes: [waiting[0]?.hash] })
        await kill()
        expect(await rig.get(state, "pending")).toEqual(pending)
        expect(await rig.pending()).toEqual(waiting)
        const repeat = outcome(() => rig.once(path, "pending", body))
        await world.send("evm_setAutomine", true)
        await world.send("evm_mine")
        const answer = await repeat
        expect([answer?.status, answer?.body.status, answer?.body.txHash]).toEqual([200, 1, waiting[0]?.hash])
        expect((await rig.get(state, "pending"))?.body).toMatchObject({
          state: "final",
          httpStatus: 200,
          answer: answer?.body
        })
        expect(await rig.count(id)).toBe(1)
        expect(rig.supervisor.complaints()).toEqual([])
      } finally {
        await rig.stop()
      }
    }
  )
})
