import * as Hex from "../evm/Hex.js"
import * as Keccak from "../evm/Keccak.js"
import * as Words from "../evm/Words.js"

const selectors: ReadonlySet<string> = new Set([
  Keccak.selector("FailedOp(uint256,string)"),
  Keccak.selector("FailedOpWithRevert(uint256,string,bytes)")
])

/**
 * Which op of the bundle a reverted `handleOps` blames: the first argument of the EntryPoint's `FailedOp(uint256
 * opIndex, string reason)` and `FailedOpWithRevert`. Null when the revert data name none.
 */
export const opIndex = (revertData: Hex.Hex): number | null => {
  if (!selectors.has(revertData.slice(0, 10)) || revertData.length < 74) return null
  const index = BigInt(`0x${revertData.slice(10, 74)}`)
  return index < 65_536n ? Number(index) : null
}

/** The texts AA10 and AA25 in hex. */
const outdatedCodes = ["0x41413130", "0x41413235"]

/**
 * Whether the op is blamed for what the chain's state had become when it was tried: its wallet exists by now
 * (AA10), or its nonce is not the next one (AA25). A node that is a block behind says so of good ops.
 */
export const isOutdated = (revertData: Hex.Hex): boolean => {
  if (opIndex(revertData) === null) return false
  const reason = Words.readBytes(Words.read(Hex.unsafe(`0x${revertData.slice(10)}`)), 32)
  return outdatedCodes.some((code) => reason.startsWith(code))
}
