import * as Data from "effect/Data"
import * as Either from "effect/Either"
import { Interface, type Result } from "ethers/abi"
import * as Address from "../evm/Address.js"
import * as Hex from "../evm/Hex.js"
import * as EntryPoint from "./EntryPoint.js"
import { gasLensRuntime } from "./GasLens.generated.js"

/**
 * Codec of the gas lens (`contracts/src/lens/GasLens.sol`): a contract that stands over the EntryPoint in one
 * `eth_call` with a state override, runs a list of ERC-4337 ops as `handleOps` would and measures them.
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
  /** Wei. What the EntryPoint would demand of deposit and balance for this op. */
  readonly requiredPrefund: bigint
  /** Gas for creation and validation together: generous to measure, the declared limit to re-simulate. */
  readonly verificationGas: bigint
  /** Gas for the call: generous to measure, the declared limit to re-simulate. */
  readonly callGas: bigint
}

/** What one `eth_call` is to find out. */
export interface Request {
  readonly entryPoint: Address.Address
  /** In the order of the bundle: all are validated first, then all are executed. May be empty. */
  readonly probes: ReadonlyArray<Probe>
  /** Wallets whose state before the probes is reported; repeats are allowed and answered each. */
  readonly wallets: ReadonlyArray<Address.Address>
  /** uint192 nonce keys whose sequences are reported for each wallet; absent: `defaultNonceKeys`. */
  readonly nonceKeys?: ReadonlyArray<bigint>
  /** A beacon whose implementation is reported; absent: none. */
  readonly beacon?: Address.Address
}

/** Keys 0 to 15. */
export const defaultNonceKeys: ReadonlyArray<bigint> = Array.from({ length: 16 }, (_, key) => BigInt(key))

/**
 * Where an op stopped. `ok`: it ran to its end. `creation`, `validation`, `call`: that frame reverted, `data` is
 * its own revert data (or a `FailedOp(index, "AAxx ...")` where the EntryPoint itself would refuse). `prefund`:
 * the wallet did not pay what was demanded. `starved`: the `eth_call` had too little gas left to give the op's
 * frames what the probe grants; says nothing about the op: ask again with fewer probes or less gas each.
 */
export type Stage = "ok" | "creation" | "validation" | "prefund" | "call" | "starved"

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
  /** As the wallet returned it (ERC-4337): see `parseValidationData`. */
  readonly validationData: bigint
  /** Wei that deposit and balance together lack of `requiredPrefund`; the wallet was asked for what it has. */
  readonly shortfall: bigint
  /** Return data of the call when `ok`, else the revert data; cut at 16 KiB (less when there are more than 32 probes). */
  readonly data: Hex.Hex
}

/** A wallet before the probes. */
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

const abi = new Interface([
  `function measure(
    (address sender, uint256 nonce, bytes initCode, bytes validateCall, bytes callData, uint256 requiredPrefund, uint256 verificationGas, uint256 callGas)[] probes,
    address[] wallets, uint192[] keys, address beacon, address creator
  ) returns (
    (uint256 chainId, uint256 number, uint256 timestamp, uint256 baseFee, uint256 gasLimit, address implementation, bytes32 implementationHash) chain,
    (uint256 deposit, uint256 balance, bytes32 codeHash, uint64[] sequences)[] states,
    (uint8 stage, bool nonceAccepted, bool coldValidation, bool coldCall, uint256 creationGas, uint256 validationGas, uint256 bookkeepingGas, uint256 callGas, uint256 validationData, uint256 shortfall, bytes data)[] measures
  )`
])

const attempt = <A>(what: string, body: () => A): Either.Either<A, GasLensError> =>
  Either.try({
    try: body,
    catch: (cause) =>
      new GasLensError({ reason: `${what}: ${cause instanceof Error ? cause.message : String(cause)}` })
  })

/**
 * Calldata of the `eth_call` to the EntryPoint. `Left` for a number out of its range or text that is no hex. The call
 * comes from the EOA that will submit (tx.origin). It wants gas: beside what all ops really use, twice when there are
 * several, what one probe grants (verificationGas twice if it creates) and 100,000 + 30,000 per probe must be left.
 */
