import { Interface } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import type * as Address from "../../../src/domain/primitives/Address.js"
import { initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { fundPaymaster } from "../../../src/hosts/cli/deploy/Suite.js"
import { tokenAbi } from "../../support/lens/Abis.js"
import { completed } from "../../support/lens/Limits.js"
import { type Payer, sealed, sponsor, unsigned } from "../../support/lens/Sponsored.js"
import { creationOf, ecdsaWallet, execute, opOf, type TestWallet } from "../../support/lens/Wallets.js"
import { holder, type Op, World } from "../../support/lens/World.js"

let world: World
let open: Address.Address
const stake = new Interface(["function depositTo(address) payable"])

beforeAll(async () => {
  world = await World.start()
  open = await world.deploy(initCode("OpenPaymaster"))
  await fundPaymaster(world.payer, world.suite.paymaster, 10n ** 20n)
  for (const version of versions)
    await world.send(world.entryPoint(version), stake.encodeFunctionData("depositTo", [open]), 10n ** 20n)
})
afterAll(() => world.stop())

interface Case {
  readonly name: string
  readonly op: Op
  readonly prove: (hash: string) => string
  readonly payer: Payer
}

const none = PaymasterData.noLimits
const ample = { verificationGasLimit: 400_000n, postOpGasLimit: 200_000n }

/** A wallet without money: creation, first and later use of a nonce key, no call, much data. */
const casesOf = (version: Version, wallet: TestWallet): ReadonlyArray<Case> => {
  const transfer = execute(world.token, 0n, tokenAbi.encodeFunctionData("transfer", [holder, 1n]))
  const long = execute(holder, 0n, `0x${"ab".repeat(6_000)}`)
  const own = { prove: wallet.prove }
  const bySponsor = sponsor(world)
  const billing = unsigned(open, "0x01")
  const first = (BigInt(version.slice(3)) + 3n) << 64n
  return [
    { name: "creation", op: creationOf(wallet), prove: world.deployerProof, payer: bySponsor },
    { name: "ERC-20", op: opOf(wallet, 1n, transfer), ...own, payer: bySponsor },
    { name: "ERC-20, first use of a key", op: opOf(wallet, first, transfer), ...own, payer: bySponsor },
    { name: "no call", op: opOf(wallet, 2n, "0x"), ...own, payer: bySponsor },
    { name: "6,000 bytes", op: opOf(wallet, 3n, long), ...own, payer: bySponsor },
    { name: "open", op: opOf(wallet, 4n, transfer), ...own, payer: unsigned(open) },
    { name: "first postOp", op: opOf(wallet, 5n, transfer), ...own, payer: billing },
    { name: "later postOp", op: opOf(wallet, 6n, transfer), ...own, payer: billing },
    { name: "6,000 bytes and postOp", op: opOf(wallet, 7n, long), ...own, payer: billing }
  ]
}

const limitsIn = (version: Version, op: Op): PaymasterData.Limits =>
  PaymasterData.read(version, op.paymasterAndData)?.limits ?? none

describe.each(versions)("limits of sponsored ops on %s", (version) => {
  const signed = (each: Case, op: Op): Promise<Op> => sealed(world, version, op, each.prove, each.payer)
  const passes = async (each: Case, op: Op): Promise<boolean> => {
    const { reverted, success } = await world.simulate(version, [await signed(each, op)])
    return reverted === null && success
  }
  /** The least value with which the op goes through; it does with `enough`. */
  const least = async (each: Case, enough: bigint, of: (limit: bigint) => Op): Promise<bigint> => {
    let [fails, works] = [-1n, enough]
    if (!(await passes(each, of(works)))) throw new Error(`${each.name}: ${works} is not enough`)
    while (works - fails > 20n) {
      const middle = (works + fails) / 2n
      if (await passes(each, of(middle))) works = middle
      else fails = middle
    }
    return works
  }

  it("are enough by themselves, and hardly more than the least that are", async () => {
    const wallet = await ecdsaWallet(world, `sponsored ${version}`)
    await world.mint(wallet.address, 1_000n)
    const rows = []
    for (const each of casesOf(version, wallet)) {
      const draft: Op = {
        ...each.op,
        callGasLimit: 200_000n,
        verificationGasLimit: version === "v0.6" ? 900_000n : 600_000n,
        paymasterAndData: each.payer.data(version, ample)
      }
      const measure = completed((await world.measure(version, [await signed(each, draft)]))[0], each.name)
      const bare: Op = { ...draft, paymasterAndData: each.payer.data(version, none) }
      const limited: Op = { ...draft, ...Gas.meteredLimits(version, bare, measure, Percent.zero) }
      const { callGas, creationGas, paymasterGas, postOpGas, validationGas } = measure
      const preVerificationGas = Gas.preVerificationGas(await signed(each, limited), {
        version,
        measuredGas: creationGas + validationGas + paymasterGas + callGas + postOpGas
      })
      const op: Op = { ...limited, preVerificationGas }
      const withPaymaster = (limits: Partial<PaymasterData.Limits>): Op => ({
        ...draft,
        paymasterAndData: each.payer.data(version, { ...ample, ...limits })
      })
      const verification =
        version === "v0.6"
          ? await least(each, op.verificationGasLimit, (verificationGasLimit) => ({
              ...draft,
              verificationGasLimit
            }))
          : await least(each, limitsIn(version, op).verificationGasLimit, (verificationGasLimit) =>
              withPaymaster({ verificationGasLimit })
            )
      const postOp =
        version === "v0.6" || measure.postOpGas === 0n
          ? 0n
          : await least(each, limitsIn(version, op).postOpGasLimit, (postOpGasLimit) =>
              withPaymaster({ postOpGasLimit })
            )
      const given = version === "v0.6" ? op.verificationGasLimit : limitsIn(version, op).verificationGasLimit
      const outcome = await world.submit(version, [await signed(each, op)])
      expect(outcome.success, each.name).toBe(true)
      rows.push({
        version,
        op: each.name,
        paymaster: Number(measure.paymasterGas),
        "true least": Number(verification),
        given: Number(given),
        "least beside the measure": Number(verification - measure.paymasterGas),
        postOp: Number(measure.postOpGas),
        "true least postOp": Number(postOp),
        "given postOp": Number(limitsIn(version, op).postOpGasLimit),
        "paid beyond the transaction": Number(outcome.paidGas - outcome.usedGas)
      })
    }
    console.table(rows)
    for (const row of rows) {
      expect(row.given, row.op).toBeGreaterThanOrEqual(row["true least"])
      expect(row.given, row.op).toBeLessThanOrEqual(row["true least"] * 1.1)
      expect(row["paid beyond the transaction"], row.op).toBeGreaterThanOrEqual(0)
      expect(row["given postOp"], row.op).toBeGreaterThanOrEqual(row["true least postOp"])
    }
  })
})
