import { Wallet } from "ethers"
import { describe, expect, it } from "vitest"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Proof from "../../../src/domain/signature/Proof.js"
import { assertion, configOf, ecdsa, indexIn, newPasskey } from "../../support/suite/Keys.js"
import { type Config, mixedProof } from "../../support/suite/Layouts.js"
import { created, opOf, type TestWallet, walletOf, withLimits } from "./Wallets.js"
import { useWorld } from "./World.js"

/** The service's dummy proofs, measured through the lens: their limits suffice for real proofs without any buffer. */

const owners = Array.from({ length: 16 }, () => Wallet.createRandom())
const [p, q] = [newPasskey(), newPasskey()]
const version = "v0.7"

interface Case {
  readonly name: string
  readonly config: Config
  readonly owners: number
  readonly passkeys: ReadonlyArray<typeof p>
}

const cases: ReadonlyArray<Case> = [
  { name: "2 by a passkey", config: configOf(2, owners.slice(0, 1), [p, q]), owners: 0, passkeys: [q] },
  { name: "3 by two of three", config: configOf(3, owners.slice(0, 3), [], 2), owners: 2, passkeys: [] },
  { name: "3 by eight of sixteen", config: configOf(3, owners, [], 8), owners: 8, passkeys: [] },
  {
    name: "4 by an owner and two passkeys",
    config: configOf(4, owners.slice(0, 2), [p, q], 3),
    owners: 1,
    passkeys: [p, q]
  },
  { name: "5 by a passkey", config: configOf(5, [], [p, q]), owners: 0, passkeys: [p] }
]

const prove =
  ({ config, owners: count, passkeys }: Case) =>
  (hash: string): string => {
    // The last list entries cost the wallet the longest search.
    const signers = owners.filter(({ address }) => config.owners.slice(-count).includes(address))
    const signatures = count === 0 ? "0x" : ecdsa(hash, ...signers)
    return passkeys.length === 0
      ? signatures
      : mixedProof(
          signatures,
          passkeys.map((each) => assertion(hash, each, { index: indexIn(config, each) }))
        )
  }

/** The configuration as the domain reads it. */
const domainConfig = (config: Config) => ({
  custody: 4 as const,
  threshold: config.threshold,
  owners: [],
  passkeys: config.passkeys.map(({ x, y }) => ({ x: Hex.unsafe32(x), y: Hex.unsafe32(y) }))
})

describe.each([
  ["with", undefined],
  ["without", ["--hardfork", "prague"]]
] as const)("%s the P-256 precompile", (_, args) => {
  const world = useWorld(args)

  it.each(cases)("a dummy of custody $name needs enough gas, and little more", async (one) => {
    const proof = prove(one)
    const wallet: TestWallet = await created(
      world,
      version,
      await walletOf(world, one.name, one.config, { prove: proof, dummy: proof })
    )
    const op = { ...opOf(wallet, 1n, "0x"), verificationGasLimit: 3_000_000n }
    const dummy = Proof.dummy(domainConfig(one.config), { owners: one.owners, passkeys: one.passkeys.length })
    const hash = Hex.unsafe32(await world.userOpHash(version, op))
    const drafted = { ...op, signature: Proof.challenge(world.blob(dummy), hash) }
    const real = await world.sign(version, op, proof)
    const [asked] = await world.measure(version, [drafted])
    const [needed] = await world.measure(version, [real])
    expect([asked?.stage, needed?.stage]).toEqual(["ok", "ok"])
    expect((needed?.validationData ?? 1n) & 1n).toBe(0n)
    const [askedGas, neededGas] = [asked?.validationGas ?? 0n, needed?.validationGas ?? 0n]
    // Solidity's curve arithmetic varies by a few percent between signatures; the limit has a 10% margin.
    expect(askedGas * 105n).toBeGreaterThanOrEqual(neededGas * 100n)
    // Extra cost of a wrong signature: a full comparison of owners and the precompile check. Extra cost of the longest
    // assertion: a member order that is read one by one.
    const longest = 20_000n * BigInt(one.passkeys.length)
    expect(askedGas - neededGas).toBeLessThan(12_000n * BigInt(one.owners + 1) + 20_000n + longest)

    const { verificationGasLimit } = withLimits(drafted, asked, version)
    const outcome = await world.submit(version, [
      await world.sign(version, { ...op, verificationGasLimit }, proof)
    ])
    expect(outcome.success).toBe(true)
  })
})
