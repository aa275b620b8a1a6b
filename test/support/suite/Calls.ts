import { type Interface, isError } from "ethers"
import type { EntryPointVersion } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import type { Chain } from "./Chain.js"
import { type Op, pack, walletAbi } from "./Ops.js"

/** SenderCreator of each EntryPoint: the first contract that its constructor creates. */
export const senderCreators: Readonly<Record<EntryPointVersion, string>> = {
  "v0.6": "0x7fc98430eAEdbb6070B35B39D798725049088348",
  "v0.7": "0xEFC2c1444eBCC4Db75e7613d20C6a62fF67A167C",
  "v0.8": "0x449ED7C3e6Fee6a97311d4b55475DF59C44AdD33"
}

interface Attempt {
  readonly to: string
  readonly data: string
  readonly from?: string
  readonly value?: bigint
  readonly gasLimit?: bigint
}

/** Revert data of an eth_call; undefined on success. */
const revertData = async (chain: Chain, attempt: Attempt): Promise<string | undefined> => {
  try {
    await chain.provider.call({ gasLimit: 10_000_000n, ...attempt })
    return undefined
  } catch (cause) {
    if (isError(cause, "CALL_EXCEPTION") && cause.data !== null) return cause.data
    throw cause
  }
}

/** The error of an eth_call as `Name(arguments)`, undecodable revert data as hex, or "none". */
export const revertOf = async (chain: Chain, attempt: Attempt, abi: Interface): Promise<string> => {
  const data = await revertData(chain, attempt)
  if (data === undefined) return "none"
  const error = data === "0x" ? null : abi.parseError(data)
  return error === null ? data : `${error.name}(${error.args.join(",")})`
}

/** Calldata of `validateUserOp` of this version, with no missing funds. */
export const validateCall = (version: EntryPointVersion, op: Op, hash: string): string => {
  const signature =
    version === "v0.6"
      ? "validateUserOp((address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes),bytes32,uint256)"
      : "validateUserOp((address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes),bytes32,uint256)"
  return walletAbi.encodeFunctionData(signature, [pack(version, op), hash, 0n])
}

/** A contract that forwards its calldata after the first 20 bytes to that address, and returns the result. */
export const forwarderCode = "0x601436038060145f375f5f825f345f3560601c5af13d5f5f3e601f573d5ffd5b3d5ff3"
