import { expect, it } from "vitest"
import * as GetRequest from "../../../src/application/endpoints/operations/GetRequest.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Heap from "../../support/Heap.js"
import * as LoopMonitor from "../../support/LoopMonitor.js"
import { useStack } from "../../support/stack/Stack.js"

const wallets = ["a", "b", "c", "d"]
const stack = useStack({}, async (stack) => {
  for (const wallet of await stack.create(...wallets)) {
    await stack.mint(wallet, 1_000_000n)
    await stack.fund(wallet, 10n ** 20n)
  }
})

const count = 10_000
/** Milliseconds of work between two turns of the event loop. */
const mostHeld = 100

it(
  "a payout of 10,000 is made once, reserves nothing, and blocks no other request",
  { timeout: 600_000 },
  () =>
    stack.living({ database: stack.database() }, async (life) => {
      const to = `0x${"ab".repeat(20)}`
      const operations = Array.from({ length: count }, (_, index) =>
        stack.transfer(wallets[index % wallets.length] ?? "a", to)
      )
      const caller = stack.caller()
      const before = Heap.bytesInUse()
      const monitor = LoopMonitor.start()
      const { requestId } = caller
      await new Promise<string>((resolve, reject) => {
        const asked: Caller = { ...caller, isAsynchronous: true, onAccepted: resolve }
        life.runPromise(stack.execute(operations, {}, asked)).catch(({ code }) => {
          if (code !== "outcome_unknown") reject(new Error(code))
        })
      })
      const stateOf = () => life.runPromise(GetRequest.run(caller, { requestId, wait: "60" }))
      let state = await stateOf()
      while (state.state === "pending") state = await stateOf()
      monitor.stop()
      expect(state.progress).toMatchObject({ total: count, succeeded: count, failed: 0 })
      expect(await stack.balanceOf(to)).toBe(BigInt(count))
      expect(LoopMonitor.asUsual(mostHeld, monitor.longest())).toBeLessThan(mostHeld)
      state = { ...state, answer: null }
      expect(Heap.bytesInUse() - before).toBeLessThan(64 * Heap.MiB)
    })
)
