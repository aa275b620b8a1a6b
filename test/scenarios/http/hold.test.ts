import { beforeAll, describe, expect, it } from "vitest"
import type { TransactionResult } from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"
import * as LoopMonitor from "../../support/LoopMonitor.js"

/** Milliseconds of work between two turns of the event loop. */
const most = 50

const service = perFile()
let wallet: string
beforeAll(async () => {
  wallet = String((await service.create("main"))[0])
})

/** The answer of an endpoint, and the longest hold of the event loop while it came; `/health/live` is asked all along. */
const held = async <Body>(path: string, body: unknown) => {
  const monitor = LoopMonitor.start()
  let done = false
  const health = (async () => {
    let answered = 0
    while (!done) {
      const { status } = await fetch(`${service.info.baseUrl}/health/live`)
      expect(status).toBe(200)
      answered += 1
    }
    return answered
  })()
  const answer = await service.ask<Body>(path, body).finally(() => {
    done = true
  })
  monitor.stop()
  const longest = monitor.longest()
  console.log(`${path} ${answer.status} ${longest.toFixed(1)} ms, /health/live ${await health} times`)
  return { answer, longest, answered: await health }
}

const times = <A>(count: number, one: (index: number) => A) => Array.from({ length: count }, (_, n) => one(n))
const mint = (n: number) => ({
  salt: "main",
  walletCustody: 1,
  to: service.info.token,
  funcSignature: "mint(address,uint256)",
  funcParams: [wallet, String(n + 1)]
})

describe("a request of 256 elements to a real node lets others in", () => {
  it("as /execute", { timeout: 240_000 }, async () => {
    const few = { operations: times(8, mint), settings: service.info.settings }
    await service.ok<TransactionResult>("/execute", few)
    const request = { operations: times(256, mint), settings: service.info.settings }
    const { answer, answered, longest } = await LoopMonitor.leastOf(most, () =>
      held<TransactionResult>("/execute", request)
    )
    expect([answer.status, answer.body.status]).toEqual([200, 1])
    expect(answered).toBeGreaterThan(10)
    expect(longest).toBeLessThan(most)
  })
})
