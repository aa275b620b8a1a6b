import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { id as hashOf } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import * as Hits from "../../support/stack/Hits.js"
import * as Power from "../../support/stack/Power.js"
import { type Stack, startStack } from "../../support/stack/Stack.js"

let stack: Stack
let hits: Hits.Hits
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "foreign-"))
  stack = await startStack({ profile: { bumpAfterMillis: 300 } })
  hits = await Hits.make(stack)
  await stack.create("one", "two")
})
afterEach(() => hits.automine(true))
afterAll(async () => {
  await stack.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** A life whose waiting transactions are not priced anew. */
const patient = { profile: { bumpAfterMillis: 600_000, maxInFlight: 16 } }

const works = async (runtime: Hits.Runtime, name: string) => {
  const id = hashOf(`works ${name}`)
  const before = await hits.nonce()
  const { status } = await runtime.runPromise(hits.execute(stack.caller(), hits.hit("two", id)))
  expect(status).toBe(1)
  expect(await hits.countOf(id)).toBe(1)
  expect(await hits.nonce()).toBe(before + 1)
}

describe("somebody else's transaction", () => {
  it("that takes the nonce of the first of two waiting ones moves its work behind the second, each done once", async () => {
    const runtime = stack.begin(patient)
    try {
      const before = await hits.nonce()
      await hits.automine(false)
      const [a, b] = [hashOf("stolen a"), hashOf("stolen b")]
      const first = runtime.runPromise(hits.execute(stack.caller(), hits.hit("one", a)))
      await hits.pooled(1)
      const second = runtime.runPromise(hits.execute(stack.caller(), hits.hit("two", b)))
      const waiting = await hits.pooled(2)
      await hits.foreign(before)
      await hits.mine()
      const [moved] = await hits.pooled(1)
      expect(Number(moved?.nonce)).toBe(before + 2)
      await hits.mine()
      const answers = await Promise.all([first, second])
      expect(answers.map(({ status }) => status)).toEqual([1, 1])
      expect(answers[0]?.txHash).toBe(moved?.hash)
      expect(waiting.map(({ hash }) => hash)).toContain(answers[1]?.txHash)
      expect([await hits.countOf(a), await hits.countOf(b)]).toEqual([1, 1])
      await hits.automine(true)
      await works(runtime, "behind the second")
    } finally {
      await runtime.dispose()
    }
  }, 40_000)

  it("that waits and is dropped leaves a gap, which is filled by a transfer of nothing", async () => {
    const before = await hits.nonce()
    await hits.automine(false)
    const dropped = await hits.foreign(before)
    await hits.pooled(1)
    const id = hashOf("behind a gap")
    const answer = stack.ask(hits.execute(stack.caller(), hits.hit("one", id)))
    await hits.pooled(2)
    await stack.provider.send("anvil_dropTransaction", [dropped])
    await hits.pooled(2)
    const filler = (await hits.pool()).find(({ nonce }) => Number(nonce) === before)
    expect(filler).toMatchObject({ input: "0x", to: stack.signer.address.toLowerCase() })
    expect(BigInt(filler?.value ?? 1)).toBe(0n)
    await hits.mine()
    expect((await answer).status).toBe(1)
    expect(await hits.countOf(id)).toBe(1)
    expect(await hits.nonce()).toBe(before + 2)
    await hits.automine(true)
    await works(stack.runtime, "behind the gap")
  }, 40_000)
})

describe("an old backup of the database", () => {
  const copy = (from: string, to: string) => {
    for (const suffix of ["", "-wal"])
      try {
        copyFileSync(`${from}${suffix}`, `${to}${suffix}`)
      } catch (error) {
        if (suffix === "") throw error
      }
  }

  /** A life until `spot`, a backup, a second life that brings it all to its end; the third one has the backup. */
  const restored = async (
    name: string,
    work: (runtime: Hits.Runtime) => void,
    spot: Power.Spot | null
  ): Promise<{ readonly runtime: Hits.Runtime; readonly newest: string | undefined }> => {
    const database = join(folder, `${name}.sqlite`)
    const power = Power.make(spot ?? undefined)
    const first = stack.begin({ database, ...patient, ...power.life })
    await hits.automine(false)
    work(first)
    if (spot === null) {
      await hits.pooled(1)
      power.off()
    }
    await power.failed
    await first.dispose()
    const backup = join(folder, `${name} backup.sqlite`)
    copy(database, backup)
    const known = (await hits.pool())[0]
    const { noted, onExchange } = Hits.watchHeights()
    const second = stack.begin({ database, onExchange })
    await second.runPromise(Sweep.start)
    if (known !== undefined) {
      // One block that does not take it, and no more: the next one might take what takes its place.
      await noted()
      await hits.baseFee(BigInt(known.maxFeePerGas) + 1n)
    }
    // A version that the backup does not know.
    const newest = async () => (await hits.pool())[0]?.hash ?? known?.hash
    await expect.poll(newest, { timeout: 15_000 }).not.toBe(known?.hash)
    await hits.mine()
    await expect.poll(async () => (await hits.openOf(second)).length, { timeout: 15_000 }).toBe(0)
    await second.dispose()
    await hits.automine(true)
    const runtime = stack.begin({ database: backup })
    await runtime.runPromise(Sweep.start)
    return { runtime, newest: known?.hash }
  }

  it.each([
    ["when its transaction was accepted and not signed", { step: "accept", moment: "after" } as const],
    ["when its transaction was priced lower and waited", null]
  ])(
    "made %s finds what has landed since, and does it no second time",
    async (name, spot) => {
      const caller = stack.caller()
      const id = hashOf(name)
      const before = await hits.nonce()
      const { runtime } = await restored(
        name,
        (first) => void first.runFork(hits.execute(caller, hits.hit("one", id))),
        spot
      )
      try {
        const { answer } = await hits.answerOf(runtime, caller.requestId)
        expect(answer.status).toBe(1)
        expect((await stack.provider.getTransactionReceipt(answer.txHash))?.status).toBe(1)
        expect(await hits.countOf(id)).toBe(1)
        expect(await hits.nonce()).toBe(before + 1)
        await works(runtime, name)
      } finally {
        await runtime.dispose()
      }
    },
    60_000
  )

  it("takes a transaction that does the same under the nonce of one of the key itself for its own", async () => {
    const caller = stack.caller()
    const id = hashOf("direct backup")
    const before = await hits.nonce()
    const { rpc, signer } = stack.settings
    const { runtime } = await restored(
      "direct",
      (first) =>
        void first.runFork(
          TransactSigner.run(caller, {
            to: hits.counter,
            funcSignature: "hit(bytes32)",
            funcParams: [id],
            settings: { rpc, signer }
          })
        ),
      null
    )
    try {
      await works(runtime, "direct")
      expect(await hits.countOf(id)).toBe(1)
      expect(await hits.nonce()).toBe(before + 2)
      expect((await hits.answerOf(runtime, caller.requestId)).answer).toMatchObject({ status: 1 })
    } finally {
      await runtime.dispose()
    }
  }, 60_000)
})