export const encodeCall = (request: Request): Either.Either<Hex.Hex, GasLensError> =>
  attempt("not a request that the lens can take", () =>
    Hex.unsafe(
      abi.encodeFunctionData("measure", [
        request.probes,
        request.wallets,
        request.nonceKeys ?? defaultNonceKeys,
        request.beacon ?? Address.zero,
        EntryPoint.senderCreator(request.entryPoint)
      ])
    )
  )

const stages: ReadonlyArray<Stage> = ["ok", "creation", "validation", "prefund", "call", "starved"]

/** keccak256 of no bytes: the EXTCODEHASH of an account that has no code. */
const emptyCodeHash = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
const noCodeHash = `0x${"0".repeat(64)}`

const toMeasure = (row: Result): Measure => {
  const stage = stages[Number(row.stage)]
  if (stage === undefined) throw new Error(`unknown stage ${row.stage}`)
  return {
    stage,
    nonceAccepted: row.nonceAccepted,
    coldValidation: row.coldValidation,
    coldCall: row.coldCall,
    creationGas: row.creationGas,
    validationGas: row.validationGas,
    bookkeepingGas: row.bookkeepingGas,
    callGas: row.callGas,
    validationData: row.validationData,
    shortfall: row.shortfall,
    data: Hex.unsafe(row.data)
  }
}

const toWalletState = (row: Result): WalletState => ({
  deposit: row.deposit,
  balance: row.balance,
  deployed: row.codeHash !== emptyCodeHash && row.codeHash !== noCodeHash,
  codeHash: Hex.unsafe32(row.codeHash),
  sequences: [...row.sequences]
})

/** The answer of the `eth_call`. `Left` when it is none of the lens: empty, cut, or what the real EntryPoint says. */
export const decodeResult = (result: string): Either.Either<Report, GasLensError> =>
  attempt("not an answer of the gas lens", () => {
    const [chain, states, measures] = abi.decodeFunctionResult("measure", result)
    return {
      chainId: chain.chainId,
      block: {
        number: chain.number,
        timestamp: chain.timestamp,
        baseFee: chain.baseFee,
        gasLimit: chain.gasLimit
      },
      implementation:
        chain.implementation === Address.zero
          ? null
          : {
              address: Address.unsafe(chain.implementation),
              codeHash: Hex.unsafe32(chain.implementationHash)
            },
      wallets: states.map(toWalletState),
      measures: measures.map(toMeasure)
    }
  })

/** EIP-1167: a contract of 45 bytes that runs the code of `target`. */
const delegateTo = (target: Address.Address): Hex.Hex =>
  Hex.unsafe(`0x363d3d373d3d3d363d73${target.slice(2)}5af43d82803e903d91602b57fd5bf3`)

/** One account in the third parameter of `eth_call`. */
export interface AccountOverride {
  /** 0x quantity, wei. */
  readonly balance?: string
  readonly code?: Hex.Hex
  /** 32-byte slot to 32-byte word, both 0x hex. */
  readonly stateDiff?: Readonly<Record<string, string>>
}

/**
 * The third parameter of the `eth_call`. `entryPointCode` is the EntryPoint's real runtime code (`eth_getCode`);
 * `extra` is merged per address of any case (a balance for the estimate, the slot of a factory's deployer) and
 * cannot replace code.
 */
export const overrides = (options: {
  readonly entryPoint: Address.Address
  readonly entryPointCode: Hex.Hex
  readonly extra?: Readonly<Record<string, Omit<AccountOverride, "code">>>
}): Readonly<Record<string, AccountOverride>> => {
  const accounts = new Map<string, AccountOverride>([
    [options.entryPoint.toLowerCase(), { code: Hex.unsafe(gasLensRuntime) }],
    [EntryPoint.senderCreator(options.entryPoint).toLowerCase(), { code: delegateTo(options.entryPoint) }],
    [spare.toLowerCase(), { code: options.entryPointCode }]
  ])
  for (const [address, { balance, stateDiff }] of Object.entries(options.extra ?? {})) {
    const known = accounts.get(address.toLowerCase())
    accounts.set(address.toLowerCase(), {
      ...known,
      ...(balance !== undefined && { balance }),
      ...(stateDiff !== undefined && { stateDiff: { ...known?.stateDiff, ...stateDiff } })
    })
  }
  return Object.fromEntries(accounts)
}
