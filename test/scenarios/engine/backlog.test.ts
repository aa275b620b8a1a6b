import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ChainFacts from "../../../src/application/chain/ChainFacts.js"
import * as Connection from "../../../src/application/chain/Connection.js"
import * as Wallets from "../../../src/application/intake/Wallets.js"
import { SignerError } from "../../../src/application/ports/Signers.js"
import { CurrentRequest } from "../../../src/application/request/CurrentRequest.js"
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
    const done = async () =>
      Promise.all(ids.map(async (id) => Number(await stack.counter.getFunction("count")(id))))
    const countDone = async () => (await done()).filter((count) => count > 0).length
    const life = stack.begin({ database, profile })
    try {
      await life.runPromise(Sweep.start)
      await expect.poll(countDone, { timeout: 60_000, interval: 500 }).toBeGreaterThanOrEqual(32)
      const early = (await done()).slice(0, ids.length / 2).filter((count) => count > 0).length
      expect(early).toBeGreaterThanOrEqual(16)
      await expect.poll(countDone, { timeout: 150_000, interval: 500 }).toBe(ids.length)
      expect(await done()).toEqual(ids.map(() => 1))
      // Each with questions of its own, they need one for every wallet, and one for every wallet's creation.
      expect(answered.get("eth_getCode") ?? 0).toBeLessThan(wallets.length / 5)
      expect(answered.get("eth_getTransactionByHash") ?? 0).toBeLessThan(wallets.length / 2)
      expect(refused).toBeLessThan(ids.length * 6)
    } finally {
      await life.dispose()
    }
  }, 240_000)

  it("reads many wallets in one call, and of each what a call of its own says", async () => {
    const exchanges: Array<ReadonlyArray<string>> = []
    const life = stack.begin({ onExchange: (methods) => exchanges.push(methods) })
    const others = [
      stack.signer.address,
      `0x${"5e".repeat(20)}`,
      stack.suite.factory,
      stack.settings.entryPoint
    ]
    const called = [...others, await stack.counter.getAddress(), await stack.reverter.getAddress()]
    const places = [...wallets.slice(0, 20).map(stack.predict), ...called.map(Address.unsafe)]
    const accepted = { accepted: () => true } as unknown as CurrentRequest["Type"]
    const { alone, together } = await life.runPromise(
      Effect.gen(function* () {
        const { chain, profile } = yield* Connection.open(stack.caller(), stack.settings)
        const { initCode } = yield* Wallets.formula(profile, {})
        const read = (place: Address.Address) => Wallets.read(ChainFacts.make(), chain, initCode, [place])
        const all = (some: typeof places) => Effect.forEach(some, read, { concurrency: "unbounded" })
        const one = yield* all(places)
        exchanges.length = 0
        const sought = all([...places, ...places])
        return { alone: one, together: yield* Effect.provideService(sought, CurrentRequest, accepted) }
      })
    )
    await life.dispose()
    expect(together).toEqual([...alone, ...alone])
    expect(alone.map((found) => [...found.values()][0]?._tag)).toEqual([
      ...wallets.slice(0, 20).map(() => "deployed"),
      ...["absent", "absent", "foreign", "foreign", "foreign", "foreign"]
    ])
    const calls = exchanges.flat().filter((method) => method === "eth_getCode")
    // Those alone that do not answer as wallets do, asked once for both.
    expect(calls).toHaveLength(4)
  })
})
