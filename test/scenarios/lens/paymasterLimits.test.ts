import { Interface } from "ethers"
import { expect, it } from "vitest"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import type * as Address from "../../../src/domain/primitives/Address.js"
import { initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { fundPaymaster } from "../../../src/hosts/cli/deploy/Suite.js"
import { tokenAbi } from "./Abis.js"
import { type Payer, sealed, sponsor, unsigned } from "./Sponsored.js"
import { completed, creationOf, ecdsaWallet, execute, opOf, type TestWallet } from "./Wallets.js"
import { holder, type Op, useWorld } from "./World.js"

let open: Address.Address
const stake = new Interface(["function depositTo(address) payable"])
const world = useWorld(undefined, async (world) => {
  open = await world.deploy(initCode("OpenPaymaster"))
  await fundPaymaster(world.payer, world.suite.paymaster, 10n ** 20n)
  for (const version of versions)
    await world.send(world.entryPoint(version), stake.encodeFunctionData("depositTo", [open]), 10n ** 20n)
})

interface Case {
  readonly name: string
  readonly op: Op
  readonly prove: (hash: string) => string
  readonly payer: Payer
}

const none = PaymasterData.noLimits
const ample = { verificationGasLimit: 400_000n, postOpGasLimit: 200_000n }

/** A wallet without funds: creation, first and later use of a nonce key, no call, much data. */
const casesOf = (version: Version, wallet: TestWallet): ReadonlyArray<Case> => {
  const transfer = execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 1n]))
  const long = execute(holder, 0n, `0x${"ab".repeat(6_000)}`)
  const [bySponsor, billing] = [sponsor(world), unsigned(open, "0x01")]
  const first = (BigInt(version.slice(3)) + 3n) << 64n
  const of = (name: string, nonce: bigint, callData: string, payer: Payer): Case => ({
    name,
    op: opOf(wallet, nonce, callData),
    prove: wallet.prove,
    payer
  })
  return [
    { name: "creation", op: creationOf(wallet), prove: world.deployerProof, payer: bySponsor },
    of("ERC-20", 1n, transfer, bySponsor),
    of("ERC-20, first use of a key", first, transfer, bySponsor),
    of("no call", 2n, "0x", bySponsor),
    of("6,000 bytes", 3n, long, bySponsor),
    of("open", 4n, transfer, unsigned(open)),
    of("first postOp", 5n, transfer, billing),
    of("later postOp", 6n, transfer, billing),
    of("6,000 bytes and postOp", 7n, long, billing)
  ]
}

const limitsIn = (version: Version, op: Op): PaymasterData.Limits =>
  PaymasterData.read(version, op.paymasterAndData)?.limits ?? none

it.each(versions)(
  "limits of sponsored ops on %s are enough by themselves, and hardly more than the least that are",
  async (version) => {
    const signed = (each: Case, op: Op): Promise<Op> => sealed(world, version, op, each.prove, each.payer)
    const passes = async (each: Case, op: Op): Promise<boolean> => {
      const { reverted, success } = await world.simulate(version, [await signed(each, op)])
      return reverted === null && success
    }
    /** The least value with which the op succeeds; `enough` is known to suffice. */
    const least = async (each: Case, enough: bigint, of: (limit: bigint) => Op): Promise<bigint> => {
      let [fails, works] = [-1n, enough]
      expect(await passes(each, of(works)), `${each.name}: ${works}`).toBe(true)
      while (works - fails > 20n) {
        const middle = (works + fails) / 2n
        if (await passes(each, of(middle))) works = middle
        else fails = middle
      }
      return works
    }

    const wallet = await ecdsaWallet(world, `sponsored ${version}`)
    await world.mint(wallet.address, 1_000n)
    for (const each of casesOf(version, wallet)) {
      const { name, payer } = each
      const draft: Op = {
        ...each.op,
        callGasLimit: 200_000n,
        verificationGasLimit: version === "v0.6" ? 900_000n : 600_000n,
        paymasterAndData: payer.data(version, ample)
      }
      const measure = completed((await world.measure(version, [await signed(each, draft)]))[0], name)
      const bare: Op = { ...draft, paymasterAndData: payer.data(version, none) }
      const limited: Op = { ...draft, ...Gas.meteredLimits(version, bare, measure, Percent.zero) }
      const { callGas, creationGas, paymasterGas, postOpGas, validationGas } = measure
      const measuredGas = creationGas + validationGas + paymasterGas + callGas + postOpGas
      const preVerificationGas = Gas.preVerificationGas(await signed(each, limited), { version, measuredGas })
      const op: Op = { ...limited, preVerificationGas }
      const given = limitsIn(version, op)
      const paying = (limits: Partial<PaymasterData.Limits>): Op => ({
        ...draft,
        paymasterAndData: payer.data(version, { ...ample, ...limits })
      })
      const verification = version === "v0.6" ? op.verificationGasLimit : given.verificationGasLimit
      const needed = await least(each, verification, (limit) =>
        version === "v0.6"
          ? { ...draft, verificationGasLimit: limit }
          : paying({ verificationGasLimit: limit })
      )
      expect(verification, name).toBeLessThanOrEqual((needed * 11n) / 10n)
      if (version !== "v0.6" && postOpGas > 0n)
        await least(each, given.postOpGasLimit, (postOpGasLimit) => paying({ postOpGasLimit }))
      const outcome = await world.submit(version, [await signed(each, op)])
      expect(outcome.success, name).toBe(true)
      expect(outcome.paidGas, name).toBeGreaterThanOrEqual(outcome.usedGas)
    }
  }
)
