import { id as hashOf } from "ethers"
import { expect, it } from "vitest"
import * as Power from "../../support/stack/Power.js"
import { type Runtime, useStack } from "../../support/stack/Stack.js"

const stack = useStack({}, (stack) => stack.create("one"))
const kindsOf = async (life: Runtime, requestId: string) =>
  (await stack.eventsOf(life, requestId)).map(({ kind }) => kind)

it.each([
  ["while the transaction waits", false],
  ["before the transaction is mined, for which the next one comes too late", true]
])(
  "a process that ends between a broadcast and its record makes the next one report it, before the inclusion and once: %s",
  async (name, minedMeanwhile) => {
    const database = stack.database()
    const power = Power.make({ step: "recordSubmitted", moment: "before" })
    const first = stack.begin({ database, ...power.life })
    await stack.automine(false)
    const caller = stack.caller()
    first.runFork(stack.execute([stack.hit("one", hashOf(name))], {}, caller))
    await stack.pooled(1)
    await power.failed
    await first.dispose()
    if (minedMeanwhile) await stack.mine()
    await stack.living({ database }, async (second) => {
      if (!minedMeanwhile) {
        const told = ["accepted", "signed", "submitted"]
        await expect.poll(() => kindsOf(second, caller.requestId), { timeout: 20_000 }).toEqual(told)
        await stack.mine()
      }
      const { answer } = await stack.answerOf(second, caller.requestId)
      expect(answer).toMatchObject({ status: 1 })
      const events = await stack.eventsOf(second, caller.requestId)
      expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, at) => at + 1))
      expect(events.map(({ kind }) => kind).filter((kind) => kind !== "settled" && kind !== "final")).toEqual(
        ["accepted", "signed", "submitted", "included"]
      )
      expect(events[2]?.data).toEqual({ txHash: answer.txHash, elements: [0] })
    })
  }
)
