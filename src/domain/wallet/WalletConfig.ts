import * as Order from "effect/Order"
import * as Result from "effect/Result"
import * as P256 from "../crypto/P256.js"
import * as Address from "../primitives/Address.js"
import type * as Hex from "../primitives/Hex.js"
import * as InvalidValue from "../primitives/InvalidValue.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"
import * as Custody from "./Custody.js"

/** A P-256 public key, 32 bytes a coordinate. */
export type PublicKey = P256.PublicKey

/** Validators of a wallet, as the wallet stores them: Solidity's `struct Config`. */
export interface WalletConfig {
  readonly custody: Custody.Stored
  /** Number of distinct validators that must sign, uint8; 1 for custody 1, 2 and 5. */
  readonly threshold: number
  /** secp256k1 signers, strictly ascending. Exactly one for custody 1 and 2, none for 5. */
  readonly owners: ReadonlyArray<Address.Address>
  /** Strictly ascending by (x, y). None for custody 1 and 3. */
  readonly passkeys: ReadonlyArray<PublicKey>
}

/**
 * The configuration of custody 1.
 *
 * @example WalletConfig.ecdsa(Address.zero)
 * // { custody: 1, threshold: 1, owners: [Address.zero], passkeys: [] }
 */
export const ecdsa = (owner: Address.Address): WalletConfig => ({
  custody: 1,
  threshold: 1,
  owners: [owner],
  passkeys: []
})

/** Most owners, and most passkeys, of one wallet. */
export const most = 16

/**
 * Number of owners and passkeys together.
 *
 * @example WalletConfig.validators(WalletConfig.ecdsa(Address.zero))
 * // 1
 */
export const validators = ({ owners, passkeys }: WalletConfig): number => owners.length + passkeys.length

/** The invalid field of a request for a configuration, and why. */
export interface Problem {
  readonly field: "signers" | "passkeyPubKey" | "threshold"
  readonly message: string
}

/** Validators as a caller names them, in any order. */
export interface Named {
  readonly custody: Custody.Stored
  readonly owners: ReadonlyArray<Address.Address>
  readonly passkeys: ReadonlyArray<PublicKey>
  readonly threshold: number
}

const counted = (
  field: Problem["field"],
  what: string,
  [least, limit]: readonly [number, number],
  count: number
): Result.Result<void, Problem> => {
  if (count >= least && count <= limit) return Result.void
  const expected =
    limit === 0 ? `no ${what}` : least === limit ? `one ${what}` : `${least} to ${limit} ${what}s`
  return Result.fail({ field, message: `expected ${expected}, but there are ${count}` })
}

/** Ascending by these keys; `Failure` is an element that occurs twice. */
const ascending = <A>(
  items: ReadonlyArray<A>,
  key: (item: A) => string
): Result.Result<ReadonlyArray<A>, A> => {
  const sorted = items.toSorted(Order.mapInput(Order.String, key))
  const twice = sorted.find((item, index) => index > 0 && key(item) === key(sorted[index - 1] ?? item))
  return twice === undefined ? Result.succeed(sorted) : Result.fail(twice)
}

/**
 * The configuration of these validators, its lists in their order, by the rules that wallets enforce. The custody sets
 * the numbers of owners and passkeys. No zero address, no point off the curve, no duplicate. The threshold can be met.
 *
 * @example Result.getOrThrow(Result.flip(WalletConfig.make({ custody: 3, owners: [], passkeys: [], threshold: 1 }))).field
 * // "signers"
 */
export const make = ({ custody, owners, passkeys, threshold }: Named): Result.Result<WalletConfig, Problem> =>
  Result.gen(function* () {
    const single = Custody.ownerIsSigner(custody)
    yield* counted("signers", "signer", single ? [1, 1] : custody === 5 ? [0, 0] : [1, most], owners.length)
    yield* counted(
      "passkeyPubKey",
      "passkey",
      Custody.usesPasskeys(custody) ? [1, most] : [0, 0],
      passkeys.length
    )
    if (owners.includes(Address.zero))
      yield* Result.fail<Problem>({ field: "signers", message: "the zero address cannot sign" })
    if (!passkeys.every(P256.isPublicKey))
      yield* Result.fail<Problem>({ field: "passkeyPubKey", message: "expected points of the curve P-256" })
    const inOrder = {
      owners: yield* Result.mapError(
        ascending(owners, (owner) => owner.toLowerCase()),
        (owner): Problem => ({ field: "signers", message: `${owner} is named twice` })
      ),
      passkeys: yield* Result.mapError(
        ascending(passkeys, ({ x, y }) => x + y),
        ({ x, y }): Problem => ({ field: "passkeyPubKey", message: `the key (${x}, ${y}) is named twice` })
      )
    }
    const highest = Custody.usesSigners(custody) ? owners.length + passkeys.length : 1
    if (!(Number.isInteger(threshold) && threshold >= 1 && threshold <= highest))
      yield* Result.fail<Problem>({
        field: "threshold",
        message: Custody.usesSigners(custody)
          ? `expected 1 to ${highest}, the number of validators`
          : `expected 1, which custody ${custody} has always`
      })
    return { custody, threshold, ...inOrder }
  })

