import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { describe, expect, it } from "vitest"
import type * as Wiring from "../../../src/hosts/Wiring.js"
import * as Ground from "../../replicas/support/Ground.js"
import type * as Rig from "../../replicas/support/Rig.js"
import * as Journals from "../../support/journal/Journals.js"

const { freshUrl, rigOn, world } = Ground.perFile()

const rigWith = async (limits: Readonly<Record<string, number>>) =>
  rigOn({ url: await freshUrl() }, { limits })

/** A process that serves its first caller before it has read the others' open work would not count that work. */
const slowlyRead: Wiring.Seams = {
  journal: Journals.mapped((journal) => ({ ...journal, going: Effect.delay(journal.going, "1 second") }))
}

const post = (rig: Rig.Rig, service: Rig.Running, name: string) =>
  rig.exchange(service, "/execute", name, rig.hit(0, hashOf(name)), { prefer: "respond-async" })

describe("work that was accepted with 202", { timeout: 120_000 }, () => {
  it("is bounded by account: more is 429, also at another replica and after a restart, until some has its answer", async () => {
    const rig = await rigWith({ openRequestsPerAccount: 3 })
    const first = await rig.begin()
    await rig.prepare(first)
    await world().send("evm_setAutomine", false)
    const names = ["one", "two", "three"]
    for (const name of names) expect((await post(rig, first, name)).status).toBe(202)
    const refused = {
      status: 429,
      retryAfter: "5",
      body: {
        code: "rate_limited",
        details: [{ message: expect.stringContaining("the account has 3 accepted requests") }]
      }
    }
    expect(await post(rig, first, "four")).toMatchObject(refused)
    // The key still finds the accepted request.
    expect((await post(rig, first, "two")).status).toBe(202)
    const second = await rig.begin(slowlyRead)
    expect(await post(rig, second, "four")).toMatchObject(refused)
    await rig.end(first)
    await rig.end(second)
    const third = await rig.begin()
    expect(await post(rig, third, "four")).toMatchObject(refused)
    await world().send("evm_setAutomine", true)
    await world().send("evm_mine")
    expect(await rig.insist(() => third, "/execute", "four", rig.hit(0, hashOf("four")))).toMatchObject({
      status: 200
    })
    expect(await Promise.all([...names, "four"].map((name) => rig.count(hashOf(name))))).toEqual([1, 1, 1, 1])
  })

  it("is bounded as a whole: more is 503 with Retry-After, from whichever account", async () => {
    const rig = await rigWith({ openRequests: 2 })
    const service = await rig.begin()
    await rig.prepare(service)
    await world().send("evm_setAutomine", false)
    for (const name of ["whole-one", "whole-two"]) expect((await post(rig, service, name)).status).toBe(202)
    expect(await post(rig, service, "whole-three")).toMatchObject({
      status: 503,
      retryAfter: "5",
      body: { code: "overloaded" }
    })
  })
})
