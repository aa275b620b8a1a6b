import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Build from "../../faults/support/Build.js"
import * as Receiver from "../../faults/support/Receiver.js"
import * as Rig from "../../faults/support/Rig.js"
import * as World from "../../faults/support/World.js"
import { use } from "../../support/Use.js"

const node = async (url: string) => ({ url, stop: async () => {} })

const world = use(World.start)
let build: Build.Build
beforeAll(async () => {
  build = await Build.make()
})
afterAll(async () => {
  build.remove()
})

interface State {
  readonly state: string
  readonly httpStatus: number | null
  readonly txHashes: ReadonlyArray<string>
}

/** Ids and kinds of an ended stream of events. */
const eventsOf = (text: string) =>
  [...text.matchAll(/^id: (\d+)\nevent: (\w+)$/gm)].map(([, id, kind]) => [Number(id), kind] as const)

describe("a request that is pending when its time is over", () => {
  it.each(["goes on", "is killed and starts again"])(
    "is reported to its end by stream, webhook and wait, when the process %s",
    async (process) => {
      const isKilled = process !== "goes on"
      const receiver = await Receiver.start(1)
      const rig = await Rig.start(world, build, {
        salts: ["one"],
        node,
        kills: isKilled ? [{ at: "clock", millis: 0 }] : [],
        receiptTimeoutMillis: 1_000
      })
      const send = async (path: string, init: RequestInit = {}) =>
        fetch((await rig.supervisor.url()) + path, {
          ...init,
          headers: { "x-api-key": rig.apiKey, "content-type": "application/json", ...init.headers }
        })
      const stateOf = async (id: string, wait = "0") =>
        (await (await send(`/requests/${id}?wait=${wait}`)).json()) as State
      try {
        expect((await rig.once("/webhooks", null, { url: receiver.url }))?.status).toBe(200)
        await world.send("evm_setAutomine", false)
        const ids = [Rig.idOf(`sync ${process}`), Rig.idOf(`async ${process}`)]
        const bodyOf = (id: string) => ({ operations: [rig.hit("one", id)], settings: rig.settings })
        const unknown = await rig.once("/execute", "sync", bodyOf(String(ids[0])))
        expect([unknown?.status, unknown?.body.code]).toEqual([422, "outcome_unknown"])
        const accepted = await send("/execute", {
          method: "POST",
          headers: { prefer: "respond-async" },
          body: JSON.stringify(bodyOf(String(ids[1])))
        })
        expect(accepted.status).toBe(202)
        const requests = [
          String(unknown?.body.requestId),
          ((await accepted.json()) as { readonly requestId: string }).requestId
        ]
        for (const id of requests)
          await expect
            .poll(async () => (await stateOf(id)).txHashes.length, { timeout: 30_000 })
            .toBeGreaterThan(0)
        if (isKilled) {
          rig.supervisor.arm()
          await expect.poll(() => rig.supervisor.restarts(), { timeout: 50_000 }).toBe(1)
        }
        const streams = requests.map(async (id) => (await send(`/requests/${id}/events`)).text())
        const waiting = requests.map((id) => stateOf(id, "60"))
        expect((await stateOf(String(requests[0]))).state).toBe("pending")
        await world.send("evm_setAutomine", true)
        await world.send("evm_mine")
        for (const state of await Promise.all(waiting))
          expect(state).toMatchObject({ state: "final", httpStatus: 200 })
        const told = (await Promise.all(streams)).map(eventsOf)
        for (const [at, events] of told.entries()) {
          const kinds = events.map(([, kind]) => kind)
          expect(events.map(([id]) => id)).toEqual(events.map((_, index) => index + 1))
          expect([kinds[0], kinds.at(-1)]).toEqual(["accepted", "final"])
          // The webhook's events of the request, without repeats, are the same.
          const arrived = () =>
            new Map(
              receiver
                .arrivals()
                .filter(({ requestId }) => requestId === requests[at])
                .map(({ kind, sequence }) => [sequence, kind])
            )
          await expect.poll(() => [...arrived()].slice(0, events.length), { timeout: 45_000 }).toEqual(events)
        }
        for (const id of ids) expect(await rig.count(id)).toBe(1)
        expect(rig.supervisor.complaints()).toEqual([])
      } finally {
        await rig.stop()
        await receiver.stop()
      }
    },
    180_000
  )
})
