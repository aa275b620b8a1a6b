import { afterAll, beforeAll, expect, test } from "vitest"
import { entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { type Chain, devKey, startChain } from "../../support/suite/Chain.js"
import { configOf, ecdsa } from "../../support/suite/Keys.js"
import { createWallet, execute, handleOps, newOp, nonceOf, signOp } from "../../support/suite/Ops.js"

let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

for (const version of entryPointVersions)
  test(`a wallet is created and transfers a token on ${version}`, async () => {
    const owner = devKey(20)
    const wallet = await createWallet(chain, version, `first ${version}`, configOf(1, [owner]))
    const address = await wallet.getAddress()
    await chain.token.connect(chain.stranger).getFunction("mint").send(address, 100n)
    const transfer = chain.token.interface.encodeFunctionData("transfer", [chain.stranger.address, 40n])
    const op = newOp(address, {
      nonce: await nonceOf(chain, version, address),
      callData: execute(await chain.token.getAddress(), transfer)
    })
    const signed = await signOp(chain, version, op, (hash) => ecdsa(hash, owner))
    const { outcomes, receipt } = await handleOps(chain, version, [signed])
    console.log(version, receipt.gasUsed)
    expect(outcomes).toEqual([{ sender: address, success: true, reason: "0x" }])
    expect(await chain.token.getFunction("balanceOf").staticCall(address)).toBe(60n)
  })
