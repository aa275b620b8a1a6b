import * as Result from "effect/Result"
import {
  AbiCoder,
  type HDNodeWallet,
  type JsonRpcProvider,
  keccak256,
  type NonceManager,
  type TransactionReceipt,
  toBeHex,
  Wallet
} from "ethers"
import { beforeAll } from "vitest"
import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as GasLens from "../../../src/domain/erc4337/gas/GasLens.js"
import * as LensBatch from "../../../src/domain/erc4337/gas/LensBatch.js"
import * as LensOverrides from "../../../src/domain/erc4337/gas/LensOverrides.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import { hash, type UserOperation } from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Proof from "../../../src/domain/signature/Proof.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import type { Suite } from "../../../src/hosts/cli/deploy/Suite.js"
import type { Anvil } from "../../../src/hosts/cli/dev/Anvil.js"
import { keyOf, startChain } from "../../support/stack/Chain.js"
import { type Conditions, opSignature, signingHash } from "../../support/suite/Layouts.js"
import { mined } from "../../support/suite/Receipt.js"
import { use } from "../../support/Use.js"
import { npmInterface, tokenAbi, toTuple } from "./Abis.js"

export type Op = UserOperation

/** Overrides of a probe's fields; the defaults are the op's own or generous. */
export interface Given {
  readonly verificationGas?: bigint
  readonly callGas?: bigint
  readonly requiredPrefund?: bigint
  readonly paymasterGas?: bigint
  readonly postOpGas?: bigint
}

/** Outcome of a bundle at the real EntryPoint. */
export interface Outcome {
  /** All calls succeeded, as the UserOperationEvents say. False also when the whole bundle reverts. */
  readonly success: boolean
  /** Number of UserOperationEvents. */
  readonly events: number
  /** Revert data of the bundle, or null. */
  readonly reverted: string | null
  /** Gas that the op paid for. */
  readonly paidGas: bigint
  /** Gas of the transaction. */
  readonly usedGas: bigint
}

const coder = AbiCoder.defaultAbiCoder()

/** The service's own dummy for one ECDSA proof. */
export const dummyEcdsa = (): string => Proof.dummyEcdsa(1)

/** Holds the test token initially. */
export const holder = "0x00000000000000000000000000000000000a11ce"

const deployed = async (payer: NonceManager, code: string): Promise<Address.Address> => {
  const sent = await payer.sendTransaction({ data: code })
  const receipt = await mined(sent)
  if (receipt.contractAddress === null) throw new Error("nothing was deployed")
  return Address.unsafe(receipt.contractAddress)
}

/** A chain with the three EntryPoints, the suite, the test token and the reverter. */
export class World {
  private constructor(
    readonly anvil: Anvil,
    readonly provider: JsonRpcProvider,
    readonly payer: NonceManager,
    readonly submitter: HDNodeWallet,
    readonly deployer: HDNodeWallet,
    readonly sponsor: HDNodeWallet,
    readonly suite: Suite,
    readonly token: Address.Address,
    readonly reverter: Address.Address,
    readonly stop: () => Promise<void>
  ) {}

  /** The deployer's proof for a creation. */
  readonly deployerProof = (hash: string): string => this.deployer.signingKey.sign(hash).serialized

  static async start(args?: ReadonlyArray<string>): Promise<World> {
    const { anvil, faucet, provider, reverter, stop, suite, token } = await startChain(args)
    const submitter = Wallet.createRandom().connect(provider)
    await provider.send("anvil_setBalance", [submitter.address, toBeHex(10n ** 21n)])
    const [deployer, sponsor] = [keyOf(3), keyOf(7)]
    const at = [Address.unsafe(token), Address.unsafe(reverter)] as const
    const world = new World(anvil, provider, faucet, submitter, deployer, sponsor, suite, ...at, stop)
    await world.mint(holder, 1n)
    return world
  }

  entryPoint(version: Version): Address.Address {
    return Address.unsafe(entryPoints[version])
  }

  deploy(code: string): Promise<Address.Address> {
    return deployed(this.payer, code)
  }

