import * as Eip712 from "../../evm/Eip712.js"
import * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import type { Spec } from "./Spec.js"
import { v07 } from "./V07.js"

/** EntryPoint v0.8: the packed op under an EIP-712 hash; no zero paymaster, and initCode of EIP-7702. */

const packedTypeHash = Keccak.hashText(
  "PackedUserOperation(address sender,uint256 nonce,bytes initCode,bytes callData,bytes32 accountGasLimits," +
    "uint256 preVerificationGas,bytes32 gasFees,bytes paymasterAndData)"
)
const domain = Eip712.domain("ERC4337", "1")

/** The digest in the domain ("ERC4337", "1", chainId, entryPoint). */
const hash: Spec["hash"] = ({ chainId, entryPoint }, fields) =>
  Eip712.digest(domain(chainId, entryPoint), Eip712.hashStruct(packedTypeHash, fields))

/** The 20 bytes, zero-padded, that mark the initCode of an EIP-7702 account. */
const eip7702Marker = "0x7702".padEnd(42, "0")
const isEip7702 = (initCode: Hex.Hex): boolean => initCode.slice(0, 42).padEnd(42, "0") === eip7702Marker

const hasZeroPaymaster = (paymasterAndData: Hex.Hex): boolean =>
  Hex.size(paymasterAndData) >= v07.paymaster.size &&
  Address.fromWord(paymasterAndData.slice(0, 42)) === Address.zero

export const v08: Spec = {
  ...v07,
  address: Address.unsafe("0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108"),
  deploymentSalt: Hex.unsafe32("0x0a59dbff790c23c976a548690c27297883cc66b4c67024f9117b0238995e35e9"),
  hash,
  objection: (op) => {
    if (isEip7702(op.initCode)) return "EIP-7702 accounts are not supported"
    if (hasZeroPaymaster(op.paymasterAndData)) return "the paymaster must not be the zero address"
    return v07.objection(op)
  },
  // The last second before the window.
  hasBegun: (validAfter, timestamp) => validAfter === 0n || timestamp > validAfter,
  gas: { ...v07.gas, verification: 1_500n, unmetered: { perOp: 8_400n, perBundle: 9_600n } }
}
