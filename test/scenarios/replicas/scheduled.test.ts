import { id as hashOf } from "ethers"
import { describe, expect, it } from "vitest"
import * as World from "../../faults/support/World.js"
import * as Ground from "../../replicas/support/Ground.js"
import type * as Rig from "../../replicas/support/Rig.js"

const { freshUrl, rigOn, world } = Ground.perFile()

const laterBySeconds = 3_600

/** A rig whose services bound waiting work, and the requests of its two accounts. */
const setup = async (limits: Readonly<Record<string, number>>) => {
  const other = await World.tenant(`scheduled ${JSON.stringify(limits)}`)
  const rig = await rigOn({ url: await freshUrl() }, { limits }, [other])
  const asked = (
    rig: Rig.Rig,
    service: Rig.Running,
    name: string,
    validAfter: number | null,
    key?: string
  ) => {
    const { operations, settings } = rig.hit(0, hashOf(name)) as {
      readonly operations: ReadonlyArray<object>
      readonly settings: object
    }
    const body = {
      operations: operations.map((each) => (validAfter === null ? each : { ...each, validAfter })),
      settings
    }
    const headers = { prefer: "respond-async", ...(key !== undefined && { "x-api-key": key }) }
    return rig.exchange(service, "/execute", name, body, headers)
  }
  const service = await rig.begin()
  await rig.prepare(service)
  const later = Number((await world().provider.getBlock("latest"))?.timestamp) + laterBySeconds
  return {
    rig,
    service,
    schedule: (name: string, at = service) => asked(rig, at, name, later),
    scheduleOther: (name: string) => asked(rig, service, name, later, other.key),
    now: (name: string) => asked(rig, service, name, null)
  }
}

describe("requests whose windows have not begun", { timeout: 120_000 }, () => {
  it("are bounded by account: more is 429 at every replica, while repeats, immediate work and other accounts are served", async () => {
    const { now, rig, schedule, scheduleOther, service } = await setup({ scheduledRequestsPerAccount: 2 })
    for (const name of ["one", "two"]) expect((await schedule(name)).status).toBe(202)
    const refused = {
      status: 429,
      retryAfter: "60",
      body: {
        code: "rate_limited",
        details: [{ message: expect.stringContaining("2 accepted requests with 2 elements") }]
      }
    }
    expect(await schedule("three")).toMatchObject(refused)
    const second = await rig.begin()
    expect(await schedule("three", second)).toMatchObject(refused)
    expect((await schedule("one")).status).toBe(202)
    expect((await now("at-once")).status).toBe(202)
    expect((await scheduleOther("of-the-other")).status).toBe(202)
    expect(
      await rig.insist(() => service, "/execute", "waited-for", rig.hit(1, hashOf("waited-for")))
    ).toMatchObject({ status: 200, body: { status: 1 } })
  })

  it("are bounded as a whole: more is 503 with Retry-After from every account, and immediate work is served", async () => {
    const { now, schedule, scheduleOther } = await setup({ scheduledElements: 2 })
    expect((await schedule("one")).status).toBe(202)
    expect((await scheduleOther("of-the-other")).status).toBe(202)
    const refused = { status: 503, retryAfter: "60", body: { code: "overloaded" } }
    expect(await schedule("three")).toMatchObject(refused)
    expect(await scheduleOther("three-of-the-other")).toMatchObject(refused)
    expect((await now("at-once")).status).toBe(202)
  })
})