  mint(to: string, amount: bigint): Promise<TransactionReceipt> {
    return this.send(this.token, tokenAbi.encodeFunctionData("mint", [to, amount]))
  }

  async send(to: string, data = "0x", value = 0n): Promise<TransactionReceipt> {
    const sent = await this.payer.sendTransaction({ to, data, value })
    return mined(sent)
  }

  setBalance(account: string, wei: bigint): Promise<unknown> {
    return this.provider.send("anvil_setBalance", [account, toBeHex(wei)])
  }

  /** Empties the wallet's deposit at the EntryPoint (slot 0 maps accounts to deposits). */
  clearDeposit(version: Version, wallet: string): Promise<unknown> {
    const slot = keccak256(coder.encode(["address", "uint256"], [wallet, 0]))
    return this.provider.send("anvil_setStorageAt", [this.entryPoint(version), slot, `0x${"00".repeat(32)}`])
  }

  /** The hash as the EntryPoint computes it. */
  async userOpHash(version: Version, op: Op): Promise<string> {
    const abi = npmInterface(version, "EntryPoint")
    const data = abi.encodeFunctionData("getUserOpHash", [toTuple(version, op)])
    return this.provider.call({ to: this.entryPoint(version), data })
  }

  /** Bound to the submitter, with a long validity. */
  private conditions(): Conditions {
    return { validUntil: 4_000_000_000, validAfter: 0, bundler: this.submitter.address }
  }

  blob(proof: string): Hex.Hex {
    return Hex.unsafe(opSignature(this.conditions(), proof))
  }

  async sign(version: Version, op: Op, prove: (hash: string) => string): Promise<Op> {
    const userOpHash = hash(version, this.entryPoint(version), 31337n, op)
    return { ...op, signature: this.blob(prove(signingHash(userOpHash, this.conditions()))) }
  }

  /** The op with an ECDSA dummy proof. */
  dummied(op: Op): Op {
    return { ...op, signature: this.blob(dummyEcdsa()) }
  }

  private validateCall(version: Version, op: Op, userOpHash: string): Hex.Hex {
    const abi = npmInterface(version, "IAccount")
    return Hex.unsafe(abi.encodeFunctionData("validateUserOp", [toTuple(version, op), userOpHash, 0]))
  }

  handleOps(version: Version, ops: ReadonlyArray<Op>): string {
    const abi = npmInterface(version, "EntryPoint")
    return abi.encodeFunctionData("handleOps", [
      ops.map((op) => toTuple(version, op)),
      this.submitter.address
    ])
  }

  /** Runs a bundle on the real EntryPoint without mining it. */
  async simulate(version: Version, ops: ReadonlyArray<Op>, gas = 25_000_000n): Promise<Outcome> {
    const [block] = await this.provider.send("eth_simulateV1", [
      {
        blockStateCalls: [
          {
            calls: [
              {
                from: this.submitter.address,
                to: this.entryPoint(version),
                gas: toBeHex(gas),
                data: this.handleOps(version, ops)
              }
            ]
          }
        ]
      },
      "latest"
    ])
    const [call] = block.calls
    return {
      ...this.outcome(version, call.logs ?? []),
      usedGas: BigInt(call.gasUsed),
      reverted: call.status === "0x1" ? null : (call.returnData ?? "0x")
    }
  }

  /** Mines a bundle; `success` if all ops succeeded, `paidGas` over all ops. */
  async submit(
    version: Version,
    ops: ReadonlyArray<Op>,
    options: { readonly gasLimit?: bigint } = {}
  ): Promise<Outcome> {
    const sent = await this.submitter.sendTransaction({
      to: this.entryPoint(version),
      data: this.handleOps(version, ops),
      gasLimit: options.gasLimit ?? 20_000_000n
    })
    const receipt = await mined(sent)
    return { ...this.outcome(version, receipt.logs), usedGas: receipt.gasUsed, reverted: null }
  }

