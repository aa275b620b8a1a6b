import { AbiCoder, concat, keccak256, solidityPacked, TypedDataEncoder, toUtf8Bytes } from "ethers"

/** A second, independent definition of the byte layouts of docs/layouts.md. */

export interface PublicKey {
  readonly x: string
  readonly y: string
}

export interface Config {
  readonly custody: number
  readonly threshold: number
  readonly owners: ReadonlyArray<string>
  readonly passkeys: ReadonlyArray<PublicKey>
}

export interface Conditions {
  readonly validUntil: number
  readonly validAfter: number
  readonly bundler: string
}

export interface Assertion {
  readonly r: string
  readonly s: string
  readonly challengeIndex: number
  readonly typeIndex: number
  readonly authenticatorData: string
  readonly clientDataJSON: string
}

export interface PasskeyProof {
  readonly index: number
  readonly auth: Assertion
}

export interface Deploy {
  readonly saltHash: string
  readonly custody: number
  readonly legacy: boolean
  readonly configHash: string
  readonly deadline: number
  /** The EOA that may use the authorisation; the zero address allows any. */
  readonly bundler: string
}

const coder = AbiCoder.defaultAbiCoder()

export const configType =
  "tuple(uint8 custody, uint8 threshold, address[] owners, tuple(bytes32 x, bytes32 y)[] passkeys)"

const passkeyProofsType =
  "tuple(uint8 index, tuple(bytes32 r, bytes32 s, uint256 challengeIndex, uint256 typeIndex, bytes authenticatorData, string clientDataJSON) auth)[]"

const zeroAddress = `0x${"00".repeat(20)}`

export const unbound: Conditions = { validUntil: 0, validAfter: 0, bundler: zeroAddress }

export const configHash = (config: Config): string => keccak256(coder.encode([configType], [config]))

export const saltHash = (salt: string): string => keccak256(toUtf8Bytes(salt))

export const create2Salt = (hash: string, custody: number, legacy: boolean): string =>
  legacy ? hash : keccak256(coder.encode(["bytes32", "uint256"], [hash, custody]))

export const walletInitCode = (creationCode: string, beacon: string): string =>
  concat([creationCode, coder.encode(["address", "bytes"], [beacon, "0x"])])

export const deployDigest = (chainId: bigint, factory: string, deploy: Deploy): string =>
  TypedDataEncoder.hash(
    { name: "castellan", version: "1", chainId, verifyingContract: factory },
    {
      Deploy: [
        { name: "saltHash", type: "bytes32" },
        { name: "custody", type: "uint256" },
        { name: "legacy", type: "bool" },
        { name: "configHash", type: "bytes32" },
        { name: "deadline", type: "uint48" },
        { name: "bundler", type: "address" }
      ]
    },
    { ...deploy }
  )

/** The deployer's signature as `createWallet` takes it. */
export const authorizationOf = (signature: string, bundler: string): string =>
  bundler === zeroAddress ? concat([signature, "0x01"]) : signature

export const signingHash = (userOpHash: string, conditions: Conditions): string =>
  conditions.validUntil === 0 && conditions.validAfter === 0 && conditions.bundler === zeroAddress
    ? userOpHash
    : TypedDataEncoder.hash(
        { name: "castellan", version: "1" },
        {
          Conditions: [
            { name: "userOpHash", type: "bytes32" },
            { name: "validUntil", type: "uint48" },
            { name: "validAfter", type: "uint48" },
            { name: "bundler", type: "address" }
          ]
        },
        { userOpHash, ...conditions }
      )

export const opSignature = (conditions: Conditions, proof: string): string =>
  coder.encode(
    ["uint48", "uint48", "address", "bytes"],
    [conditions.validUntil, conditions.validAfter, conditions.bundler, proof]
  )

/** The ABI form of a proof. */
export const mixedProof = (ecdsa: string, passkeys: ReadonlyArray<PasskeyProof>): string =>
  coder.encode(["bytes", passkeyProofsType], [ecdsa, passkeys])

export const ledgerKey = (entryPoint: string, wallet: string, nonce: bigint): string =>
  keccak256(coder.encode(["address", "address", "uint256"], [entryPoint, wallet, nonce]))

export interface SponsorTerms {
  readonly paymaster: string
  readonly validUntil: number
  readonly validAfter: number
  /** Null on v0.6, which lacks them. */
  readonly limits: { readonly verificationGasLimit: bigint; readonly postOpGasLimit: bigint } | null
  /** No submitter is set. */
  readonly unbound: boolean
}

export const sponsorshipData = ({
  limits,
  paymaster,
  unbound,
  validAfter,
  validUntil
}: SponsorTerms): string =>
  concat([
    limits === null
      ? solidityPacked(["address", "uint48", "uint48"], [paymaster, validUntil, validAfter])
      : solidityPacked(
          ["address", "uint128", "uint128", "uint48", "uint48"],
          [paymaster, limits.verificationGasLimit, limits.postOpGasLimit, validUntil, validAfter]
        ),
    unbound ? "0x01" : "0x"
  ])

export const sponsorshipDigest = (
  chainId: bigint,
  paymaster: string,
  userOpHash: string,
  bundler: string
): string =>
  TypedDataEncoder.hash(
    { name: "castellan", version: "1", chainId, verifyingContract: paymaster },
    {
      Sponsorship: [
        { name: "userOpHash", type: "bytes32" },
        { name: "bundler", type: "address" }
      ]
    },
    { userOpHash, bundler }
  )
