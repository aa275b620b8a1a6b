import * as Keccak from "../../primitives/Keccak.js"
import * as Words from "../../primitives/Words.js"
import type { Functions, Spec } from "./Spec.js"

/** Code and figures shared by EntryPoint versions. */

/** Gas that `innerHandleOp` requires in addition to the call's limit. */
export const innerReserve = 10_000n

/** x * 64/63, rounded up: the gas that a caller needs to give `x` to one nested call (EIP-150). */
export const held = (x: bigint): bigint => (x * 64n + 62n) / 63n

/** The selectors of the functions that take an op of this struct. */
export const functions = (struct: string): Omit<Functions, "postOp"> => ({
  handleOps: Keccak.selector(`handleOps(${struct}[],address)`),
  handleAggregatedOps: Keccak.selector(`handleAggregatedOps((${struct}[],address,bytes)[],address)`),
  validateUserOp: Keccak.selector(`validateUserOp(${struct},bytes32,uint256)`),
  validatePaymasterUserOp: Keccak.selector(`validatePaymasterUserOp(${struct},bytes32,uint256)`),
  validateUserOpSignature: Keccak.selector(`validateUserOpSignature(${struct})`),
  aggregateSignatures: Keccak.selector(`aggregateSignatures(${struct}[])`),
  validateSignatures: Keccak.selector(`validateSignatures(${struct}[],bytes)`)
})

/** The userOpHash up to v0.7: keccak256(abi.encode(keccak256(hashed fields), entryPoint, chainId)). */
export const hash: Spec["hash"] = ({ chainId, entryPoint }, fields) => {
  const inner = Words.bytes32(Keccak.hash(Words.encode(fields)))
  return Keccak.hash(Words.encode([inner, Words.address(entryPoint), Words.uint(chainId)]))
}
