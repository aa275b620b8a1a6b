import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { AbiCoder, Interface, toBeHex } from "ethers"
import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import type { Probe } from "../../../src/domain/erc4337/gas/GasLens.js"
import type { UserOperation } from "../../../src/domain/erc4337/UserOperation.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"

const coder = AbiCoder.defaultAbiCoder()
const word = (high: bigint, low: bigint): string => toBeHex((high << 128n) | low, 32)

/** An op in this version's ABI form. */
export const toTuple = (version: Version, op: UserOperation): ReadonlyArray<unknown> =>
  version === "v0.6"
    ? [
        op.sender,
        op.nonce,
        op.initCode,
        op.callData,
        op.callGasLimit,
        op.verificationGasLimit,
        op.preVerificationGas,
        op.maxFeePerGas,
        op.maxPriorityFeePerGas,
        op.paymasterAndData,
        op.signature
      ]
    : [
        op.sender,
        op.nonce,
        op.initCode,
        op.callData,
        word(op.verificationGasLimit, op.callGasLimit),
        op.preVerificationGas,
        word(op.maxPriorityFeePerGas, op.maxFeePerGas),
        op.paymasterAndData,
        op.signature
      ]

/** A probe in the lens's ABI form. */
export const toProbe = ({ paymaster, ...probe }: Probe) => ({
  ...probe,
  paymaster: paymaster?.address ?? `0x${"00".repeat(20)}`,
  paymasterGas: paymaster?.validationGas ?? 0n,
  postOpGas: paymaster?.postOpGas ?? 0n,
  feePerGas: paymaster?.feePerGas ?? 0n
})

const npmArtifact = (version: Version, name: string): { abi: []; bytecode: string } =>
  JSON.parse(
    readFileSync(
      createRequire(import.meta.url).resolve(
        `@account-abstraction/contracts-${version}/artifacts/${name}.json`
      ),
      "utf8"
    )
  )

/** ABI of a contract from the EntryPoints' authors. */
export const npmInterface = (version: Version, name: string): Interface =>
  new Interface(npmArtifact(version, name).abi)

/** Creation code of a contract from the EntryPoints' authors. */
export const npmCode = (version: Version, name: string, ...addresses: ReadonlyArray<string>): string =>
  npmArtifact(version, name).bytecode +
  coder
    .encode(
      addresses.map(() => "address"),
      addresses
    )
    .slice(2)

export const walletAbi = new Interface(artifact("Wallet").abi)
export const tokenAbi = new Interface(artifact("TestToken").abi)
export const reverterAbi = new Interface(artifact("Reverter").abi)
export const factoryAbi = new Interface(artifact("WalletFactory").abi)
