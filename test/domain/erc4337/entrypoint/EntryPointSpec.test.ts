import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { describe, expect, it } from "@effect/vitest"
import { getCreate2Address, Interface, keccak256 } from "ethers"
import { versions } from "../../../../src/domain/erc4337/EntryPoint.js"
import { EntryPointSpec } from "../../../../src/domain/erc4337/entrypoint/EntryPointSpec.js"

/** Nick's deterministic deployment proxy, which has put every EntryPoint where it is. */
const deployer = "0x4e59b44847b379578588920cA78FbF26c0B4956C"

const artifact = (version: string): { readonly abi: ReadonlyArray<never>; readonly bytecode: string } =>
  JSON.parse(
    readFileSync(
      createRequire(import.meta.url).resolve(
        `@account-abstraction/contracts-${version}/artifacts/EntryPoint.json`
      ),
      "utf8"
    )
  )

describe.each(versions)("what is said of EntryPoint %s", (version) => {
  const spec = EntryPointSpec[version]
  const { abi, bytecode } = artifact(version)

  it("is said of the contract of its authors' package, which stands at its address", () => {
    expect(getCreate2Address(deployer, spec.deploymentSalt, keccak256(bytecode))).toBe(spec.address)
  })

  it("has the selectors of its functions", () => {
    const contract = new Interface(abi)
    expect(spec.functions.handleOps).toBe(contract.getFunction("handleOps")?.selector)
    expect(spec.functions.handleAggregatedOps).toBe(contract.getFunction("handleAggregatedOps")?.selector)
  })

  it("has the struct of its functions, in which the words of gas stand behind callData", () => {
    const [ops] = new Interface(abi).getFunction("handleOps")?.inputs ?? []
    const struct = ops?.arrayChildren
    expect(struct?.format("sighash")).toBe(spec.layout.struct)
    const gas = { callGasLimit: 1n, verificationGasLimit: 2n, preVerificationGas: 3n }
    const words = spec.layout.gasWords({ ...gas, maxFeePerGas: 4n, maxPriorityFeePerGas: 5n })
    // Beside sender, nonce, initCode and callData in front, paymasterAndData and signature behind.
    expect(struct?.components).toHaveLength(6 + words.length)
  })
})

describe("an op on every EntryPoint", () => {
  it("reserves gas for its paymaster where it has one", () => {
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