  private outcome(
    version: Version,
    logs: ReadonlyArray<{ readonly topics: ReadonlyArray<string>; readonly data: string }>
  ): Pick<Outcome, "success" | "events" | "paidGas"> {
    const abi = npmInterface(version, "EntryPoint")
    const events = logs.flatMap((log) => {
      const event = abi.parseLog(log)
      return event?.name === "UserOperationEvent" ? [event.args] : []
    })
    return {
      events: events.length,
      success: events.length > 0 && events.every((args) => args.success),
      paidGas: events.reduce((sum, args) => sum + args.actualGasUsed, 0n)
    }
  }

  /** One eth_call through the lens, from the submitter. */
  async look(
    version: Version,
    request: Omit<GasLens.Request, "entryPoint">,
    options: {
      readonly gas?: bigint
      readonly extra?: Parameters<typeof LensOverrides.overrides>[0]["extra"]
    } = {}
  ): Promise<GasLens.Report> {
    const data = Result.getOrThrow(GasLens.encodeCall({ entryPoint: this.entryPoint(version), ...request }))
    return Result.getOrThrow(GasLens.decode(await this.lensCall(version, data, options), request))
  }

  /** Several lens calls in one eth_call, with the result of each. */
  async lookEach(
    version: Version,
    requests: ReadonlyArray<Omit<GasLens.Request, "entryPoint">>,
    gas?: bigint
  ): Promise<ReadonlyArray<Hex.Hex> | null> {
    const entryPoint = this.entryPoint(version)
    const calls = requests.map((request) => Result.getOrThrow(GasLens.encodeCall({ entryPoint, ...request })))
    const told = await this.lensCall(version, LensBatch.encode(calls), gas === undefined ? {} : { gas })
    return LensBatch.decode(told, calls.length)
  }

  private async lensCall(
    version: Version,
    data: Hex.Hex,
    options: NonNullable<Parameters<World["look"]>[2]>
  ): Promise<Hex.Hex> {
    const entryPoint = this.entryPoint(version)
    const entryPointCode = Hex.unsafe(await this.provider.getCode(entryPoint))
    const override = LensOverrides.overrides({
      entryPoint,
      entryPointCode,
      ...(options.extra !== undefined && { extra: options.extra })
    })
    const call = {
      from: this.submitter.address,
      to: entryPoint,
      data,
      gas: toBeHex(options.gas ?? 100_000_000n)
    }
    return Hex.unsafe(await this.provider.send("eth_call", [call, "latest", override]))
  }

  /** The op in the lens's form. */
  async probe(version: Version, op: Op, given: Given = {}): Promise<GasLens.Probe> {
    const paymaster = PaymasterData.read(version, op.paymasterAndData)
    return {
      sender: op.sender,
      nonce: op.nonce,
      initCode: op.initCode,
      validateCall: this.validateCall(version, op, await this.userOpHash(version, op)),
      callData: op.callData,
      requiredPrefund: given.requiredPrefund ?? Gas.requiredPrefund(version, op),
      verificationGas: given.verificationGas ?? 5_000_000n,
      callGas: given.callGas ?? 10_000_000n,
      paymaster:
        paymaster === null
          ? null
          : {
              address: paymaster.paymaster,
              validationGas: given.paymasterGas ?? 3_000_000n,
              postOpGas: given.postOpGas ?? 3_000_000n,
              feePerGas: op.maxFeePerGas
            }
    }
  }
  /** One lens call over these ops in order. */
  async measure(
    version: Version,
    ops: ReadonlyArray<Op>,
    given: Given = {},
    declared = false
  ): Promise<ReadonlyArray<GasLens.Measure>> {
    const probes = await Promise.all(ops.map((op) => this.probe(version, op, given)))
    return (await this.look(version, { probes, wallets: [], declared })).measures
  }
}

/** A world for the tests of this file or group, with their preparation; it exists once they start. */
export const useWorld = (
  args?: ReadonlyArray<string>,
  prepare?: (world: World) => Promise<unknown>
): World => {
  const world = use(() => World.start(args))
  if (prepare !== undefined) beforeAll(() => prepare(world))
  return world
}
