import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as Hits from "../../support/stack/Hits.js"
import * as Power from "../../support/stack/Power.js"
import { type Stack, startStack } from "../../support/stack/Stack.js"

let stack: Stack
let hits: Hits.Hits
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "submitted-"))
  stack = await startStack()
  hits = await Hits.make(stack)
  await stack.create("one")
})
afterEach(() => hits.automine(true))
afterAll(async () => {
  await stack.stop()
  rmSync(folder, { recursive: true, force: true })
})

const told = (life: Hits.Runtime, requestId: string) =>
  life.runPromise(
    Effect.flatMap(RequestJournal, (requestJournal) => Effect.orDie(requestJournal.events(requestId, 0, 50)))
  )

describe("a process that ends between the broadcast and the note of it", () => {
  it.each([
    ["while the transaction waits", false],
    ["before the transaction is mined, for which the next one comes too late", true]
  ] as const)(
    "has the next one tell of it, before the inclusion and once: %s",
    async (name, minedMeanwhile) => {
      const database = join(folder, `${minedMeanwhile}.sqlite`)
      const power = Power.make({ step: "recordSubmitted", moment: "before" })
      const first = stack.begin({ database, ...power.life })
      await hits.automine(false)
      const caller = stack.caller()
      const id = hashOf(name)
      first.runFork(hits.execute(caller, hits.hit("one", id)))
      await hits.pooled(1)
      await power.failed
      await first.dispose()
      if (minedMeanwhile) await hits.mine()
      const second = stack.begin({ database })
      expect((await told(second, caller.requestId)).map(({ kind }) => kind)).toEqual(["accepted", "signed"])
      await second.runPromise(Sweep.start)
      if (!minedMeanwhile) {
        await expect
          .poll(async () => (await told(second, caller.requestId)).map(({ kind }) => kind), {
            timeout: 20_000
          })
          .toEqual(["accepted", "signed", "submitted"])
        await hits.mine()
      }
      const { answer } = await hits.answerOf(second, caller.requestId)
      expect(answer).toMatchObject({ status: 1 })
      const events = await told(second, caller.requestId)
      expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, at) => at + 1))
      expect(events.map(({ kind }) => kind).filter((kind) => kind !== "settled" && kind !== "final")).toEqual(
        ["accepted", "signed", "submitted", "included"]
      )
      expect(events[2]?.data).toEqual({ txHash: answer.txHash, elements: [0] })
      await second.dispose()
    },
    60_000
  )
})
