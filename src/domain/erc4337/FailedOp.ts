import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"

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

/** ASCII AA10 and AA25 in hex. */
const outdatedCodes = ["0x41413130", "0x41413235"]

/** ASCII AA24 in hex. */
const signatureCode = "0x41413234"

/** The text AA22 in hex. */
const timeCode = "0x41413232"

const reasonIn = (revertData: Hex.Hex): Hex.Hex =>
  opIndex(revertData) === null
    ? Hex.empty
    : Words.readBytes(Words.read(Hex.unsafe(`0x${revertData.slice(10)}`)), 32)

/** Whether the op's wallet refused its signature (AA24). */
export const isSignature = (revertData: Hex.Hex): boolean => reasonIn(revertData).startsWith(signatureCode)

/**
 * Whether the op is blamed for a change of the chain's state: its wallet exists already (AA10), or its nonce is not the
 * next one (AA25). A node that is a block behind reports this for valid ops.
 */
export const isOutdated = (revertData: Hex.Hex): boolean => {
  const reason = reasonIn(revertData)
  return outdatedCodes.some((code) => reason.startsWith(code))
}

/** Whether the op's validity window does not hold at the block on which it was tried (AA22). */
export const isOutOfTime = (revertData: Hex.Hex): boolean => reasonIn(revertData).startsWith(timeCode)
