import { afterAll, beforeAll, expect, it } from "vitest"
import * as Gas from "../../../src/domain/op/Gas.js"
import { passkeyWallet } from "../../support/lens/Passkeys.js"
import { creationOf, opOf } from "../../support/lens/Wallets.js"
import { World } from "../../support/lens/World.js"

let world: World

beforeAll(async () => {
  world = await World.start(["--hardfork", "prague"])
})
afterAll(() => world.stop())

it("a passkey's limits suffice on a chain without the P-256 precompile", async () => {
  const version = "v0.7"
  const wallet = await passkeyWallet(world, "without precompile")
  await world.setBalance(wallet.address, 10n ** 18n)
  const creation = { ...creationOf(wallet), verificationGasLimit: 600_000n }
  await world.submit(version, [await world.sign(version, creation, world.deployerProof)])
  const op = opOf(wallet, 1n, "0x")
  const estimated = await world.sign(version, { ...op, verificationGasLimit: 600_000n }, wallet.dummy)
  const probes = [await world.probe(version, estimated)]
  const [measure] = (await world.look(version, { probes, wallets: [] })).measures
  if (measure?.stage !== "ok") throw new Error(`${measure?.stage} ${measure?.data}`)
  expect(measure.validationGas).toBeGreaterThan(200_000n)
  const verificationGasLimit = Gas.verificationGasLimit(measure, estimated)
  const signed = await world.sign(version, { ...op, verificationGasLimit }, wallet.prove)
  const outcome = await world.submit(version, [signed])
  expect(outcome.success).toBe(true)
  console.log(`without the precompile: validation ${measure.validationGas}, limit ${verificationGasLimit}`)
})
