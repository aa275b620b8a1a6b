/**
 * The codes with which the EntryPoints (ERC-4337, reference implementation v0.6 to v0.8) begin the reason of a
 * `FailedOp` or of a plain `Error`: AA1x factory, AA2x wallet, AA3x paymaster, AA4x gas of validation, AA5x
 * postOp, AA9x the bundle itself.
 */
export interface EntryPointReason {
  /** `AA24` */
  readonly code: string
  readonly meaning: string
  /** Remedy for the caller or the operator. */
  readonly remedy: string
}

const table: ReadonlyArray<readonly [code: string, meaning: string, remedy: string]> = [
  [
    "AA10",
    "the wallet of this creation op is already deployed",
    "send the op again without its creation code"
  ],
  [
    "AA13",
    "the factory reverted or ran out of gas",
    "check the deployment's authorisation and configuration, or raise verificationGasLimit"
  ],
  [
    "AA14",
    "the factory created an address other than the op's sender",
    "check salt, custody, factory, beacon and creation code against the predicted address"
  ],
  ["AA15", "the factory left no code at the op's sender", "check the factory and its creation call"],
  ["AA20", "the op's wallet is not deployed", "create the wallet first"],
  [
    "AA21",
    "deposit and balance do not cover the op's highest possible cost",
    "fund the wallet or its EntryPoint deposit, or lower the op's gas limits and fees"
  ],
  [
    "AA22",
    "the op's time window is over or has not begun",
    "sign it again with a window that holds the time of the block"
  ],
  [
    "AA23",
    "the wallet's validation reverted or ran out of gas",
    "check the layout of the signature, or raise verificationGasLimit"
  ],
  [
    "AA24",
    "the wallet does not accept the signature",
    "sign this op's signing hash with the wallet's own keys, for this EntryPoint, chain, window and bundler"
  ],
  [
    "AA25",
    "the op's nonce is used or not yet due",
    "look up the op's outcome first, then sign it again with the wallet's next nonce"
  ],
  ["AA26", "the wallet's validation needs more than verificationGasLimit", "raise verificationGasLimit"],
  ["AA30", "there is no code at the paymaster's address", "check the paymaster's address on this chain"],
  [
    "AA31",
    "the paymaster's EntryPoint deposit does not cover the op",
    "fund the paymaster's deposit, or send the op without a paymaster"
  ],
  ["AA32", "the paymaster's time window is over or has not begun", "ask the paymaster for a new approval"],
  [
    "AA33",
    "the paymaster's validation reverted or ran out of gas",
    "check the paymaster's data and conditions, or raise its verification gas limit"
  ],
  ["AA34", "the paymaster does not accept its signature", "ask the paymaster for a new approval of this op"],
  [
    "AA36",
    "the paymaster's validation needs more than paymasterVerificationGasLimit",
    "raise paymasterVerificationGasLimit"
  ],
  ["AA40", "the validation needs more than verificationGasLimit", "raise verificationGasLimit"],
  [
    "AA41",
    "verificationGasLimit leaves nothing for the paymaster's validation",
    "raise verificationGasLimit"
  ],
  ["AA50", "the paymaster's postOp reverted", "check the paymaster, or send the op without it"],
  ["AA51", "the op cost more than was reserved for it", "raise the gas limits, above all preVerificationGas"],
  ["AA90", "the bundle names no beneficiary", "name the address that the fees go to"],
  ["AA91", "the beneficiary refused the fees", "name a beneficiary that can receive native value"],
  ["AA92", "innerHandleOp was called from outside of the EntryPoint", "call handleOps"],
  ["AA93", "paymasterAndData is too short", "begin it with the paymaster's address and its gas limits"],
  ["AA94", "a gas value or fee of the op is too large", "lower the op's gas limits and fees"],
  [
    "AA95",
    "the transaction's gas limit is below what its ops may use",
    "raise the transaction's gas limit or send fewer ops in one bundle"
  ],
  ["AA96", "the aggregator's address is reserved", "name a deployed aggregator, or none"],
  ["AA97", "the SenderCreator was called by another than its EntryPoint", "create wallets with ops only"],
  ["AA98", "the paymaster is the zero address", "name a deployed paymaster, or none"],
  ["AA99", "the op's initCode is shorter than an address", "begin it with the factory's address"]
]

/** Every code with its meaning and remedy, in order. */
export const all: ReadonlyArray<EntryPointReason> = table.map(([code, meaning, remedy]) => ({
  code,
  meaning,
  remedy
}))

const byCode: ReadonlyMap<string, EntryPointReason> = new Map(all.map((entry) => [entry.code, entry]))

/** The entry of the code that begins an EntryPoint's reason; null without a known code. */
export const find = (reason: string): EntryPointReason | null =>
  byCode.get(/^AA[0-9]{2}(?![0-9A-Za-z])/.exec(reason)?.[0] ?? "") ?? null
