import * as Either from "effect/Either"
import type { Address } from "../evm/Address.js"
import type * as Hex from "../evm/Hex.js"
import * as Keccak from "../evm/Keccak.js"
import * as Words from "../evm/Words.js"
import * as Custody from "./Custody.js"

/** A P-256 public key in affine coordinates. */
export interface PublicKey {
  readonly x: Hex.Bytes32
  readonly y: Hex.Bytes32
}

/** Who may act for a wallet, as the wallet stores it: Solidity's `struct Config`. */
export interface WalletConfig {
  readonly custody: Custody.Stored
  /** How many distinct validators have to sign, uint8; 1 for custody 1, 2 and 5. */
  readonly threshold: number
  /** secp256k1 signers, strictly ascending. Exactly one for custody 1 and 2, none for 5. */
  readonly owners: ReadonlyArray<Address>
  /** Strictly ascending by (x, y). None for custody 1 and 3. */
  readonly passkeys: ReadonlyArray<PublicKey>
}

/** The configuration of custody 1. */
export const ecdsa = (owner: Address): WalletConfig => ({
  custody: 1,
  threshold: 1,
  owners: [owner],
  passkeys: []
})

/** An integer of at most 255, or 0, a threshold that no wallet accepts. */
const threshold = (value: number): bigint =>
  Number.isInteger(value) && value > 0 && value < 256 ? BigInt(value) : 0n

/** The struct inside a tuple: (uint8 custody, uint8 threshold, address[] owners, (bytes32 x, bytes32 y)[] passkeys). */
export const part = (config: WalletConfig): Words.Part =>
  Words.dynamic([
    Words.uint(BigInt(config.custody)),
    Words.uint(threshold(config.threshold)),
    Words.array(config.owners.map(Words.address)),
    Words.array(config.passkeys.map(({ x, y }) => Words.bytes32(x) + Words.bytes32(y)))
  ])

/** Solidity's `abi.encode(config)`. A threshold that is no uint8 is encoded as 0, which no wallet accepts. */
export const encode = (config: WalletConfig): Hex.Hex => Words.encode([part(config)])

/** keccak256(abi.encode(config)): what a deployment authorises, and what tells two configurations apart. */
export const configHash = (config: WalletConfig): Hex.Bytes32 => Keccak.hash(encode(config))

/** The struct that begins at the cursor, as it reads; encoding it once more tells whether it was one. */
export const read = (cursor: Words.Cursor): Either.Either<WalletConfig, string> => {
  const owners = Words.readArray(cursor, 64)
  const passkeys = Words.readArray(cursor, 96)
  return Either.map(Custody.stored(Number(Words.readUint(cursor, 0))), (custody) => ({
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

/** What `configuration()` of a wallet says. */
export interface Configuration {
  readonly config: WalletConfig
  /** How many configurations have been installed so far, uint64. */
  readonly configNonce: bigint
}

/** The return data of `configuration() returns (Config config, uint64 configNonce)`. `Left` when it is nothing else. */
export const decode = (returnData: Hex.Hex): Either.Either<Configuration, string> => {
  const cursor = Words.read(returnData)
  const configNonce = Words.readUint(cursor, 32)
  return Either.flatMap(read(Words.readTail(cursor, 0)), (config) =>
    Words.encode([part(config), Words.uint(configNonce, 64)]) === returnData
      ? Either.right({ config, configNonce })
      : Either.left("expected abi.encode(Config config, uint64 configNonce)")
  )
}
