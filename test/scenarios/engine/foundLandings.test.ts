import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { missedMillis } from "../../../src/application/lanes/monitor/TransactionState.js"
import { RemoteOpJournal } from "../../../src/application/ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as Hits from "../../support/stack/Hits.js"
import * as Power from "../../support/stack/Power.js"
import { type Stack, startStack } from "../../support/stack/Stack.js"

let stack: Stack
let hits: Hits.Hits
let folder: string
let runtime: Hits.Runtime | null = null
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "found-"))
  stack = await startStack({ profile: { settledDepth: 6, bumpAfterMillis: 600_000 } })
  hits = await Hits.make(stack)
  await stack.create("one")
})
afterEach(async () => {
  await runtime?.dispose()
  await hits.automine(true)
})
afterAll(async () => {
  await stack.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** The next life of the service over that file. */
const live = async (database: string) => {
  await runtime?.dispose()
  runtime = stack.begin({ database })
  await runtime.runPromise(Sweep.start)
  return runtime
}

/**
 * An op lands in a transaction of which the file that is given knows nothing: it is of the moment before that was signed.
 * `snapshot`: the chain before the block.
 */
const landed = async (name: string) => {
  const database = join(folder, `${name}.sqlite`)
  const backup = join(folder, `${name} backup.sqlite`)
  const before: Power.Around = (step, effect) =>
    Effect.suspend(() => {
      if (step === "recordSigned")
        for (const suffix of ["", "-wal"])
          if (existsSync(`${database}${suffix}`)) copyFileSync(`${database}${suffix}`, `${backup}${suffix}`)
      return effect
    })
  const first = stack.begin({ database, wrapJournal: (journal) => Power.wrap(journal, before) })
  await hits.automine(false)
  const caller = stack.caller()
  const id = hashOf(name)
  first.runFork(hits.execute(caller, hits.hit("one", id)))
  await hits.pooled(1)
  await first.dispose()
  const snapshot = await stack.provider.send("evm_snapshot", [])
  await hits.mine()
  expect(await hits.countOf(id)).toBe(1)
  return { backup, id, requestId: caller.requestId, snapshot }
}

const kindsOf = (life: Hits.Runtime, requestId: string) =>
  life.runPromise(
    Effect.map(
      Effect.flatMap(RequestJournal, (requestJournal) =>
        Effect.orDie(requestJournal.events(requestId, 0, 50))
      ),
      (events) => events.map(({ kind }) => kind)
    )
  )
const watchedOf = (life: Hits.Runtime) =>
  life.runPromise(Effect.flatMap(RemoteOpJournal, ({ remoteSubmissions }) => Effect.orDie(remoteSubmissions)))

/** Blocks come until the request is told of as settled; its events. */
const settledOf = async (life: Hits.Runtime, requestId: string) => {
  await expect
    .poll(
      async () => {
        await hits.mine()
        return (await kindsOf(life, requestId)).includes("settled")
      },
      { timeout: 40_000, interval: 200 }
    )
    .toBe(true)
  return kindsOf(life, requestId)
}

describe("a landing that is found by a look at the chain", () => {
  it("is watched until settled depth, also by the next life of the process, and told as settled once", async () => {
    const { backup, id, requestId } = await landed("stays")
    const second = await live(backup)
    expect((await hits.answerOf(second, requestId)).answer).toMatchObject({ status: 1 })
    expect(await kindsOf(second, requestId)).toEqual(["accepted", "submitted", "included", "final"])
    expect(await watchedOf(second)).toMatchObject([{ requestId, signed: null }])
    const third = await live(backup)
    expect(await settledOf(third, requestId)).toEqual([
      "accepted",
      "submitted",
      "included",
      "final",
      "settled"
    ])
    expect(await watchedOf(third)).toEqual([])
    expect(await hits.countOf(id)).toBe(1)
  }, 90_000)

  it.each(["in the same life", "in the next life"])(
    "and that a reorganisation takes back %s is noticed: the work is done again under its nonce, once",
    async (when) => {
      const { backup, id, requestId, snapshot } = await landed(`goes ${when}`)
      const second = await live(backup)
      const first = (await hits.answerOf(second, requestId)).answer
      expect(first).toMatchObject({ status: 1 })
      if (when === "in the next life") await second.dispose()
      expect(await stack.provider.send("evm_revert", [snapshot])).toBe(true)
      expect(await hits.countOf(id)).toBe(0)
      for (const { hash } of await hits.pool()) await stack.provider.send("anvil_dropTransaction", [hash])
      await hits.mine()
      await hits.mine()
      const life = when === "in the next life" ? await live(backup) : second
      // Which block it was in is not known to the next life: it has to be out of sight for a while.
      const timeout = missedMillis + 20_000
      await expect.poll(() => kindsOf(life, requestId), { timeout }).toContain("reopened")
      await hits.pooled(1)
      expect((await hits.requestOf(life, requestId))?.outcome).toBeNull()
      await hits.mine()
      const { answer } = await hits.answerOf(life, requestId)
      expect(answer).toMatchObject({ status: 1 })
      const told = await settledOf(life, requestId)
      expect(told.slice(0, 5)).toEqual(["accepted", "submitted", "included", "final", "reopened"])
      expect(told.slice(5).filter((kind) => kind !== "final")).toEqual([
        "signed",
        "submitted",
        "included",
        "settled"
      ])
      expect(await hits.countOf(id)).toBe(1)
    },
    90_000
  )
})
