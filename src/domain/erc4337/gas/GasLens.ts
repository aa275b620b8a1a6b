import * as Data from "effect/Data"
import * as Result from "effect/Result"
import * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Words from "../../primitives/Words.js"
import * as EntryPoint from "../EntryPoint.js"

/**
 * Codec of `contracts/src/lens/GasLens.sol`, which stands over the EntryPoint in one `eth_call` and measures ops.
 */

/** One op to measure. Fields as the op has them; the two gas figures are what its frames are given. */
export interface Probe {
  readonly sender: Address.Address
  /** uint256: nonce key << 64 | sequence. */
  readonly nonce: bigint
  /** Empty when the wallet is deployed; else factory ++ calldata. */
  readonly initCode: Hex.Hex
  /** Whole calldata of this version's `validateUserOp(op, userOpHash, missingAccountFunds)`; the lens writes the third word. */
  readonly validateCall: Hex.Hex
  /** What the EntryPoint calls the wallet with; may be empty. */
  readonly callData: Hex.Hex
  /** Wei. What the EntryPoint would demand for this op: of the wallet's deposit and balance, or of the paymaster's deposit. */
  readonly requiredPrefund: bigint
  /**
   * Gas for creation and validation together: generous to measure, the declared limit to re-simulate. On v0.6 the
   * paymaster's validation has what they leave of it, and its postOp as much once more.
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
  /** Wei per gas unit, with which postOp is told the op's cost; at most a uint128. */
  readonly feePerGas: bigint
}

/** What one `eth_call` is to find out. */
export interface Request {
  readonly entryPoint: Address.Address
  /** In the order of the bundle: all are validated first, then all are executed. May be empty. */
  readonly probes: ReadonlyArray<Probe>
  /** Wallets and paymasters whose state before the probes is reported; repeats are allowed and answered each. */
  readonly wallets: ReadonlyArray<Address.Address>
  /** uint192 nonce keys whose sequences are reported for each wallet; absent: `defaultNonceKeys`. */
  readonly nonceKeys?: ReadonlyArray<bigint>
  /** A beacon whose implementation is reported; absent: none. */
  readonly beacon?: Address.Address
  /** The probes grant final limits, under which everything is tried once. Absent: the least limits are searched. */
  readonly declared?: boolean
}

/** What decides how much an answer may hold. */
export type Asked = Pick<Request, "nonceKeys" | "probes" | "wallets">

/** Keys 0 to 15. */
export const defaultNonceKeys: ReadonlyArray<bigint> = Array.from({ length: 16 }, (_, key) => BigInt(key))

/**
 * Where an op stopped. `ok`: it ran to its end. `creation`, `validation`, `call`: that frame reverted, `data` is
 * its own revert data (or a `FailedOp(index, "AAxx ...")` where the EntryPoint itself would refuse). `prefund`:
 * the wallet did not pay what was demanded. `starved`: the `eth_call` had too little gas left to give the op's
 * frames what the probe grants; says nothing about the op: ask again with fewer probes or less gas each. `paymaster`:
 * the paymaster's validation reverted, or the EntryPoint would refuse its answer; `postOp`: its postOp reverted, and the
 * call is undone with it.
 */
export type Stage = "ok" | "creation" | "validation" | "prefund" | "call" | "starved" | "paymaster" | "postOp"

/** What happened to one probe. Gas figures are those of the frames as the EntryPoint calls them. */
export interface Measure {
  readonly stage: Stage
  /** False when the EntryPoint would refuse the nonce (AA25), given the earlier probes; the op is measured all the same. */
  readonly nonceAccepted: boolean
  /**
   * True when creation and validation were measured with no storage warmed by the other ops too, so that the
   * figures hold for the op alone. False when it could not be run alone (an earlier op creates its wallet), or when
   * the `eth_call` had too little gas for that: sent alone it then needs more, which `Gas` allows for.
   */
  readonly coldValidation: boolean
  /** The same of the call: false as well when it succeeds only behind its predecessors. */
  readonly coldCall: boolean
  readonly creationGas: bigint
  readonly validationGas: bigint
  /** What the EntryPoint reads and writes around the validation: the wallet's deposit and nonce. */
  readonly bookkeepingGas: bigint
  readonly callGas: bigint
  /** The paymaster's validation, and the charging of its deposit; 0 without one. */
  readonly paymasterGas: bigint
  /** 0 when there is no paymaster, or it wants no postOp. */
  readonly postOpGas: bigint
  /**
   * The least gas found with which the call does the same as with what the probe grants: it succeeds, returns the same
   * and uses as much. At most one part in 64 above the true least. What the probe grants where limits are declared.
   */
  readonly callLimit: bigint
  /** The same of the paymaster's validation, the charging of its deposit included; 0 without one. */
  readonly paymasterLimit: bigint
  /** The same of its postOp; 0 without one. */
  readonly postOpLimit: bigint
  /** As the wallet returned it (ERC-4337): see `parseValidationData`. */
  readonly validationData: bigint
  /** As the paymaster returned it. */
  readonly paymasterData: bigint
  /**
   * Wei that deposit and balance together lack of `requiredPrefund`, or the paymaster's deposit alone; who pays was
   * asked for what there is.
   */
  readonly shortfall: bigint
  /** Return data of the call when `ok`, else the revert data; cut at 16 KiB (less when there are more than 32 probes). */
  readonly data: Hex.Hex
}