/** An integer of at most 255, or 0, a threshold that no wallet accepts. */
const thresholdOf = (value: number): bigint =>
  Number.isInteger(value) && value > 0 && value < 256 ? BigInt(value) : 0n

/**
 * The struct inside a tuple: (uint8 custody, uint8 threshold, address[] owners, (bytes32 x, bytes32 y)[] passkeys).
 *
 * @example WalletConfig.part(WalletConfig.ecdsa(Address.zero)).tail.length / 64
 * // 7
 */
export const part = (config: WalletConfig): Words.Part =>
  Words.dynamic([
    Words.uint(BigInt(config.custody)),
    Words.uint(thresholdOf(config.threshold)),
    Words.array(config.owners.map(Words.address)),
    Words.array(config.passkeys.map(({ x, y }) => Words.bytes32(x) + Words.bytes32(y)))
  ])

/**
 * Solidity's `abi.encode(config)`. A threshold outside uint8 is encoded as 0, which no wallet accepts.
 *
 * @example Hex.size(WalletConfig.encode(WalletConfig.ecdsa(Address.zero)))
 * // 256
 */
export const encode = (config: WalletConfig): Hex.Hex => Words.encode([part(config)])

/**
 * keccak256(abi.encode(config)): identifies a configuration; a deployment authorises it.
 *
 * @example WalletConfig.configHash(WalletConfig.ecdsa(Address.unsafe("0xa74c4740782ba52ff7f8dc3511c73e6054067c67")))
 * // "0x0756ab135734cc6b58093182c1f93d1c8171ca7fd8bce2390dddd2c0cfc75e82"
 */
export const configHash = (config: WalletConfig): Hex.Bytes32 => Keccak.hash(encode(config))

/**
 * The struct at the cursor, unchecked: encoding it again shows whether it was one.
 *
 * @example WalletConfig.read({ digits: WalletConfig.encode(WalletConfig.ecdsa(Address.zero)).slice(2), start: 32 })
 * // Result.succeed(WalletConfig.ecdsa(Address.zero))
 */
export const read = (cursor: Words.Cursor): Result.Result<WalletConfig, string> => {
  const owners = Words.readArray(cursor, 64)
  const passkeys = Words.readArray(cursor, 96)
  if (owners.count > most || passkeys.count > most)
    return Result.fail(`expected at most ${most} owners and passkeys each`)
  return Result.map(InvalidValue.toText(Custody.ofWallet(Number(Words.readUint(cursor, 0)))), (custody) => ({
    custody,
    threshold: Number(Words.readUint(cursor, 32)),
    owners: Array.from({ length: owners.count }, (_, index) =>
      Words.readAddress(owners.elements, index * 32)
    ),
    passkeys: Array.from({ length: passkeys.count }, (_, index) => ({
      x: Words.readBytes32(passkeys.elements, index * 64),
      y: Words.readBytes32(passkeys.elements, index * 64 + 32)
    }))
  }))
}

/** Result of a wallet's `configuration()`. */
export interface Configuration {
  readonly config: WalletConfig
  /** Number of configurations installed so far, uint64. */
  readonly configNonce: bigint
}

/**
 * Number of configurations before this one: the epoch in the nonces of its ops.
 *
 * @example WalletConfig.epochOf({ configNonce: 2n })
 * // 1n
 */
export const epochOf = ({ configNonce }: Pick<Configuration, "configNonce">): bigint =>
  configNonce === 0n ? 0n : configNonce - 1n

/**
 * The return data of `configuration() returns (Config config, uint64 configNonce)`. `Failure` when it is nothing else.
 *
 * @example Result.getOrThrow(Result.flip(WalletConfig.decode(Hex.empty)))
 * // "invalid wallet custody type"
 */
export const decode = (returnData: Hex.Hex): Result.Result<Configuration, string> => {
  const cursor = Words.read(returnData)
  const configNonce = Words.readUint(cursor, 32)
  return Result.flatMap(read(Words.readTail(cursor, 0)), (config) =>
    Words.encode([part(config), Words.uint(configNonce, 64)]) === returnData
      ? Result.succeed({ config, configNonce })
      : Result.fail("expected abi.encode(Config config, uint64 configNonce)")
  )
}
