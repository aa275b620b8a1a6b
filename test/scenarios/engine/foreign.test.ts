import { copyFileSync, existsSync } from "node:fs"
import { id as hashOf } from "ethers"
import { describe, expect, it } from "vitest"
import * as Start from "../../../src/application/operate/Start.js"
import * as UnstickLane from "../../../src/application/operate/UnstickLane.js"
import * as Power from "../../support/stack/Power.js"
import { Address, type Runtime, useStack, watchHeights } from "../../support/stack/Stack.js"

const stack = useStack({ profile: { bumpAfterMillis: 300 } }, (stack) => stack.create("one", "two", "three"))

/** A life whose waiting transactions are not repriced. */
const patient = { profile: { bumpAfterMillis: 600_000, maxInFlight: 16 } }

const works = async (runtime: Runtime, name: string) => {
  const id = hashOf(`works ${name}`)
  const before = await stack.nonce()
  expect((await runtime.runPromise(stack.execute([stack.hit("two", id)]))).status).toBe(1)
  expect([await stack.counts(id), await stack.nonce()]).toEqual([[1], before + 1])
}

describe("a foreign transaction", () => {
  it("with the nonce of the first of two waiting ones moves its work behind the second, each done once", () =>
    stack.living(patient, async (runtime) => {
      const before = await stack.nonce()
      await stack.automine(false)
      const [a, b] = [hashOf("stolen a"), hashOf("stolen b")]
      const first = runtime.runPromise(stack.execute([stack.hit("one", a)]))
      await stack.pooled(1)
      const second = runtime.runPromise(stack.execute([stack.hit("two", b)]))
      const waiting = await stack.pooled(2)
      await stack.foreign(before)
      await stack.mine()
      const [moved] = await stack.pooled(1)
      expect(Number(moved?.nonce)).toBe(before + 2)
      await stack.mine()
      const answers = await Promise.all([first, second])
      expect(answers.map(({ status }) => status)).toEqual([1, 1])
      expect(answers[0]?.txHash).toBe(moved?.hash)
      expect(waiting.map(({ hash }) => hash)).toContain(answers[1]?.txHash)
      expect(await stack.counts(a, b)).toEqual([1, 1])
      await stack.automine(true)
      await works(runtime, "behind the second")
    }))

  it("still waiting blocks work, and the operator's command fills its nonce when the pool has dropped it", async () => {
    const before = await stack.nonce()
    const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(stack.signer.address) }
    const unstick = () => stack.runtime.runPromise(UnstickLane.run(lane, false))
    await stack.automine(false)
    const dropped = await stack.foreign(before)
    await stack.pooled(1)
    const id = hashOf("behind a gap")
    const answer = stack.ask(stack.execute([stack.hit("three", id)]))
    const left = [{ nonce: BigInt(before), reason: expect.stringContaining("waits under it") }]
    await expect.poll(unstick, { timeout: 10_000 }).toEqual({ replaced: [], left })
    await stack.provider.send("anvil_dropTransaction", [dropped])
    // Nonces of landed transactions may be left, where the lane has not seen yet that they landed.
    const { replaced } = await unstick()
    expect(replaced).toMatchObject([{ nonce: BigInt(before), oldTxHash: null }])
    const [filler] = await stack.pooled(1)
    expect(filler).toMatchObject({ input: "0x", to: stack.signer.address.toLowerCase(), value: "0x0" })
    await stack.mine()
    await stack.pooled(1)
    await stack.mine()
    expect((await answer).status).toBe(1)
    expect([await stack.counts(id), await stack.nonce()]).toEqual([[1], before + 2])
    await stack.automine(true)
    await works(stack.runtime, "behind the gap")
  })
})

it("a backup from before a repricing finds the landed transactions and does not repeat them", async () => {
  const [caller, id] = [stack.caller(), hashOf("restored")]
  const before = await stack.nonce()
  const [database, backup] = [stack.database(), stack.database()]
  const power = Power.make()
  const first = stack.begin({ database, ...patient, ...power.life })
  await stack.automine(false)
  first.runFork(stack.execute([stack.hit("one", id)], {}, caller))
  const [known] = await stack.pooled(1)
  power.off()
  await first.dispose()
  for (const suffix of ["", "-wal"])
    if (existsSync(`${database}${suffix}`)) copyFileSync(`${database}${suffix}`, `${backup}${suffix}`)
  const { noted, onExchange } = watchHeights()
  const second = stack.begin({ database, onExchange })
  await second.runPromise(Start.start)
  // Exactly one block that does not take it: the next one might take its replacement.
  await noted()
  await stack.baseFee(BigInt(known?.maxFeePerGas ?? 0) + 1n)
  const newest = async () => (await stack.pool())[0]?.hash ?? known?.hash
  await expect.poll(newest, { timeout: 15_000 }).not.toBe(known?.hash)
  await stack.mine()
  await expect.poll(async () => (await stack.openOf(second)).length, { timeout: 15_000 }).toBe(0)
  await second.dispose()
  await stack.automine(true)
  await stack.living({ database: backup }, async (third) => {
    const { answer } = await stack.answerOf(third, caller.requestId)
    expect(answer.status).toBe(1)
    expect((await stack.provider.getTransactionReceipt(answer.txHash))?.status).toBe(1)
    expect([await stack.counts(id), await stack.nonce()]).toEqual([[1], before + 1])
    await works(third, "restored")
  })
}, 60_000)
