import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { describe, expect, it } from "@effect/vitest"
import { getCreate2Address, Interface, keccak256 } from "ethers"
import { type Version, versions } from "../../../../src/domain/erc4337/EntryPoint.js"
import { EntryPointSpec } from "../../../../src/domain/erc4337/entrypoint/EntryPointSpec.js"
import * as PaymasterData from "../../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"

/** Nick's deterministic deployment proxy, which has put every EntryPoint where it is. */
const deployer = "0x4e59b44847b379578588920cA78FbF26c0B4956C"

const fileOf = (version: string, path: string): string =>
  readFileSync(
    createRequire(import.meta.url).resolve(`@account-abstraction/contracts-${version}/${path}`),
    "utf8"
  )

describe.each(versions)("specification of EntryPoint %s", (version) => {
  const spec = EntryPointSpec[version]
  const { abi, bytecode } = JSON.parse(fileOf(version, "artifacts/EntryPoint.json"))

  it("is said of the contract of its authors' package, which stands at its address", () => {
    expect(getCreate2Address(deployer, spec.deploymentSalt, keccak256(bytecode))).toBe(spec.address)
  })

  it("begins a window where its source does", () => {
    const source = fileOf(version, "core/EntryPoint.sol")
    const tooEarly = /block\.timestamp (<=?) data\.validAfter/.exec(source)?.[1]
    expect(tooEarly).toBe(spec.hasBegun(7n, 7n) ? "<" : "<=")
    expect([spec.hasBegun(7n, 6n), spec.hasBegun(7n, 8n), spec.hasBegun(0n, 0n)]).toEqual([false, true, true])
  })

  it("has the struct of its functions, in which the words of gas stand behind callData", () => {
    const [ops] = new Interface(abi).getFunction("handleOps")?.inputs ?? []
    const struct = ops?.arrayChildren
    expect(struct?.format("sighash")).toBe(spec.layout.struct)
    const gas = { callGasLimit: 1n, verificationGasLimit: 2n, preVerificationGas: 3n }
    const words = spec.layout.gasWords({ ...gas, maxFeePerGas: 4n, maxPriorityFeePerGas: 5n })
    // Plus sender, nonce, initCode and callData in front, paymasterAndData and signature behind.
    expect(struct?.components).toHaveLength(6 + words.length)
  })
})

describe("an op on every EntryPoint", () => {
  it("an op reserves gas for its paymaster where it has one", () => {
    const limits = { verificationGasLimit: 7n, postOpGasLimit: 5n }
    const op = { callGasLimit: 100n, verificationGasLimit: 10n }
    expect(versions.map((version) => EntryPointSpec[version].gas.paymasterPrefund(op, limits))).toEqual([
      20n,
      12n,
      12n
    ])
    for (const version of versions) {
      const { declared } = EntryPointSpec[version].gas
      const alone = declared(op, null)
      const paid = declared(op, { limits, settles: true })
      expect(alone).toMatchObject({ verification: 10n, execution: 100n })
      expect(paid.execution).toBeGreaterThan(alone.execution)
      expect(paid.inHand).toBeGreaterThan(alone.inHand)
    }
  })
})

describe("an op in the form for bundlers", () => {
  const factory = `0x${"fa".repeat(20)}`
  const paymaster = `0x${"5a".repeat(20)}`
  const initCode = Hex.unsafe(`${factory}0102`)
  const limits = { verificationGasLimit: 7n, postOpGasLimit: 5n }
  const data = Hex.unsafe("0xbeef")
  const given = (version: Version) =>
    PaymasterData.make(version, { paymaster: Address.unsafe(paymaster), limits, data })

  it("has its factory and its paymaster in members of their own from v0.7 on, none that is empty, and as they are on v0.6", () => {
    for (const version of ["v0.7", "v0.8"] as const) {
      const { write } = EntryPointSpec[version].rpc
      expect(write({ initCode, paymasterAndData: given(version) })).toEqual({
        factory,
        factoryData: "0x0102",
        paymaster,
        paymasterVerificationGasLimit: "0x7",
        paymasterPostOpGasLimit: "0x5",
        paymasterData: data
      })
      expect(write({ initCode: Hex.empty, paymasterAndData: Hex.empty })).toEqual({})
    }
    const whole = { initCode, paymasterAndData: given("v0.6") }
    expect(EntryPointSpec["v0.6"].rpc.write(whole)).toEqual(whole)
  })

  it("an op gets a paymaster's data, and its limits when the paymaster sets them", () => {
    const told = { paymaster: Address.unsafe(paymaster), paymasterData: data }
    for (const version of ["v0.7", "v0.8"] as const) {
      const { readPaymaster } = EntryPointSpec[version].rpc
      const bare = { paymaster, data, verificationGasLimit: null, postOpGasLimit: null }
      expect(readPaymaster(told)).toMatchObject({ ...bare, paymaster: told.paymaster })
      expect(
        readPaymaster({ ...told, paymasterVerificationGasLimit: 7n, paymasterPostOpGasLimit: 5n })
      ).toMatchObject(limits)
      expect(readPaymaster({ paymaster: told.paymaster })).toBeNull()
      expect(readPaymaster({ paymasterData: data })).toBeNull()
    }
    const { readPaymaster } = EntryPointSpec["v0.6"].rpc
    expect(readPaymaster({ paymasterAndData: given("v0.6") })).toEqual({
      paymaster: told.paymaster,
      data,
      verificationGasLimit: null,
      postOpGasLimit: null
    })
    expect(readPaymaster({ paymasterAndData: Hex.unsafe(paymaster) })).toMatchObject({ data: Hex.empty })
    expect(readPaymaster({ paymasterAndData: Hex.unsafe(paymaster.slice(0, -2)) })).toBeNull()
    expect(readPaymaster({})).toBeNull()
  })
})
