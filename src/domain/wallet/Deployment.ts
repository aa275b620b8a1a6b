import * as Result from "effect/Result"
import * as Eip712 from "../evm/Eip712.js"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as InvalidValue from "../primitives/InvalidValue.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Uint from "../primitives/Uint.js"
import * as Words from "../primitives/Words.js"
import * as Custody from "./Custody.js"
import * as WalletConfig from "./WalletConfig.js"

/** A wallet to be deployed, and the end of the deployer's authorisation for it. */
export interface Deployment {
  /** keccak256 of the salt's UTF-8 bytes. */
  readonly saltHash: Hex.Bytes32
  readonly custody: Custody.Stored
  /** The address depends only on `saltHash`. */
  readonly legacy: boolean
  readonly config: WalletConfig.WalletConfig
  /** Last Unix second at which the authorisation holds, uint48; factories accept `maxLifeSeconds` ahead at most. */
  readonly deadline: number
}

/** The factory's MAX_AUTHORIZATION_LIFE: it refuses an authorisation that holds for longer. */
export const maxLifeSeconds = 3_600

/** A number outside uint48 is a deadline that has passed. */
const deadlineWord = (deadline: number): string => Words.uint(Uint.isUint48(deadline) ? BigInt(deadline) : 0n)

const typeHash = Keccak.hashText(
  "Deploy(bytes32 saltHash,uint256 custody,bool legacy,bytes32 configHash,uint48 deadline,address bundler)"
)
const domain = Eip712.domain("castellan", "1")

/**
 * The deployer's signing digest for a deployment: EIP-712 of
 * `Deploy(bytes32 saltHash,uint256 custody,bool legacy,bytes32 configHash,uint48 deadline,address bundler)` in the domain
 * ("castellan", "1", chainId, factory). A deadline outside uint48 counts as 0, which has passed. `bundler` is the EOA
 * whose transaction may use the authorisation (tx.origin); zero: any, and the authorisation is marked as unbound.
 */
export const digest = (
  { chainId, factory }: { readonly chainId: bigint; readonly factory: Address.Address },
  deployment: Deployment,
  bundler: Address.Address
): Hex.Bytes32 =>
  Eip712.digest(
    domain(chainId, factory),
    Eip712.hashStruct(typeHash, [
      Words.bytes32(deployment.saltHash),
      Words.uint(BigInt(deployment.custody)),
      Words.bool(deployment.legacy),
      Words.bytes32(WalletConfig.configHash(deployment.config)),
      deadlineWord(deployment.deadline),
      Words.address(bundler)
    ])
  )

/** Behind the signature of an authorisation that names no bundler. */
const unboundMark = Hex.unsafe("0x01")

/** Authorization for `createWallet`: the deployer's r || s || v over the `digest`, and the mark if the bundler is zero. */
export const authorization = (signature: Hex.Hex, bundler: Address.Address): Hex.Hex =>
  bundler === Address.zero ? Hex.concat(signature, unboundMark) : signature

const createWallet = Keccak.selector(
  "createWallet(bytes32,uint256,bool,(uint8,uint8,address[],(bytes32,bytes32)[]),uint48,bytes)"
)

/** Calldata of the factory's `createWallet`. */
export const createWalletCall = (deployment: Deployment, authorization: Hex.Hex): Hex.Hex =>
  Words.call(createWallet, [
    Words.bytes32(deployment.saltHash),
    Words.uint(BigInt(deployment.custody)),
    Words.bool(deployment.legacy),
    WalletConfig.part(deployment.config),
    deadlineWord(deployment.deadline),
    Words.bytes(authorization)
  ])

/** The initCode of the creation op: factory (20 bytes) ++ createWallet calldata. */
export const initCode = (factory: Address.Address, deployment: Deployment, authorization: Hex.Hex): Hex.Hex =>
  Hex.concat(Hex.unsafe(factory), createWalletCall(deployment, authorization))

/** The deployment in an initCode, and its factory. */
export interface Parsed {
  readonly factory: Address.Address
  readonly deployment: Deployment
  readonly authorization: Hex.Hex
}

/** Reads an `initCode` back. Strict: `Failure` unless `initCode` of the result is the same. */
export const parse = (code: Hex.Hex): Result.Result<Parsed, string> => {
  const problem = "expected an initCode of factory ++ createWallet calldata"
  if (Hex.size(code) < 24) return Result.fail(problem)
  const factory = Address.unsafe(code.slice(0, 42))
  const cursor = Words.read(Hex.unsafe(`0x${code.slice(50)}`))
  const authorization = Words.readBytes(cursor, 160)
  return Result.gen(function* () {
    const custody = yield* InvalidValue.toText(Custody.ofWallet(Number(Words.readUint(cursor, 32))))
    const config = yield* WalletConfig.read(Words.readTail(cursor, 96))
    const deployment: Deployment = {
      saltHash: Words.readBytes32(cursor, 0),
      custody,
      legacy: Words.readUint(cursor, 64) !== 0n,
      config,
      deadline: Number(Words.readUint(cursor, 128))
    }
    return initCode(factory, deployment, authorization) === code
      ? { factory, deployment, authorization }
      : yield* Result.fail(problem)
  })
}
