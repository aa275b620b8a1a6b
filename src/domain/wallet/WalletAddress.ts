import type * as Brand from "effect/Brand"
import * as Result from "effect/Result"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import { InvalidValue } from "../primitives/InvalidValue.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"
import type { Stored } from "./Custody.js"
import type * as Salt from "./Salt.js"

/** Creation code of a wallet proxy without constructor arguments: 1 byte to 48 KiB. */
export type CreationCode = Hex.Hex & Brand.Brand<"CreationCode">

/** Most bytes of creation code: the chain's own limit for it (EIP-3860). */
export const maxCreationCode = 49_152

/**
 * Hex text to creation code. `Failure` for text that is not hex, empty, or longer than 48 KiB.
 *
 * @example Result.getOrThrow(WalletAddress.creationCode("0x6000"))
 * // "0x6000"
 */
export const creationCode = (text: string): Result.Result<CreationCode, InvalidValue> => {
  // Before anything that walks over the text.
  if (text.length > 2 + 2 * maxCreationCode)
    return Result.fail(invalid("the creation code is longer than 48 KiB"))
  if (!Hex.is(text))
    return Result.fail(invalid("the creation code is not hex: 0x and an even number of hex digits"))
  if (text === "0x") return Result.fail(invalid("the creation code is empty"))
  return Result.succeed(Hex.unsafe(text) as CreationCode)
}

const invalid = (message: string) => new InvalidValue({ type: "CreationCode", message })

/**
 * The CREATE2 salt of a wallet: keccak256(abi.encode(bytes32 saltHash, uint256 custody)), or the salt's hash itself
 * for a legacy wallet.
 *
 * @example WalletAddress.create2Salt(Salt.hash("alice"), 1, true) === Salt.hash("alice")
 * // true
 */
export const create2Salt = (saltHash: Hex.Bytes32, custody: Stored, legacy: boolean): Hex.Bytes32 =>
  legacy ? saltHash : Keccak.hash(Words.encode([Words.bytes32(saltHash), Words.uint(BigInt(custody))]))

/**
 * What CREATE2 runs: creationCode ++ abi.encode(address beacon, bytes("")), the proxy's constructor arguments.
 *
 * @example Hex.size(WalletAddress.initCode(Hex.unsafe("0x6000"), Address.zero))
 * // 98
 */
export const initCode = (code: CreationCode, beacon: Address.Address): Hex.Hex =>
  Hex.concat(code, Words.encode([Words.address(beacon), Words.bytes(Hex.empty)]))

/**
 * keccak256(initCode), the same for all wallets of a beacon: compute it once per request.
 *
 * @example WalletAddress.initCodeHash(Hex.unsafe("0x6000"), Address.zero)
 * // "0x00a092f39a3feae87e867cf4ffe2545a86f351ad68300febe7a11806ab429376"
 */
export const initCodeHash = (code: CreationCode, beacon: Address.Address): Hex.Bytes32 =>
  Keccak.hash(initCode(code, beacon))

/**
 * The CREATE2 address (EIP-1014): the low 20 bytes of keccak256(0xff ++ factory ++ salt ++ initCodeHash).
 *
 * @example WalletAddress.predict({ factory: Address.zero, initCodeHash: Salt.hash("alice"), create2Salt: Salt.hash("alice") })
 * // "0x70b2b7b3620b08B9C702725eA700C141Bc9A63e1"
 */
export const predict = (from: {
  readonly factory: Address.Address
  readonly initCodeHash: Hex.Bytes32
  readonly create2Salt: Hex.Bytes32
}): Address.Address =>
  Address.fromAnyWord(
    Keccak.hash(Hex.concat(Hex.unsafe("0xff"), Hex.unsafe(from.factory), from.create2Salt, from.initCodeHash))
  )

/**
 * The addresses of salts and custodies under one factory and init code.
 *
 * @example WalletAddress.predictor({ factory: Address.zero, initCodeHash: Salt.hash("alice") })("alice", 1, false)
 * // "0x43B4ccA1a15c23495caEdAbc82aC496679414AFC"
 */
export const predictor =
  (from: { readonly factory: Address.Address; readonly initCodeHash: Hex.Bytes32 }) =>
  (salt: Salt.Salt, custody: Stored, legacy: boolean): Address.Address =>
    predict({ ...from, create2Salt: create2Salt(Keccak.hashText(salt), custody, legacy) })
