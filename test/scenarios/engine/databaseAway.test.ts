import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { id as hashOf } from "ethers"
import { afterAll, describe, expect, it } from "vitest"
import type { Seams } from "../../../src/hosts/Wiring.js"
import * as World from "../../faults/support/World.js"
import * as Rig from "../../replicas/support/Rig.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Postgres from "../../support/postgres/Postgres.js"
import { use } from "../../support/Use.js"

/** A database that its administrator takes away for a while. */
interface Shaky {
  readonly address: Rig.Database
  readonly away: () => Promise<void>
  readonly back: () => Promise<void>
}

const databases = Postgres.alone()
const folder = mkdtempSync(join(tmpdir(), "castellan-away-"))
const world = use(World.start)
let files = 0

afterAll(async () => {
  rmSync(folder, { recursive: true })
})

const postgres = async () => {
  const server = await Effect.runPromise(databases.server)
  const fresh = await Effect.runPromise(databases.fresh)
  return { server, address: { url: "url" in fresh ? Redacted.value(fresh.url) : "" } }
}

const kinds: Readonly<Record<string, () => Promise<Shaky>>> = {
  "PostgreSQL, stopped and started again": async () => {
    const { address, server } = await postgres()
    return { address, away: server.halt, back: server.resume }
  },
  "PostgreSQL, which takes connections and does not answer": async () => {
    const { address, server } = await postgres()
    return { address, away: async () => server.freeze(), back: async () => server.thaw() }
  },
  "SQLite, whose file another program has locked": async () => {
    files += 1
    const path = join(folder, `${files}.sqlite`)
    let other: DatabaseSync | undefined
    return {
      address: { path },
      away: async () => {
        other = new DatabaseSync(path, { timeout: 5_000 })
        other.exec("begin exclusive")
      },
      back: async () => {
        other?.close()
        other = undefined
      }
    }
  }
}

/** Step of the first operation when the database goes away; the ones after it are at earlier steps. */
const steps = ["accept", "ready", "record", "settle", "answer"] as const
type Step = (typeof steps)[number]

/** A journal that runs `happen` before its first call of the armed step, so that the call is affected. */
const at = (step: Step, happen: () => Promise<void>) => {
  let armed = false
  const seams: Seams = {
    journal: Journals.mapped((journal) => {
      const call = journal[step] as (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown>
      return {
        ...journal,
        [step]: (...args: ReadonlyArray<unknown>) =>
          Effect.suspend(() => {
            if (!armed) return call(...args)
            armed = false
            return Effect.andThen(Effect.promise(happen), call(...args))
          })
      }
    })
  }
  return {
    seams,
    arm: () => {
      armed = true
    }
  }
}

/** Permitted answers while the database is away, and after it. */
const truths = ["200 undefined", "503 unavailable", "422 outcome_unknown"]

/** The requests of one outage: each counts a separate id. */
const makeRequests = (rig: Rig.Rig, service: Rig.Running, title: string) => {
  const met: Array<Rig.Answer> = []
  const idOf = (kind: string, n: number) => hashOf(`${title} ${kind} ${n}`)
  const asked: Array<string> = []
  return {
    met,
    asked,
    /** Repeats until the outcome is known. */
    insist: (kind: string, count: number) =>
      Array.from({ length: count }, (_, n) => {
        const id = idOf(kind, n)
        asked.push(id)
        return rig.insist(
          () => service,
          "/execute",
          `${kind}-${n}`,
          rig.hit(n, id),
          (answer) => answer !== null && met.push(answer)
        )
      }),
    /** Gives up when refused: returns its actual and its expected executions. */
    fickle: async (n: number) => {
      const id = idOf("fickle", n)
      const ask = () => rig.exchange(service, "/execute", `fickle-${n}`, rig.hit(n, id))
      const first = await ask()
      met.push(first)
      const wanted = first.status === 503 ? 0 : 1
      if (first.body.code === "outcome_unknown")
        await rig.insist(() => service, "/execute", `fickle-${n}`, rig.hit(n, id))
      return { id, wanted }
    }
  }
}

/** Takes the database away while operations are under way, and compares callers' answers with the chain. */
const outage = async (shaky: Shaky, step: Step, title: string) => {
  const rig = await Rig.make(world, folder, shaky.address)
  let gone = () => {}
  const isGone = new Promise<void>((resolve) => {
    gone = resolve
  })
  const trap = at(step, async () => {
    await shaky.away()
    gone()
  })
  const service = await rig.begin(trap.seams)
  const statusOf = async (path: string) => (await rig.exchange(service, path, null, null)).status
  const readiness = () => expect.poll(() => statusOf("/health/ready"), { timeout: 15_000, interval: 100 })
  try {
    await rig.prepare(service)
    const { asked, fickle, insist, met } = makeRequests(rig, service, title)
    // Sent and not mined when the database goes away.
    await world.send("evm_setAutomine", false)
    const sent = insist("sent", 4)
    await expect.poll(rig.pooled, { timeout: 20_000 }).toBeGreaterThan(0)
    trap.arm()
    const under = insist("underway", 12)
    if (step === "settle" || step === "answer") await world.send("evm_mine")
    await Promise.race([
      isGone,
      Promise.all(under).then(() => Promise.reject(new Error(`no call of ${step}`)))
    ])
    await world.send("evm_setAutomine", true)
    await world.send("evm_mine")
    const meanwhile = insist("meanwhile", 4)
    const fickles = Promise.all([0, 1, 2, 3].map(fickle))
    await readiness().toBe(503)
    expect(await statusOf("/health/live")).toBe(200)
    await shaky.back()
    await readiness().toBe(200)

    const answers = await Promise.all([...sent, ...under, ...meanwhile, ...insist("after", 4)])
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: { status: 1 } })
    expect(await Promise.all(asked.map(rig.count))).toEqual(asked.map(() => 1))
    for (const { id, wanted } of await fickles) expect(await rig.count(id)).toBe(wanted)
    for (const { body, retryAfter, status } of met) {
      expect(truths).toContain(`${status} ${body.code}`)
      if (status === 503) expect(retryAfter).toBe("1")
    }
    await expect.poll(rig.open, { timeout: 20_000 }).toEqual([])
  } finally {
    await shaky.back()
    await rig.endAll()
  }
}

describe("a database that is away", { timeout: 240_000 }, () => {
  const all = Object.entries(kinds)
  const rows = steps.flatMap((step, n) =>
    all.slice(n % all.length, (n % all.length) + 1).map((kind) => [step, ...kind] as const)
  )
  it.each(rows)(
    "from `%s` on strands no request, and callers get a true answer (%s)",
    async (step, kind, make) => outage(await make(), step, `${step} ${kind}`)
  )
})
