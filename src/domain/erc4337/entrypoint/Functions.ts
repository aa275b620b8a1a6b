import * as Keccak from "../../primitives/Keccak.js"
import type { Functions } from "./Spec.js"

/** The selectors of the functions that take an op of this struct. */
export const of = (struct: string): Omit<Functions, "postOp"> => ({
  handleOps: Keccak.selector(`handleOps(${struct}[],address)`),
  handleAggregatedOps: Keccak.selector(`handleAggregatedOps((${struct}[],address,bytes)[],address)`),
  validateUserOp: Keccak.selector(`validateUserOp(${struct},bytes32,uint256)`),
  validatePaymasterUserOp: Keccak.selector(`validatePaymasterUserOp(${struct},bytes32,uint256)`),
  validateUserOpSignature: Keccak.selector(`validateUserOpSignature(${struct})`),
  aggregateSignatures: Keccak.selector(`aggregateSignatures(${struct}[])`),
  validateSignatures: Keccak.selector(`validateSignatures(${struct}[],bytes)`)
})
