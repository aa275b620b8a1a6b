import { afterAll, beforeAll, expect, test } from "vitest"
import { type Chain, startChain } from "../../support/suite/Chain.js"
import { configOf, newPasskey, passkeyProof } from "../../support/suite/Keys.js"
import { createWallet, execute, handleOps, newOp, nonceOf, refusal, signOp } from "../../support/suite/Ops.js"

let chain: Chain
beforeAll(async () => {
  chain = await startChain(["--hardfork", "prague"])
})
afterAll(() => chain.stop())

test("a passkey wallet works on a chain without the P-256 precompile", async () => {
  const valid = [
    "bb5a52f42f9c9261ed4361f59422a1e30036e7c32b270c8807a419feca605023",
    "05".padStart(64, "0"),
    "01".padStart(64, "0"),
    "a71af64de5126a4a4e02b7922d66ce9415ce88a4c9d25514d91082c8725ac957",
    "5d47723c8fbe580bb369fec9c2665d8e30a435b9932645482e7c9f11e872296b"
  ]
  const precompile = `0x${"100".padStart(40, "0")}`
  expect(await chain.provider.call({ to: precompile, data: `0x${valid.join("")}` })).toBe("0x")

  const passkey = newPasskey()
  const wallet = await createWallet(chain, "v0.7", "no precompile", configOf(5, [], [passkey]))
  const sender = await wallet.getAddress()
  const op = newOp(sender, {
    nonce: await nonceOf(chain, "v0.7", sender),
    callData: execute(chain.stranger.address, "0x", 1n)
  })
  const forged = await signOp(chain, "v0.7", op, (hash) => passkeyProof(hash, newPasskey()))
  expect(await refusal(chain, "v0.7", [forged])).toBe("AA24 signature error")
  const signed = await signOp(chain, "v0.7", op, (hash) => passkeyProof(hash, passkey))
  const { outcomes } = await handleOps(chain, "v0.7", [signed])
  expect(outcomes).toEqual([{ sender, success: true, reason: "0x" }])
})
