import * as Exit from "effect/Exit"
import { id as hashOf } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as Hits from "../../support/stack/Hits.js"
import * as Outage from "../../support/stack/Outage.js"
import type { Spot } from "../../support/stack/Power.js"
import { type Stack, startStack } from "../../support/stack/Stack.js"

let stack: Stack
let hits: Hits.Hits
beforeAll(async () => {
  stack = await startStack()
  hits = await Hits.make(stack)
  await stack.create("outage")
})
afterAll(() => stack.stop())

/** Every method of the journal that one `/execute` calls. */
const steps = ["lease", "accept", "claim", "allocate", "recordSigned", "settle", "ofRequest", "finish"]

const spots: ReadonlyArray<Spot> = steps.flatMap((step) =>
  (["before", "after"] as const).map((moment) => ({ step, moment }))
)

describe("a database that is away for a while, in a process that lives on", { timeout: 120_000 }, () => {
  for (const spot of spots)
    for (const failures of [1, 12])
      it(`strands nothing when it fails ${failures === 1 ? "once" : `${failures} times`} from ${spot.moment} \`${spot.step}\` on`, async () => {
        const outage = Outage.make(spot, failures)
        const runtime = stack.begin(outage.life)
        try {
          await runtime.runPromise(Sweep.start)
          const [id, next] = [
            hashOf(`${spot.step} ${spot.moment} ${failures}`),
            hashOf(`next ${spot.step} ${spot.moment} ${failures}`)
          ]
          const caller = stack.caller()
          const exit = await runtime.runPromiseExit(hits.execute(caller, hits.hit("outage", id)))
          const code = Exit.isSuccess(exit)
            ? "done"
            : JSON.stringify(exit.cause).match(/"code":"([a-z_]+)"/)?.[1]
          expect(["done", "unavailable", "outcome_unknown"]).toContain(code)
          if (code === "outcome_unknown") await hits.answerOf(runtime, caller.requestId)
          // The lane and the wallet work on, with whatever the outage left them.
          const following = stack.caller()
          await expect
            .poll(
              async () =>
                Exit.isSuccess(
                  await runtime.runPromiseExit(
                    hits.execute(
                      { ...following, requestId: `${following.requestId}-${Math.random()}` },
                      hits.hit("outage", next)
                    )
                  )
                ),
              { timeout: 60_000 }
            )
            .toBe(true)
          expect(await hits.countOf(id)).toBe(code === "unavailable" ? 0 : 1)
          expect(await hits.openOf(runtime)).toEqual([])
          expect(outage.isOver() || failures > 1).toBe(true)
        } finally {
          await runtime.dispose()
        }
      })
})
