import * as Result from "effect/Result"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import { reverterAbi, tokenAbi } from "./Abis.js"
import {
  created,
  creationOf,
  ecdsaWallet,
  execute,
  executeBatch,
  opOf,
  passkeyWallet,
  type TestWallet
} from "./Wallets.js"
import { dummyEcdsa, holder, type Op, useWorld } from "./World.js"

const world = useWorld()

const bundles = 24

/** Action of one op of a random bundle. */
type Deed =
  | { readonly kind: "create" }
  | { readonly kind: "fail"; readonly by: number }
  | {
      readonly kind: "call"
      readonly by: number
      readonly what: "transfer" | "first" | "nothing" | "value" | "data" | "zeros" | "batch"
      readonly size: number
      /** Uses a fresh nonce key. */
      readonly fresh: boolean
    }

const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 1, arbitrary: fc.constant<Deed>({ kind: "create" }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("fail" as const), by: fc.nat(3) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("call" as const),
      by: fc.nat(3),
      what: fc.constantFrom(
        ...(["transfer", "first", "nothing", "value", "data", "zeros", "batch"] as const)
      ),
      size: fc.nat(3_000),
      fresh: fc.boolean()
    })
  }
)
const bundle = fc.array(deed, { minLength: 1, maxLength: 8 })

interface Step {
  readonly op: Op
  readonly prove: (hash: string) => string
  readonly dummy: (hash: string) => string
}

/** The ops of a bundle; each op of a wallet has the next nonce of its key. */
class Scribe {
  private made = 0
  private readonly sequences = new Map<string, bigint>()

  constructor(
    private readonly version: Version,
    private readonly wallets: ReadonlyArray<TestWallet>
  ) {}

  async step(what: Deed): Promise<Step> {
    this.made += 1
    if (what.kind === "create") {
      const wallet = await ecdsaWallet(world, `random ${this.version} ${this.made}`)
      await world.setBalance(wallet.address, 10n ** 18n)
      return { op: creationOf(wallet), prove: world.deployerProof, dummy: dummyEcdsa }
    }
    const wallet = this.wallets[what.by % this.wallets.length]
    if (wallet === undefined) throw new Error("no wallet")
    const { dummy, prove } = wallet
    const key = what.kind === "call" && what.fresh ? BigInt(1_000 + this.made) : 3n
    const name = `${wallet.address} ${key}`
    const sequence = this.sequences.get(name) ?? 0n
    this.sequences.set(name, sequence + 1n)
    return { op: opOf(wallet, (key << 64n) | sequence, this.callData(what)), prove, dummy }
  }

  private callData(what: Exclude<Deed, { kind: "create" }>): string {
    const transfer = (to: string) => tokenAbi.encodeFunctionData("transfer", [to, 1n])
    const stranger = `0x${this.made.toString(16).padStart(6, "0")}${this.version.slice(3)}${"d".repeat(33)}`
    if (what.kind === "fail")
      return execute(world.reverter, 0n, reverterAbi.encodeFunctionData("failWithoutReason"))
    switch (what.what) {
      case "transfer":
        return execute(world.token, 0n, transfer(holder))
      case "first":
        return execute(world.token, 0n, transfer(stranger))
      case "nothing":
        return "0x"
      case "value":
        return execute(stranger, 1n, "0x")
      case "data":
        return execute(holder, 0n, `0x${"a7".repeat(what.size)}`)
      case "zeros":
        return execute(holder, 0n, `0x${"00".repeat(what.size)}`)
      case "batch":
        return executeBatch([
          { target: world.token, value: 0n, data: transfer(holder) },
          { target: stranger, value: 1n, data: "0x" }
        ])
    }
  }
}

/** Measures all ops in one lens call with dummy proofs, then signs them under the limits of the formulas. */
const limited = async (version: Version, steps: ReadonlyArray<Step>): Promise<ReadonlyArray<Op>> => {
  const drafts = await Promise.all(
    steps.map(({ dummy, op }) =>
      world.sign(version, { ...op, callGasLimit: 300_000n, verificationGasLimit: 600_000n }, dummy)
    )
  )
  const measures = await world.measure(version, drafts)
  return Promise.all(
    drafts.map((draft, position) => {
      const measure = measures[position]
      if (measure === undefined || (measure.stage !== "ok" && measure.stage !== "call"))
        throw new Error(`op ${position}: ${measure?.stage} ${measure?.data}`)
      const op: Op = {
        ...draft,
        verificationGasLimit: Gas.verificationGasLimit(version, measure, draft),
        callGasLimit: Gas.callGasLimit(measure, draft.callData),
        preVerificationGas: Gas.preVerificationGas(draft, {
          version,
          measuredGas: measure.creationGas + measure.validationGas + measure.callGas
        })
      }
      return world.sign(version, op, steps[position]?.prove ?? dummyEcdsa)
    })
  )
}

describe.each(versions)("the ops of random bundles on %s", (version) => {
  it("ops pay for all of the transaction's gas, with a small excess and at most a frame more for each op but one", async () => {
    const wallets = [
      await created(world, version, await ecdsaWallet(world, `pays a ${version}`)),
      await created(world, version, await ecdsaWallet(world, `pays b ${version}`)),
      await created(world, version, await passkeyWallet(world, `pays c ${version}`))
    ]
    const scribe = new Scribe(version, wallets)
    const sample = fc.sample(bundle, { numRuns: bundles, seed: 4_337 })
    for (const [turn, deeds] of sample.entries()) {
      for (const { address } of wallets) await world.setBalance(address, 10n ** 20n)
      const steps: Array<Step> = []
      for (const each of deeds) steps.push(await scribe.step(each))
      const ops = await limited(version, steps)
      const gasLimit = Result.getOrThrow(
        Gas.transactionGasLimit(version, ops, { bound: 30_000_000n, overshoot: Percent.zero })
      )
      const outcome = await world.submit(version, ops, { gasLimit })
      expect(outcome.events, `bundle ${turn}`).toBe(ops.length)
      const over = Number(outcome.paidGas - outcome.usedGas)
      expect(over, `bundle ${turn} of ${ops.length}`).toBeGreaterThanOrEqual(0)
      // The fixed margins of the formula for each op, and the frame of each but one.
      const most = ops.length * 2_500 + (ops.length - 1) * 36_000
      expect(over, `bundle ${turn} of ${ops.length}`).toBeLessThanOrEqual(most)
    }
  })
})
