import * as Data from "effect/Data"
import * as Result from "effect/Result"
import * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Words from "../../primitives/Words.js"
import * as EntryPoint from "../EntryPoint.js"

/**
 * Codec of `contracts/src/lens/GasLens.sol`, which replaces the EntryPoint in one `eth_call` and measures ops.
 */

/** One op to measure, with its own fields; the two gas figures are the limits of its frames. */
export interface Probe {
  readonly sender: Address.Address
  /** uint256: nonce key << 64 | sequence. */
  readonly nonce: bigint
  /** Empty when the wallet is deployed; otherwise factory ++ calldata. */
  readonly initCode: Hex.Hex
  /** Whole calldata of this version's `validateUserOp(op, userOpHash, missingAccountFunds)`; the lens writes the third word. */
  readonly validateCall: Hex.Hex
  /** Calldata of the EntryPoint's call to the wallet; may be empty. */
  readonly callData: Hex.Hex
  /** Wei that the EntryPoint would demand: of the wallet's deposit and balance, or of the paymaster's deposit. */
  readonly requiredPrefund: bigint
  /**
   * Gas for creation and validation together: generous to measure, the declared limit to re-simulate. On v0.6 the
   * paymaster's validation has the rest of it, and its postOp the whole amount again.
   */
  readonly verificationGas: bigint
  /** Gas for the call: generous to measure, the declared limit to re-simulate. */
  readonly callGas: bigint
  /** Null: the wallet pays. */
  readonly paymaster: PaymasterProbe | null
}

/** The paymaster of an op to measure. Its data are in `validateCall`. */
export interface PaymasterProbe {
  readonly address: Address.Address
  /** Gas for its validation: generous to measure, the declared limit to re-simulate. Without meaning on v0.6. */
  readonly validationGas: bigint
  /** Gas for its postOp, in the same way. */
  readonly postOpGas: bigint
  /** Wei per gas unit; postOp gets the op's cost at this price. At most a uint128. */
  readonly feePerGas: bigint
}

/** The query of one `eth_call`. */
export interface Request {
  readonly entryPoint: Address.Address
  /** In the order of the bundle: all are validated first, then all are executed. May be empty. */
  readonly probes: ReadonlyArray<Probe>
  /** Wallets and paymasters whose state before the probes is reported; repeats are allowed. */
  readonly wallets: ReadonlyArray<Address.Address>
  /** uint192 nonce keys whose sequences are reported for each wallet; absent: `defaultNonceKeys`. */
  readonly nonceKeys?: ReadonlyArray<bigint>
  /** A beacon whose implementation is reported; absent: none. */
  readonly beacon?: Address.Address
  /** The probes grant final limits, and everything is tried once with them. Absent: the least limits are searched. */
  readonly declared?: boolean
}

/** The parts of a request that bound the size of its answer. */
export type Asked = Pick<Request, "nonceKeys" | "probes" | "wallets">

/** Keys 0 to 15. */
export const defaultNonceKeys: ReadonlyArray<bigint> = Array.from({ length: 16 }, (_, key) => BigInt(key))

/**
 * The stage that ended an op. `ok`: it ran to its end. `creation`, `validation`, `call`: that frame reverted, `data` is
 * its own revert data (or a `FailedOp(index, "AAxx ...")` where the EntryPoint itself would refuse). `prefund`:
 * the wallet did not pay what was demanded. `starved`: the `eth_call` had too little gas left to give the op's
 * frames what the probe grants; says nothing about the op: ask again with fewer probes or less gas each. `paymaster`:
 * the paymaster's validation reverted, or the EntryPoint would refuse its answer; `postOp`: its postOp reverted, and the
 * call is undone with it.
 */
export type Stage = "ok" | "creation" | "validation" | "prefund" | "call" | "starved" | "paymaster" | "postOp"

