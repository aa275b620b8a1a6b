import { afterAll, beforeAll, expect, it } from "vitest"
import { withLimits } from "../../support/lens/Limits.js"
import { passkeyWallet } from "../../support/lens/Passkeys.js"
import { created, opOf } from "../../support/lens/Wallets.js"
import { World } from "../../support/lens/World.js"

let world: World

beforeAll(async () => {
  world = await World.start(["--hardfork", "prague"])
})
afterAll(() => world.stop())

it("a passkey's limits suffice on a chain without the P-256 precompile", async () => {
  const version = "v0.7"
  const wallet = await created(world, version, await passkeyWallet(world, "without precompile"))
  const op = opOf(wallet, 1n, "0x")
  const estimated = await world.sign(version, { ...op, verificationGasLimit: 600_000n }, wallet.dummy)
  const [measure] = await world.measure(version, [estimated])
  expect(measure?.validationGas).toBeGreaterThan(200_000n)
  const { verificationGasLimit } = withLimits(estimated, measure, version)
  const signed = await world.sign(version, { ...op, verificationGasLimit }, wallet.prove)
  const outcome = await world.submit(version, [signed])
  expect(outcome.success).toBe(true)
  console.log(`without the precompile: validation ${measure?.validationGas}, limit ${verificationGasLimit}`)
})
