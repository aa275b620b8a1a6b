import type { Hex } from "../evm/Hex.js"
import * as Keccak from "../evm/Keccak.js"

const selectors: ReadonlySet<string> = new Set([
  Keccak.selector("FailedOp(uint256,string)"),
  Keccak.selector("FailedOpWithRevert(uint256,string,bytes)")
])

/**
 * Which op of the bundle a reverted `handleOps` blames: the first argument of the EntryPoint's `FailedOp(uint256
 * opIndex, string reason)` and `FailedOpWithRevert`. Null when the revert data name none.
 */
export const opIndex = (revertData: Hex): number | null => {
  if (!selectors.has(revertData.slice(0, 10)) || revertData.length < 74) return null
  const index = BigInt(`0x${revertData.slice(10, 74)}`)
  return index < 65_536n ? Number(index) : null
}
