import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { type JsonRpcProvider, toBeHex } from "ethers"
import * as fc from "fast-check"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import { deployEntryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { startAnvil } from "../../../src/hosts/cli/dev/Anvil.js"
import { NodeProvider } from "../../../src/hosts/cli/support/NodeProvider.js"
import { op } from "../../domain/generators.js"
import { devKey } from "../../support/suite/Chain.js"
import { use } from "../../support/Use.js"

/** Not the chain id of the other tests: a hash that forgets the chain would not show on one chain. */
const chainId = 80_002

const anvil = use(() => startAnvil({ chainId }))
let provider: JsonRpcProvider

beforeAll(async () => {
  provider = new NodeProvider(anvil.url, chainId, {
    staticNetwork: true,
    cacheTimeout: -1,
    batchMaxCount: 1,
    pollingInterval: 50
  })
  await deployEntryPoints(devKey(0).connect(provider))
})

afterAll(async () => {
  provider?.destroy()
})

const structs = {
  "v0.6": "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)",
  "v0.7": "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)",
  "v0.8": "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"
} as const

/** getUserOpHash of the real EntryPoint: its one argument is exactly the output of `encode`. */
const hashOnChain = (version: EntryPoint.Version, each: UserOperation.UserOperation): Promise<string> =>
  provider.call({
    to: EntryPoint.canonical[version],
    data: Hex.concat(
      Keccak.selector(`getUserOpHash(${structs[version]})`),
      UserOperation.encode(version, each)
    )
  })

const plain: UserOperation.UserOperation = {
  sender: Address.unsafe(`0x${"11".repeat(20)}`),
  nonce: 0n,
  initCode: Hex.empty,
  callData: Hex.empty,
  callGasLimit: 0n,
  verificationGasLimit: 0n,
  preVerificationGas: 0n,
  maxFeePerGas: 0n,
  maxPriorityFeePerGas: 0n,
  paymasterAndData: Hex.empty,
  signature: Hex.empty
}

/** The revert data of handleOps as text: it contains the reason `AAxx ...` of any error. */
const refusal = async (version: EntryPoint.Version, each: UserOperation.UserOperation): Promise<string> => {
  const answer = await provider
    .send("eth_call", [
      {
        from: devKey(1).address,
        to: EntryPoint.canonical[version],
        data: UserOperation.handleOps(version, [each], Address.unsafe(devKey(1).address)),
        gas: toBeHex(20_000_000)
      },
      "latest"
    ])
    .then(
      () => "0x",
      (cause: unknown) => {
        const text = JSON.stringify(cause, Object.getOwnPropertyNames(cause))
        return /"data":"(0x[0-9a-f]*)"/.exec(text)?.[1] ?? "0x"
      }
    )
  return Buffer.from(answer.slice(2), "hex").toString("latin1")
}

describe.each(EntryPoint.versions)("The real EntryPoint %s", (version) => {
  const entryPoint = EntryPoint.canonical[version]

  it("computes the hashes that the domain computes, extreme values included", async () => {
    let compared = 0
    await fc.assert(
      fc.asyncProperty(op(version), async (each) => {
        expect(UserOperation.hash(version, entryPoint, BigInt(chainId), each)).toBe(
          await hashOnChain(version, each)
        )
        compared += 1
      }),
      { numRuns: 150 }
    )
    console.log(`${version}: ${compared} hashes equal`)
  })

  it("has its SenderCreator where the domain derives it", async () => {
    const creator = EntryPoint.senderCreator(entryPoint)
    expect(await provider.getCode(creator)).not.toBe("0x")
    expect(await provider.getTransactionCount(entryPoint)).toBeGreaterThanOrEqual(2)
    if (version === "v0.8")
      expect(
        Address.fromWord(await provider.call({ to: entryPoint, data: Keccak.selector("senderCreator()") }))
      ).toBe(creator)
  })

  it("refuses with AA94 exactly the gas fields that the domain finds too large", async () => {
    for (const field of [
      "callGasLimit",
      "verificationGasLimit",
      "preVerificationGas",
      "maxFeePerGas",
      "maxPriorityFeePerGas"
    ] as const)
      for (const value of [(1n << 120n) - 1n, 1n << 120n]) {
        const each = { ...plain, [field]: value }
        const tooLarge = Result.isFailure(UserOperation.fits(version, each))
        expect(tooLarge).toBe(value > (1n << 120n) - 1n)
        expect((await refusal(version, each)).includes("AA94")).toBe(tooLarge)
      }
  })

  it("refuses exactly the paymasterAndData that the domain finds incomplete", async () => {
    const lengths = version === "v0.6" ? [1, 19, 20, 21] : [1, 20, 51, 52, 53]
    for (const length of lengths) {
      const each = {
        ...plain,
        paymasterAndData: Hex.unsafe(
          `0x${"00".repeat(19)}01`.padEnd(2 + 2 * length, "0").slice(0, 2 + 2 * length)
        )
      }
      expect((await refusal(version, each)).includes("AA93")).toBe(
        Result.isFailure(UserOperation.fits(version, each))
      )
    }
    if (version === "v0.6") return
    for (const limits of [`01${"0".repeat(30)}${"0".repeat(32)}`, `${"0".repeat(32)}01${"0".repeat(30)}`]) {
      const each = { ...plain, paymasterAndData: Hex.unsafe(`0x${"11".repeat(20)}${limits}`) }
      expect(await refusal(version, each)).toContain("AA94")
      expect(Result.isFailure(UserOperation.fits(version, each))).toBe(true)
    }
    const zero = { ...plain, paymasterAndData: Hex.unsafe(`0x${"00".repeat(52)}`) }
    expect((await refusal(version, zero)).includes("AA98")).toBe(version === "v0.8")
    expect(Result.isFailure(UserOperation.fits(version, zero))).toBe(version === "v0.8")
  })
})

describe("The real EntryPoint v0.8", () => {
  it("hashes an initCode with prefix 0x7702 like any other factory's", async () => {
    const each = { ...plain, initCode: Hex.unsafe(`0x7702${"11".repeat(30)}`) }
    expect(Result.isSuccess(UserOperation.fits("v0.8", each))).toBe(true)
    expect(UserOperation.hash("v0.8", EntryPoint.canonical["v0.8"], BigInt(chainId), each)).toBe(
      await hashOnChain("v0.8", each)
    )
  })

  it.each(["0x7702", "0x770200", `0x7702${"00".repeat(18)}`, `0x7702${"00".repeat(18)}1234`])(
    "queries the chain for the hash of an EIP-7702 op (%s), which does not fit",
    async (initCode) => {
      const each = { ...plain, initCode: Hex.unsafe(initCode) }
      expect(Result.isFailure(UserOperation.fits("v0.8", each))).toBe(true)
      await expect(hashOnChain("v0.8", each)).rejects.toThrow("sender has no code")
    }
  )
})