/** Result of one probe. Gas figures are those of the frames as the EntryPoint calls them. */
export interface Measure {
  readonly stage: Stage
  /** False when the EntryPoint would refuse the nonce (AA25), given the earlier probes; the op is measured anyway. */
  readonly nonceAccepted: boolean
  /**
   * True when creation and validation were also measured with no storage warmed by the other ops, so that the
   * figures hold for the op by itself. False when it could not run by itself (an earlier op creates its wallet), or
   * the `eth_call` had too little gas for that: the op may then need more, which `Gas` allows for.
   */
  readonly coldValidation: boolean
  /** Likewise for the call: also false when it succeeds only behind its predecessors. */
  readonly coldCall: boolean
  readonly creationGas: bigint
  readonly validationGas: bigint
  /** The EntryPoint's reads and writes around the validation: the wallet's deposit and nonce. */
  readonly bookkeepingGas: bigint
  readonly callGas: bigint
  /** The paymaster's validation, and the charging of its deposit; 0 without one. */
  readonly paymasterGas: bigint
  /** 0 when there is no paymaster, or it wants no postOp. */
  readonly postOpGas: bigint
  /**
   * The least gas found with which the call behaves as with the probe's grant: it succeeds, returns the same and uses as
   * much. At most one part in 64 above the true least. Where limits are declared: the probe's grant.
   */
  readonly callLimit: bigint
  /** Likewise for the paymaster's validation, including the charge to its deposit; 0 without one. */
  readonly paymasterLimit: bigint
  /** Likewise for its postOp; 0 without one. */
  readonly postOpLimit: bigint
  /** As the wallet returned it (ERC-4337): see `parseValidationData`. */
  readonly validationData: bigint
  /** As the paymaster returned it. */
  readonly paymasterData: bigint
  /**
   * Wei of `requiredPrefund` missing in the wallet's deposit and balance, or in the paymaster's deposit. The measure
   * charges the available part.
   */
  readonly shortfall: bigint
  /** Return data of the call when `ok`, otherwise the revert data; cut at 16 KiB (less for more than 32 probes). */
  readonly data: Hex.Hex
}

/** A wallet, or a paymaster, before the probes. */
export interface WalletState {
  /** Wei at the EntryPoint. */
  readonly deposit: bigint
  /** The account's own wei. */
  readonly balance: bigint
  readonly deployed: boolean
  /** EXTCODEHASH. */
  readonly codeHash: Hex.Bytes32
  /** uint64 each, aligned with the request's nonce keys. */
  readonly sequences: ReadonlyArray<bigint>
}

/** The answer of the `eth_call`. */
export interface Report {
  readonly chainId: bigint
  /** The block environment of the call. Nodes may give `baseFee` 0 to a call without a gas price. */
  readonly block: {
    readonly number: bigint
    readonly timestamp: bigint
    readonly baseFee: bigint
    readonly gasLimit: bigint
  }
  /** Null if not requested, or when the address does not answer `implementation()`. */
  readonly implementation: { readonly address: Address.Address; readonly codeHash: Hex.Bytes32 } | null
  /** Aligned with `wallets`. */
  readonly wallets: ReadonlyArray<WalletState>
  /** Aligned with `probes`. */
  readonly measures: ReadonlyArray<Measure>
}

/** A value that the lens cannot take, or an answer not from the lens (a node without state overrides, for example). */
export class GasLensError extends Data.TaggedError("GasLensError")<{ readonly reason: string }> {}

/** Seconds; `validUntil` 0: forever. `authorizer`: zero = signature good, one = signature failed, otherwise an aggregator. */
export interface ValidationData {
  readonly authorizer: Address.Address
  readonly validUntil: bigint
  readonly validAfter: bigint
}

/** ERC-4337's packed validationData: authorizer (20 bytes, lowest), validUntil (6), validAfter (6). */
export const parseValidationData = (packed: bigint): ValidationData => ({
  authorizer: Address.unsafe(`0x${(packed & ((1n << 160n) - 1n)).toString(16).padStart(40, "0")}`),
  validUntil: (packed >> 160n) & 0xffff_ffff_ffffn,
  validAfter: (packed >> 208n) & 0xffff_ffff_ffffn
})

/** Address of the EntryPoint's real code during the call: the last 20 bytes of keccak256("castellan.lens.entrypoint"). */
export const spare: Address.Address = Address.unsafe("0xFc2FE12c3c1D4992B9A045435810e7ADE94FCaF7")

