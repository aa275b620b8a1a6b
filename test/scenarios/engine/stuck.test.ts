import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { SignedTransaction } from "../../../src/application/ports/journal/Transactions.js"
import * as Hits from "../../support/stack/Hits.js"
import { type LifeOptions, type Stack, startStack } from "../../support/stack/Stack.js"

const gwei = 10n ** 9n

describe("a transaction that the fees have left behind", () => {
  let stack: Stack
  let hits: Hits.Hits
  beforeAll(async () => {
    stack = await startStack()
    hits = await Hits.make(stack)
    await stack.create("one", "two")
  })
  afterAll(() => stack.stop())
  afterEach(async () => {
    await hits.automine(true)
    await hits.baseFee(gwei)
  })

  const within = async (life: LifeOptions, test: (runtime: Hits.Runtime) => Promise<void>) => {
    const runtime = stack.begin(life)
    try {
      await test(runtime)
    } finally {
      await runtime.dispose()
    }
  }
  const quick = { profile: { bumpAfterMillis: 300, receiptTimeoutMillis: 60_000 } }

  /** An execution whose transaction waits below the base fee. */
  const stuck = async (runtime: Hits.Runtime, name: string) => {
    const id = hashOf(name)
    const before = await hits.nonce()
    await hits.automine(false)
    const answer = runtime.runPromise(hits.execute(stack.caller(), hits.hit("one", id)))
    const [original] = await hits.pooled(1)
    if (original === undefined) throw new Error("a waiting transaction was expected")
    return { answer, before, id, original }
  }

  /** The version that takes the place of this one in the pool; for a moment there may be none. */
  const replacementOf = async ({ hash }: Hits.PoolTransaction): Promise<Hits.PoolTransaction> => {
    const others = async () => (await hits.pool()).filter((each) => each.hash !== hash)
    let found: ReadonlyArray<Hits.PoolTransaction> = []
    await expect
      .poll(
        async () => {
          found = await others()
          return found.length
        },
        { timeout: 15_000 }
      )
      .toBe(1)
    const [next] = found
    if (next === undefined) throw new Error("a replacement was expected")
    return next
  }

  it("is priced anew by itself: both fields by a tenth at least, the same nonce and payload, and the last is the result", async () => {
    const { noted, onExchange } = Hits.watchHeights()
    await within({ ...quick, onExchange }, async (runtime) => {
      const { answer, before, id, original } = await stuck(runtime, "priced anew")
      const versions = [original]
      let newest = original
      for (const factor of [30n, 12n, 12n]) {
        // One block that does not take it, and no more: the next one might take what takes its place.
        await noted()
        await hits.baseFee((BigInt(newest.maxFeePerGas) * factor) / 10n)
        newest = await replacementOf(newest)
        versions.push(newest)
      }
      for (const [n, version] of versions.slice(1).entries()) {
        const { input, nonce, to, value } = original
        expect(version).toMatchObject({ input, nonce, to, value })
        for (const field of ["maxFeePerGas", "maxPriorityFeePerGas"] as const)
          expect(BigInt(version[field]) * 10n).toBeGreaterThanOrEqual(BigInt(versions[n]?.[field] ?? 0) * 11n)
      }
      expect(BigInt(versions[1]?.maxFeePerGas ?? 0)).toBeGreaterThan(BigInt(original.maxFeePerGas) * 2n)
      await hits.mine()
      const result = await answer
      expect(result.status).toBe(1)
      expect(result.txHash).not.toBe(original.hash)
      expect((await stack.provider.getTransaction(result.txHash))?.nonce).toBe(before)
      expect(await hits.countOf(id)).toBe(1)
      expect(await hits.nonce()).toBe(before + 1)
    })
  }, 60_000)

  it("is priced up to the operator's cap and no further, stays watched, and is mined when the fees fall", async () => {
    const maxFeePerGas = 12n * gwei
    const caps = { maxFeePerGas, maxPriorityFeePerGas: 5n * gwei, transactionGas: 16_777_216n }
    const sent: Array<SignedTransaction> = []
    await within(
      {
        profile: { bumpAfterMillis: 200, caps, receiptTimeoutMillis: 80_000 },
        wrapJournal: (journal) => ({
          ...journal,
          recordSigned: (signed) => {
            sent.push(signed)
            expect(signed.maxFeePerGas).toBeLessThanOrEqual(caps.maxFeePerGas)
            expect(signed.maxPriorityFeePerGas).toBeLessThanOrEqual(caps.maxPriorityFeePerGas)
            return journal.recordSigned(signed)
          }
        })
      },
      async (runtime) => {
        const { answer, before, id } = await stuck(runtime, "capped")
        await hits.baseFee(100n * gwei)
        // Raised by a tenth each time until the next raise would be above the cap, then by nothing.
        const highest = () => {
          const newest = sent.at(-1)
          const raised = (price = 0n) => (price * 11n + 9n) / 10n
          return (
            raised(newest?.maxPriorityFeePerGas) > caps.maxPriorityFeePerGas ||
            raised(newest?.maxFeePerGas) > caps.maxFeePerGas
          )
        }
        const raisedByBlocks = async () => {
          await hits.baseFee(100n * gwei)
          return highest()
        }
        await expect.poll(raisedByBlocks, { timeout: 40_000, interval: 200 }).toBe(true)
        expect(sent.length).toBeGreaterThan(5)
        const mined = async () => {
          await hits.baseFee(gwei)
          return hits.nonce()
        }
        await expect.poll(mined, { timeout: 20_000, interval: 200 }).toBe(before + 1)
        const result = await answer
        expect(result.status).toBe(1)
        expect(sent.map(({ txHash }) => txHash)).toContain(result.txHash)
        expect(await hits.countOf(id)).toBe(1)
        expect(await hits.nonce()).toBe(before + 1)
      }
    )
  }, 90_000)

  it("and is mined while its replacement is signed is the result itself", async () => {
    let armed = false
    const { noted, onExchange } = Hits.watchHeights()
    await within(
      {
        profile: { bumpAfterMillis: 300 },
        onExchange,
        wrapSigner: (signer) => ({
          ...signer,
          sign: (digest) =>
            armed
              ? Effect.zipRight(
                  Effect.promise(async () => {
                    armed = false
                    await hits.baseFee(gwei)
                  }),
                  signer.sign(digest)
                )
              : signer.sign(digest)
        })
      },
      async (runtime) => {
        const { answer, before, id, original } = await stuck(runtime, "just in time")
        await noted()
        armed = true
        await hits.baseFee(BigInt(original.maxFeePerGas) + 1n)
        const result = await answer
        expect(armed).toBe(false)
        expect(result).toMatchObject({ status: 1, txHash: original.hash })
        await hits.automine(true)
        const next = hashOf("after just in time")
        const after = await runtime.runPromise(hits.execute(stack.caller(), hits.hit("two", next)))
        expect(after.status).toBe(1)
        expect([await hits.countOf(id), await hits.countOf(next)]).toEqual([1, 1])
        expect(await hits.nonce()).toBe(before + 2)
      }
    )
  }, 60_000)

  it("before the node has even taken it is priced anew at once, however long the others wait", async () => {
    let signatures = 0
    await within(
      {
        profile: { bumpAfterMillis: 600_000, receiptTimeoutMillis: 60_000 },
        wrapSigner: (signer) => ({
          ...signer,
          sign: (digest) =>
            Effect.tap(signer.sign(digest), () =>
              Effect.promise(async () => {
                signatures += 1
                if (signatures === 2) await hits.baseFee(20n * gwei)
              })
            )
        })
      },
      async (runtime) => {
        const id = hashOf("spike")
        const before = await hits.nonce()
        // With the others' wait of ten minutes it would have no result.
        const result = await runtime.runPromise(hits.execute(stack.caller(), hits.hit("one", id)))
        expect(signatures).toBeGreaterThanOrEqual(3)
        expect(result.status).toBe(1)
        expect(await hits.countOf(id)).toBe(1)
        expect(await hits.nonce()).toBe(before + 1)
      }
    )
  }, 60_000)
})
