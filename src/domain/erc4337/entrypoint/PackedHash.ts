import * as Keccak from "../../primitives/Keccak.js"
import * as Words from "../../primitives/Words.js"
import type { Spec } from "./Spec.js"

/** The userOpHash up to v0.7: keccak256(abi.encode(keccak256(hashed fields), entryPoint, chainId)). */
export const hash: Spec["hash"] = ({ chainId, entryPoint }, fields) => {
  const inner = Words.bytes32(Keccak.hash(Words.encode(fields)))
  return Keccak.hash(Words.encode([inner, Words.address(entryPoint), Words.uint(chainId)]))
}
