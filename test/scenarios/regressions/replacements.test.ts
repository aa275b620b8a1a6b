import { expect, it } from "vitest"
import { idOf, once, success, useRigs } from "./support.js"

const rigs = useRigs()

/** rundler #221, #550: only one fee field is raised, and the replacement is underpriced for ever. */
it("the replacement of a stuck transaction raises both fee fields by a tenth at least, every time, and the last one is the result", () =>
  rigs.using({}, async (rig) => {
    const id = idOf(rig, "raised")
    const before = await rig.nonce()
    await rigs.send("evm_setAutomine", false)
    const answer = rig.execute(id, rig.hit("a", id))
    await expect.poll(async () => (await rig.pending()).length, { timeout: 10_000 }).toBe(1)
    const versions = [...(await rig.pending())]
    const replacing: Array<Promise<unknown>> = []
    const { rpc, signer } = rig.settings
    for (let n = 0; n < 4; n += 1) {
      replacing.push(rig.once("/unstuck", `raise ${n}`, { settings: { rpc, signer } }))
      const last = versions.at(-1)?.hash
      await expect.poll(async () => (await rig.pending())[0]?.hash, { timeout: 10_000 }).not.toBe(last)
      versions.push(...(await rig.pending()))
    }
    for (const [n, version] of versions.slice(1).entries()) {
      expect(version.nonce).toBe(versions[0]?.nonce)
      for (const field of ["maxFeePerGas", "maxPriorityFeePerGas"] as const)
        expect(BigInt(version[field]) * 10n).toBeGreaterThanOrEqual(BigInt(versions[n]?.[field] ?? 0) * 11n)
    }
    await rigs.send("evm_mine")
    await rigs.send("evm_setAutomine", true)
    expect(await answer).toMatchObject({ ...success, body: { txHash: versions.at(-1)?.hash } })
    await Promise.all(replacing)
    await once(rig, before, id)
  }))
