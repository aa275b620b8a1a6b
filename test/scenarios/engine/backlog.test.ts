import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { SignerError } from "../../../src/application/ports/Signers.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import { type FaultyNode, honest, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const wallets = Array.from({ length: 150 }, (_, n) => `wallet ${n}`)
/** Calls that the node answers in a second; it counts those of a batch, each. */
const perSecond = 25

describe("a restart with many open requests, at a node that answers few calls a second", () => {
  let stack: Stack
  let node: FaultyNode
  const folder = mkdtempSync(join(tmpdir(), "backlog-"))
  beforeAll(async () => {
    stack = await startStack()
    node = await startFaultyNode(stack.anvil.url)
    await stack.create(...wallets)
  }, 120_000)
  afterAll(async () => {
    await node.stop()
    await stack.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it("goes on steadily, those that were accepted first before the others, and each is done once", async () => {
    const counter = Address.unsafe(await stack.counter.getAddress())
    const database = join(folder, "journal.sqlite")
    const profile = { receiptTimeoutMillis: 500 }
    const first = stack.begin({
      database,
      profile,
      wrapSigner: (signer) => ({
        ...signer,
        sign: () => Effect.fail(new SignerError({ reason: "unavailable", message: "no answer" }))
      })
    })
    const execute = (salt: string, id: string) =>
      ExecuteOperations.run(stack.caller(), {
        operations: [
          { salt, walletCustody: 1, to: counter, funcSignature: "hit(bytes32)", funcParams: [id] }
        ],
        settings: { ...stack.settings, rpc: node.url }
      })
    const ids: Array<string> = []
    for (let round = 0; round < 2; round += 1) {
      const own = wallets.map((salt) => ({ salt, id: hashOf(`${salt} ${round}`) }))
      ids.push(...own.map(({ id }) => id))
      await first.runPromise(
        Effect.forEach(own, ({ id, salt }) => Effect.flip(execute(salt, id)), { concurrency: "unbounded" })
      )
    }
    await first.dispose()

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
    const done = async () =>
      Promise.all(ids.map(async (id) => Number(await stack.counter.getFunction("count")(id))))
    const countDone = async () => (await done()).filter((count) => count > 0).length
    const life = stack.begin({ database, profile })
    try {
      await life.runPromise(Sweep.start)
      await expect.poll(countDone, { timeout: 30_000, interval: 500 }).toBeGreaterThanOrEqual(32)
      const early = (await done()).slice(0, ids.length / 2).filter((count) => count > 0).length
      expect(early).toBeGreaterThanOrEqual(16)
      await expect.poll(countDone, { timeout: 150_000, interval: 500 }).toBe(ids.length)
      expect(await done()).toEqual(ids.map(() => 1))
      // All at once they are refused three times as often, each question more often the more there are.
      expect(refused).toBeLessThan(ids.length * 13)
    } finally {
      await life.dispose()
    }
  }, 240_000)
})
