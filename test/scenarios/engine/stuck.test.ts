import { id as hashOf } from "ethers"
import { afterEach, describe, expect, it } from "vitest"
import { type PoolTransaction, type Runtime, useStack, watchHeights } from "../../support/stack/Stack.js"

const gwei = 10n ** 9n

describe("a transaction that the fees have left behind", () => {
  const stack = useStack({}, (stack) => stack.create("one", "two"))
  afterEach(() => stack.baseFee(gwei))
  const quick = { profile: { bumpAfterMillis: 300, receiptTimeoutMillis: 60_000 } }

  /** An execution whose transaction waits below the base fee. */
  const stuck = async (runtime: Runtime, name: string) => {
    const id = hashOf(name)
    const before = await stack.nonce()
    await stack.automine(false)
    const answer = runtime.runPromise(stack.execute([stack.hit("one", id)]))
    const [original] = await stack.pooled(1)
    if (original === undefined) throw new Error("a waiting transaction was expected")
    return { answer, before, id, original }
  }

  /** The version that replaces this one in the pool; for a moment there may be none. */
  const replacementOf = async ({ hash }: PoolTransaction): Promise<PoolTransaction> => {
    const others = async () => (await stack.pool()).filter((each) => each.hash !== hash)
    await expect.poll(async () => (await others()).length, { timeout: 15_000 }).toBe(1)
    const [next] = await others()
    if (next === undefined) throw new Error("a replacement was expected")
    return next
  }

  it("is repriced automatically: both fields by a tenth at least, the same nonce and payload, and the last is the result", () => {
    const { noted, onExchange } = watchHeights()
    return stack.living({ ...quick, onExchange }, async (runtime) => {
      const { answer, before, id, original } = await stuck(runtime, "priced anew")
      const versions = [original]
      let newest = original
      for (const factor of [30n, 12n]) {
        // Exactly one block that does not take it: the next one might take its replacement.
        await noted()
        await stack.baseFee((BigInt(newest.maxFeePerGas) * factor) / 10n)
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
      await stack.mine()
      const result = await answer
      expect(result.status).toBe(1)
      expect(result.txHash).not.toBe(original.hash)
      expect((await stack.provider.getTransaction(result.txHash))?.nonce).toBe(before)
      expect([await stack.counts(id), await stack.nonce()]).toEqual([[1], before + 1])
    })
  }, 60_000)
})
