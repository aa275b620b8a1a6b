import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import type * as Journals from "../support/journal/Journals.js"
import * as Campaign from "./support/Campaign.js"
import * as Killing from "./support/Killing.js"
import * as Receiver from "./support/Receiver.js"
import * as Scenario from "./support/Scenario.js"
import * as Store from "./support/Store.js"
import * as Supervisor from "./support/Supervisor.js"

describe("a scenario", () => {
  const steps = ["accept", "allocate", "settle"]
  const some = Array.from({ length: 300 }, (_, seed) => Scenario.make(seed, steps))

  it("is the same for the same seed, and different for another one", () => {
    expect(Scenario.make(7, steps)).toEqual(some[7])
    expect(new Set(some.map((scenario) => JSON.stringify({ ...scenario, seed: 0 }))).size).toBe(some.length)
  })

  it("kills, over consecutive seeds, before and after each step of the journal and on each side of sending", () => {
    const first = some.slice(0, 8).map(({ kills: [kill] }) => {
      if (kill?.at === "journal") return `${kill.moment} ${kill.step}`
      return kill?.at === "send" ? `${kill.moment} send` : "none"
    })
    expect(first.sort()).toEqual(
      [...steps, "send"].flatMap((step) => [`after ${step}`, `before ${step}`]).sort()
    )
  })

  it("reorganises blocks below settled depth only where it restores their transactions", () => {
    const reorgs = some.flatMap(({ events, settledDepth }) =>
      events.flatMap((event) =>
        event.kind === "reorg" && event.depth >= settledDepth ? [event.returned] : []
      )
    )
    expect(new Set(reorgs)).toEqual(new Set([true]))
  })

  it("takes an operation only from a wallet of its request's signer", () => {
    for (const { requests, signers, wallets } of some)
      for (const { ops, signer } of requests)
        for (const { wallet } of ops) {
          expect(wallet).toBeLessThan(wallets)
          expect(wallet % signers).toBe(signer)
        }
  })
})

describe("a journal that kills its process", () => {
  afterEach(() => {
    vi.restoreAllMocks()
    process.removeAllListeners(Killing.armSignal)
  })

  const told: Array<string> = []
  const journal = (names: ReadonlyArray<string>) =>
    Object.fromEntries(
      names.map((name) => [name, () => Effect.sync(() => void told.push(name))])
    ) as unknown as Journals.Methods

  const callOf = (wrapped: Journals.Methods, step: string): Effect.Effect<unknown> => {
    const methods = wrapped as unknown as Readonly<Record<string, () => Effect.Effect<unknown>>>
    return Effect.suspend(() => methods[step]?.() ?? Effect.die(new Error(`no method ${step}`)))
  }

  it.each(["before", "after"] as const)("does so %s the given call, for any methods", async (moment) => {
    const kill = vi.spyOn(process, "kill").mockImplementation(() => {
      told.push("killed")
      return true
    })
    const names = await Campaign.steps
    expect(names).toContain("record")
    for (const step of names) {
      told.length = 0
      const wrapped = Killing.wrap({ step, moment, nth: 2, armed: true })(journal(names))
      const call = callOf(wrapped, step)
      await Effect.runPromise(Effect.andThen(call, call))
      expect(told).toEqual(moment === "before" ? [step, "killed", step] : [step, step, "killed"])
    }
    expect(kill).toHaveBeenCalledWith(process.pid, "SIGKILL")
  })

  it("does nothing until armed", async () => {
    const kill = vi.spyOn(process, "kill").mockImplementation(() => true)
    const wrapped = Killing.wrap({ step: null, moment: "before", nth: 1, armed: false })(journal(["accept"]))
    const call = callOf(wrapped, "accept")
    await Effect.runPromise(call)
    expect(kill).not.toHaveBeenCalled()
    process.emit(Killing.armSignal)
    await Effect.runPromise(call)
    expect(kill).toHaveBeenCalledOnce()
  })
})

describe("the verdict on webhook deliveries", () => {
  const told = (sequence: number, kind: string, data = "{}") => ({ requestId: "r1", sequence, kind, data })
  const [one, two, three] = [told(1, "accepted"), told(2, "submitted", '{"txHash":"0x1"}'), told(3, "final")]
  const judged = (...arrivals: ReadonlyArray<Receiver.Told>) =>
    Receiver.judge(
      [one, two, three],
      ["r1"],
      arrivals.map((each) => ({ ...each, isTaken: true }))
    )

  it("passes with each event once or more, each after its predecessor", () => {
    expect(judged(one, one, two, one, three)).toEqual({ undelivered: [], outOfOrder: [], invented: [] })
  })

  it("fails with an event that is missing, that overtook another, or that never existed", () => {
    expect(judged(one).undelivered).toEqual(["r1 2 submitted", "r1 3 final", "the end of r1"])
    expect(judged(two, one, three).outOfOrder).toEqual(["r1 2 submitted after 0"])
    const other = told(2, "submitted", '{"txHash":"0x2"}')
    expect(judged(one, other, two, three).invented).toEqual(["r1 2 submitted"])
    expect(judged(one, two, three, told(4, "reopened")).invented).toEqual(["r1 4 reopened"])
    const included = told(2, "included", '{"elements":[0,1]}')
    const sooner = (elements: string) =>
      Receiver.judge([told(1, "submitted", `{"elements":${elements}}`), included], [], []).outOfOrder
    expect(sooner("[1]")).toEqual(["r1 2 included before submitted"])
    expect(sooner("[0,1]")).toEqual([])
  })
})

describe("an error in the log", () => {
  const ofRate = `"authentication store unavailable","cause":"Error: the counts of requests failed (ECONNRESET)"`
  const crash = `"a lane's worker failed; retrying","cause":"TypeError: x is not a function"`
  const line = (message: string) => `{"time":"2026","level":"ERROR","message":${message}}`

  it("is excused while its database was away", () => {
    const complaints = (isAway: boolean) =>
      [ofRate, crash].map((message) => Supervisor.complaint(line(message), isAway).length)
    expect([complaints(true), complaints(false)]).toEqual([
      [0, 1],
      [1, 1]
    ])
  })
})

describe("a database", () => {
  it("was away since its start only after an outage", async () => {
    const folder = mkdtempSync(join(tmpdir(), "castellan-store-"))
    try {
      const store = await Store.make(folder, null)
      const before = store.wasAway(0)
      await store.away("locked")
      const during = store.wasAway(Date.now() + 60_000)
      await store.back()
      expect([before, during, store.wasAway(0), store.wasAway(Date.now() + 60_000)]).toEqual([
        false,
        true,
        true,
        false
      ])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