const selector = Keccak.selector(
  "measure((address,uint256,bytes,bytes,bytes,uint256,uint256,uint256,address,uint256,uint256,uint256)[],address[],uint192[],address,address,bool)"
)

const isUint = (value: bigint, bits: number): boolean => BigInt.asUintN(bits, value) === value

/** The lens's objection to a probe; null: none. */
const unfitOf = ({ callData, initCode, paymaster, validateCall, ...probe }: Probe): string | null => {
  const uints = [
    probe.nonce,
    probe.requiredPrefund,
    probe.verificationGas,
    probe.callGas,
    ...(paymaster === null ? [] : [paymaster.validationGas, paymaster.postOpGas, paymaster.feePerGas])
  ]
  if (!uints.every((value) => isUint(value, 256))) return "a figure is not a uint256"
  return [callData, initCode, validateCall].every(Hex.is) ? null : "bytes are not hex"
}

const probePart = ({ paymaster, ...probe }: Probe): Words.Part =>
  Words.dynamic([
    Words.address(probe.sender),
    Words.uint(probe.nonce),
    Words.bytes(probe.initCode),
    Words.bytes(probe.validateCall),
    Words.bytes(probe.callData),
    Words.uint(probe.requiredPrefund),
    Words.uint(probe.verificationGas),
    Words.uint(probe.callGas),
    Words.address(paymaster?.address ?? Address.zero),
    Words.uint(paymaster?.validationGas ?? 0n),
    Words.uint(paymaster?.postOpGas ?? 0n),
    Words.uint(paymaster?.feePerGas ?? 0n)
  ])

/**
 * Calldata of the `eth_call` to the EntryPoint. `Failure` for a number out of its range or malformed hex. The call comes
 * from the EOA that will submit (tx.origin). Its gas must cover all ops and their calls twice, and all of that again for
 * several ops. One probe's grant (verificationGas twice if it creates, the paymaster's two) and 100,000 + 30,000 per
 * probe must be left.
 */
export const encodeCall = (request: Request): Result.Result<Hex.Hex, GasLensError> => {
  const keys = request.nonceKeys ?? defaultNonceKeys
  const unfit = keys.every((key) => isUint(key, 192))
    ? request.probes.map(unfitOf).find((why) => why !== null)
    : "a nonce key is not a uint192"
  if (unfit != null)
    return Result.fail(new GasLensError({ reason: `not a request that the lens can take: ${unfit}` }))
  return Result.succeed(
    Words.call(selector, [
      Words.array(request.probes.map(probePart)),
      Words.array(request.wallets.map(Words.address)),
      Words.array(keys.map((key) => Words.uint(key, 192))),
      Words.address(request.beacon ?? Address.zero),
      Words.address(EntryPoint.senderCreator(request.entryPoint)),
      Words.bool(request.declared ?? false)
    ])
  )
}

const stages: ReadonlyArray<Stage> = [
  "ok",
  "creation",
  "validation",
  "prefund",
  "call",
  "starved",
  "paymaster",
  "postOp"
]

/** keccak256 of no bytes: the EXTCODEHASH of an account that has no code. */
const emptyCodeHash = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
const noCodeHash = `0x${"0".repeat(64)}`

// measure(...) returns (Chain chain, WalletState[] states, Measure[] measures): the heads' words in order, and byte offsets.
const chainFigures = ["chainId", "number", "timestamp", "baseFee", "gasLimit"] as const
const implementationAt = 160
const statesAt = 224
const measuresAt = 256
const sequencesAt = 96
const flags = ["nonceAccepted", "coldValidation", "coldCall"] as const
const figures = [
  "creationGas",
  "validationGas",
  "bookkeepingGas",
  "callGas",
  "paymasterGas",
  "postOpGas",
  "callLimit",
  "paymasterLimit",
  "postOpLimit",
  "validationData",
  "paymasterData",
  "shortfall"
] as const
const dataAt = 32 * (1 + flags.length + figures.length)

const named = <Name extends string, A>(names: ReadonlyArray<Name>, one: (place: number) => A) =>
  Object.fromEntries(names.map((name, place) => [name, one(place)])) as Record<Name, A>

