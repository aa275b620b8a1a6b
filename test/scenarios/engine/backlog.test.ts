import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { expect, it } from "vitest"
import { SignerError } from "../../../src/application/ports/Signers.js"
import { honest, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { useStack } from "../../support/stack/Stack.js"

const wallets = Array.from({ length: 30 }, (_, n) => `wallet ${n}`)
/** Calls that the node answers in a second; it counts those of a batch, each. */
const perSecond = 25

const stack = useStack({}, (stack) => stack.create(...wallets))

it("a restart with many open requests, at a node that answers few calls a second, goes on steadily, and each is done once", async () => {
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
  let refused = 0
  node.behave((question, ask) => {
    const now = Math.floor(performance.now() / 1_000)
    if (now !== second) [second, asked] = [now, 0]
    asked += 1
    if (asked <= perSecond) return honest(question, ask)
    refused += 1
    return Promise.resolve(refusal(-32_005, "rate limit exceeded"))
  })
  try {
    await stack.living({ database, profile }, async () => {
      const settled = { timeout: 150_000, interval: 500 }
      await expect.poll(() => stack.counts(...ids), settled).toEqual(ids.map(() => 1))
      // All at once they are refused three times as often, each question more often the more there are.
      expect(refused).toBeLessThan(ids.length * 13)
    })
  } finally {
    await node.stop()
  }
}, 240_000)