/** A wallet, or a paymaster, before the probes. */
export interface WalletState {
  /** Wei at the EntryPoint. */
  readonly deposit: bigint
  /** Wei of its own. */
  readonly balance: bigint
  readonly deployed: boolean
  /** EXTCODEHASH. */
  readonly codeHash: Hex.Bytes32
  /** uint64 each, aligned with the request's nonce keys. */
  readonly sequences: ReadonlyArray<bigint>
}

/** What the `eth_call` answered. */
export interface Report {
  readonly chainId: bigint
  /** The block environment of the call. Nodes may give `baseFee` 0 to a call without a gas price. */
  readonly block: {
    readonly number: bigint
    readonly timestamp: bigint
    readonly baseFee: bigint
    readonly gasLimit: bigint
  }
  /** Null when none was asked for, or when the address does not answer `implementation()`. */
  readonly implementation: { readonly address: Address.Address; readonly codeHash: Hex.Bytes32 } | null
  /** Aligned with `wallets`. */
  readonly wallets: ReadonlyArray<WalletState>
  /** Aligned with `probes`. */
  readonly measures: ReadonlyArray<Measure>
}

/** A value that the lens cannot take, or an answer that is none of the lens (a node without state overrides, for example). */
export class GasLensError extends Data.TaggedError("GasLensError")<{ readonly reason: string }> {}

/** Seconds; `validUntil` 0 means for ever. `authorizer`: zero = signature good, one = signature failed, else an aggregator. */
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

/** Where the EntryPoint's real code stands during the call: the last 20 bytes of keccak256("castellan.lens.entrypoint"). */
export const spare: Address.Address = Address.unsafe("0xFc2FE12c3c1D4992B9A045435810e7ADE94FCaF7")

const selector = Keccak.selector(
  "measure((address,uint256,bytes,bytes,bytes,uint256,uint256,uint256,address,uint256,uint256,uint256)[],address[],uint192[],address,address,bool)"
)

const isUint = (value: bigint, bits: number): boolean => BigInt.asUintN(bits, value) === value

/** What the lens cannot take of a probe; null: it takes all. */
const unfitOf = ({ callData, initCode, paymaster, validateCall, ...probe }: Probe): string | null => {
  const uints = [
    probe.nonce,
    probe.requiredPrefund,
    probe.verificationGas,
    probe.callGas,
    ...(paymaster === null ? [] : [paymaster.validationGas, paymaster.postOpGas, paymaster.feePerGas])
  ]
  if (!uints.every((value) => isUint(value, 256))) return "a figure is no uint256"
  return [callData, initCode, validateCall].every(Hex.is) ? null : "bytes are no hex"
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
 * Calldata of the `eth_call` to the EntryPoint. `Failure` for a number out of its range or text that is no hex. The call
 * comes from the EOA that will submit (tx.origin). It wants gas: beside what all ops really use, their calls twice and
 * all of it again when there are several, what one probe grants (verificationGas twice if it creates, the paymaster's two) and 100,000 + 30,000 per probe must be left.
 */
export const encodeCall = (request: Request): Result.Result<Hex.Hex, GasLensError> => {
  const keys = request.nonceKeys ?? defaultNonceKeys
  const unfit = keys.every((key) => isUint(key, 192))
    ? request.probes.map(unfitOf).find((why) => why !== null)
    : "a nonce key is no uint192"
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

/**
 * Whether there is more than was asked for, or more than the data: offsets that lead to the same bytes make much of little.
 */
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

/** One for all: an error takes its stack when it is made, which every answer would pay for. */
const noAnswer = Result.fail(new GasLensError({ reason: "not an answer of the gas lens" }))

/**
 * The answer of the `eth_call`. `Failure` when it is none of the lens: empty, cut, or what the real EntryPoint says. The
 * node may be anybody's: the work is bounded by what was asked for, and only the canonical encoding is taken.
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