const rowsOf = (answer: Words.Cursor, at: number): ReadonlyArray<Words.Cursor> => {
  const { count, elements } = Words.readArray(answer, at)
  return Array.from({ length: count }, (_, row) => Words.readTail(elements, 32 * row))
}

/** Whether the answer exceeds the request or the data: offsets that lead to the same bytes make much of little. */
const exceeds = (answer: Words.Cursor, { nonceKeys = defaultNonceKeys, probes, wallets }: Asked): boolean => {
  if (Words.readArray(answer, statesAt).count > wallets.length) return true
  if (Words.readArray(answer, measuresAt).count > probes.length) return true
  const most = nonceKeys.length
  if (rowsOf(answer, statesAt).some((row) => Words.readArray(row, sequencesAt).count > most)) return true
  let left = BigInt(answer.digits.length / 2)
  for (const row of rowsOf(answer, measuresAt)) {
    left -= BigInt(dataAt) + 96n + Words.readUint(Words.readTail(row, dataAt), 0)
    if (left < 0n) return true
  }
  return false
}

const readState = (row: Words.Cursor): WalletState => {
  const codeHash = Words.readBytes32(row, 64)
  const { count, elements } = Words.readArray(row, sequencesAt)
  return {
    deposit: Words.readUint(row, 0),
    balance: Words.readUint(row, 32),
    deployed: codeHash !== emptyCodeHash && codeHash !== noCodeHash,
    codeHash,
    sequences: Array.from({ length: count }, (_, key) => Words.readUint(elements, 32 * key))
  }
}

const writeState = (state: WalletState): Words.Part =>
  Words.dynamic([
    Words.uint(state.deposit),
    Words.uint(state.balance),
    Words.bytes32(state.codeHash),
    Words.array(state.sequences.map((sequence) => Words.uint(sequence, 64)))
  ])

const readMeasure = (row: Words.Cursor): Measure | null => {
  const stage = stages[Number(Words.readUint(row, 0))]
  return stage === undefined
    ? null
    : {
        stage,
        ...named(flags, (place) => Words.readUint(row, 32 * (1 + place)) === 1n),
        ...named(figures, (place) => Words.readUint(row, 32 * (1 + flags.length + place))),
        data: Words.readBytes(row, dataAt)
      }
}

const writeMeasure = (measure: Measure): Words.Part =>
  Words.dynamic([
    Words.uint(BigInt(stages.indexOf(measure.stage))),
    ...flags.map((name) => Words.bool(measure[name])),
    ...figures.map((name) => Words.uint(measure[name])),
    Words.bytes(measure.data)
  ])

/** Shared: creating an error captures its stack, which every answer would pay for. */
const noAnswer = Result.fail(new GasLensError({ reason: "not an answer of the gas lens" }))

/**
 * The answer of the `eth_call`. `Failure` if not from the lens: empty, cut, or from the real EntryPoint. The node may be
 * hostile: the request bounds the work, and only the canonical encoding is taken.
 */
export const decode = (result: string, asked: Asked): Result.Result<Report, GasLensError> => {
  if (!Hex.is(result)) return noAnswer
  const text = Hex.unsafe(result)
  const answer = Words.read(text)
  if (exceeds(answer, asked)) return noAnswer
  const block = named(chainFigures, (place) => Words.readUint(answer, 32 * place))
  const implementation = Words.readAddress(answer, implementationAt)
  const codeHash = Words.readBytes32(answer, implementationAt + 32)
  const wallets = rowsOf(answer, statesAt).map(readState)
  const measures: Array<Measure> = []
  for (const row of rowsOf(answer, measuresAt)) {
    const measure = readMeasure(row)
    if (measure === null) return noAnswer
    measures.push(measure)
  }
  const again = Words.encode([
    ...chainFigures.map((name) => Words.uint(block[name])),
    Words.address(implementation),
    Words.bytes32(codeHash),
    Words.array(wallets.map(writeState)),
    Words.array(measures.map(writeMeasure))
  ])
  if (again !== text) return noAnswer
  const { chainId, ...rest } = block
  return Result.succeed({
    chainId,
    block: rest,
    implementation: implementation === Address.zero ? null : { address: implementation, codeHash },
    wallets,
    measures
  })
}
