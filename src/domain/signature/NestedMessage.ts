import * as Eip712 from "../evm/Eip712.js"
import type { Address } from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"
import type * as TypedData from "./typed/TypedData.js"
import * as WebAuthn from "./WebAuthn.js"

/**
 * ERC-7739: messages nested under the wallet's own EIP-712 domain, as wallets verify them in ERC-1271.
 *
 * Gotchas: a wallet's domain changes with every rotation. Signatures of the domain before are worthless.
 */

/** The wallet's `eip712Domain()` (ERC-5267). */
export interface Domain {
  readonly name: string
  readonly version: string
  readonly chainId: bigint
  readonly wallet: Address
}

/** The domain of a wallet under its first configuration, which it has before it is deployed. */
export const first = (chainId: bigint, wallet: Address): Domain => ({
  name: "castellan",
  version: "1",
  chainId,
  wallet
})

/** Calldata of `eip712Domain()`. */
export const domainCall: Hex.Hex = Keccak.selector("eip712Domain()")

/** Name, version, chain id and verifying contract are used; salt and extensions are not. */
const fieldsUsed = "0f".padEnd(64, "0")

const encodeDomain = ({ chainId, name, version, wallet }: Domain): Hex.Hex =>
  Words.encode([
    fieldsUsed,
    Words.bytes(Hex.fromText(name)),
    Words.bytes(Hex.fromText(version)),
    Words.uint(chainId),
    Words.address(wallet),
    Words.uint(0n),
    Words.array([])
  ])

/** Reads the return data of `eip712Domain()`. Null unless this wallet on this chain uses exactly the four members. */
export const readDomain = (
  returnData: Hex.Hex,
  { chainId, wallet }: Pick<Domain, "chainId" | "wallet">
): Domain | null => {
  const text = (at: number) => WebAuthn.textOf(Hex.toBytes(Words.readBytes(Words.read(returnData), at)))
  const [name, version] = [text(32), text(64)]
  if (name === null || version === null) return null
  const domain = { name, version, chainId, wallet }
  return encodeDomain(domain) === returnData ? domain : null
}

/** A message as an application knows it, and its nested form under one wallet's domain. */
export interface Nested {
  /** The hash that applications pass to `isValidSignature`. */
  readonly hash: Hex.Bytes32
  /** The hash that the wallet's validators sign. */
  readonly signingHash: Hex.Bytes32
  /** The ERC-1271 signature of a proof over `signingHash`. */
  readonly signature: (proof: Hex.Hex) => Hex.Hex
}

const personalTypeHash = Keccak.hashText("PersonalSign(bytes prefixed)")

/** Nests a personal message; `hash` is its EIP-191 digest. */
export const personal = (hash: Hex.Bytes32, { chainId, name, version, wallet }: Domain): Nested => ({
  hash,
  signingHash: Eip712.digest(
    Eip712.domain(name, version)(chainId, wallet),
    Eip712.hashStruct(personalTypeHash, [Words.bytes32(hash)])
  ),
  signature: (proof) => proof
})

const domainMembers = "string name,string version,uint256 chainId,address verifyingContract,bytes32 salt"

/** Longest description of a type, in bytes: with the largest proof it fits into a node's creation code. */
export const maxDescription = 16_384

/** Nests typed data under the domain separator of the application. */
export const typedData = (
  { contents, primaryType, separator, type, typeSorted }: TypedData.Parts,
  { chainId, name, version, wallet }: Domain
): Nested => {
  // A type in the order of EIP-712 names its struct by itself only when that struct comes first.
  const description = Hex.fromText(type === typeSorted ? type : typeSorted + primaryType)
  const typeHash = Keccak.hashText(`TypedDataSign(${primaryType} contents,${domainMembers})${typeSorted}`)
  const nested = Eip712.hashStruct(typeHash, [
    Words.bytes32(contents),
    Words.bytes32(Keccak.hashText(name)),
    Words.bytes32(Keccak.hashText(version)),
    Words.uint(chainId),
    Words.address(wallet),
    Words.uint(0n)
  ])
  const size = Hex.unsafe(`0x${Hex.size(description).toString(16).padStart(4, "0")}`)
  return {
    hash: Eip712.digest(separator, contents),
    signingHash: Eip712.digest(separator, nested),
    signature: (proof) => Hex.concat(proof, separator, contents, description, size)
  }
}
