import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { describe, expect, it } from "vitest"
import { SignerError } from "../../../src/application/ports/Signers.js"
import { honest, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { useStack } from "../../support/stack/Stack.js"

const wallets = Array.from({ length: 50 }, (_, n) => `wallet ${n}`)
/** Calls that the node answers in a second; it counts those of a batch, each. */
const perSecond = 25

const stack = useStack({}, (stack) => stack.create(...wallets))

describe("a restart with many open requests, at a node that answers few calls a second", () => {
  it("proceeds steadily, and each request is done once", async () => {
    const node = await startFaultyNode(stack.anvil.url)
    const [database, profile] = [stack.database(), { receiptTimeoutMillis: 500 }]
    const first = stack.begin({
      database,
      profile,
      wrapSigner: (signer) => ({
        ...signer,
        sign: () => Effect.fail(new SignerError({ reason: "unavailable", message: "no answer" }))
      })
    })
    const rounds = [0, 1].map((round) => wallets.map((salt) => ({ salt, id: hashOf(`${salt} ${round}`) })))
    for (const round of rounds)
      await first.runPromise(
        Effect.forEach(
          round,
          ({ id, salt }) => Effect.flip(stack.execute([stack.hit(salt, id)], { rpc: node.url })),
          { concurrency: "unbounded" }
        )
      )
    await first.dispose()
    const ids = rounds.flat().map(({ id }) => id)

    let second = 0
    let asked = 0
    const answered = new Map<string, number>()
    let refused = 0
    node.behave((question, ask) => {
      const now = Math.floor(performance.now() / 1_000)
      if (now !== second) [second, asked] = [now, 0]
      asked += 1
      if (asked <= perSecond) {
        answered.set(question.method, (answered.get(question.method) ?? 0) + 1)
        return honest(question, ask)
      }
      refused += 1
      return Promise.resolve(refusal(-32_005, "rate limit exceeded"))
    })
    try {
      await stack.living({ database, profile }, async () => {
        const settled = { timeout: 150_000, interval: 500 }
        await expect.poll(() => stack.counts(...ids), settled).toEqual(ids.map(() => 1))
        // Separate queries would need one for every wallet, and one for every wallet's creation.
        expect(answered.get("eth_getCode") ?? 0).toBeLessThan(wallets.length / 5)
        expect(answered.get("eth_getTransactionByHash") ?? 0).toBeLessThan(wallets.length / 2)
        expect(refused).toBeLessThan(ids.length * 6)
      })
    } finally {
      await node.stop()
    }
  }, 240_000)
})
