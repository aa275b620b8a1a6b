import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Nonce from "../../src/domain/erc4337/Nonce.js"
import type { Address } from "../../src/domain/primitives/Address.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import * as Keccak from "../../src/domain/primitives/Keccak.js"
import * as Conditions from "../../src/domain/signature/Conditions.js"
import * as Proof from "../../src/domain/signature/Proof.js"
import * as ProofVerification from "../../src/domain/signature/ProofVerification.js"
import * as WebAuthn from "../../src/domain/signature/WebAuthn.js"
import * as Custody from "../../src/domain/wallet/Custody.js"
import * as Deployment from "../../src/domain/wallet/Deployment.js"
import * as Salt from "../../src/domain/wallet/Salt.js"
import * as WalletAddress from "../../src/domain/wallet/WalletAddress.js"
import * as WalletConfig from "../../src/domain/wallet/WalletConfig.js"
import { walletProxyCreationCode } from "../../src/domain/wallet/WalletProxy.generated.js"
import { ecdsaSigners } from "../support/suite/Signers.js"

/** The published vectors of this file in test/vectors: hex in lower case, addresses with their checksum. */
const vectors = <A>(name: string): Array<A> => {
  const text = readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), "utf8")
  return JSON.parse(text).vectors
}

describe("The published test vectors hold in the domain:", () => {
  type Config = WalletConfig.WalletConfig
  type Bound = Conditions.Conditions

  it.each(vectors<{ config: Config; encoded: Hex.Hex; configHash: Hex.Bytes32 }>("configHash"))(
    "configHash $configHash",
    ({ config, encoded, configHash }) => {
      expect(config.custody).toBe(Result.getOrThrow(Custody.ofWallet(config.custody)))
      expect(WalletConfig.encode(config)).toBe(encoded)
      expect(WalletConfig.configHash(config)).toBe(configHash)
    }
  )

  it.each(
    vectors<Record<"configNonce" | "epoch" | "key" | "sequence" | "entryPointKey" | "nonce", string>>("nonce")
  )("nonce $nonce", (vector) => {
    const [configNonce, epoch, key] = [BigInt(vector.configNonce), BigInt(vector.epoch), BigInt(vector.key)]
    const [entryPointKey, nonce] = [BigInt(vector.entryPointKey), BigInt(vector.nonce)]
    expect(WalletConfig.epochOf({ configNonce })).toBe(epoch)
    expect(Nonce.inEpoch({ from: key, to: key }, epoch)).toEqual({ from: entryPointKey, to: entryPointKey })
    expect(Nonce.make(entryPointKey, BigInt(vector.sequence))).toBe(nonce)
    expect([Nonce.epochOf(nonce), Nonce.keyOf(nonce)]).toEqual([epoch, entryPointKey])
  })

  interface AddressVector extends Record<"factory" | "beacon" | "wallet", Address> {
    readonly salt: string
    readonly custody: Custody.Stored
    readonly legacy: boolean
    readonly creationCodeHash: Hex.Bytes32
    readonly saltHash: Hex.Bytes32
    readonly create2Salt: Hex.Bytes32
    readonly initCodeHash: Hex.Bytes32
  }
  it.each(vectors<AddressVector>("walletAddress"))("wallet $wallet of salt $salt", (vector) => {
    const { custody, legacy, factory, beacon, saltHash, create2Salt, initCodeHash } = vector
    const code = Result.getOrThrow(WalletAddress.creationCode(walletProxyCreationCode))
    expect(Keccak.hash(code)).toBe(vector.creationCodeHash)
    expect(Salt.hash(Result.getOrThrow(Salt.from(vector.salt)))).toBe(saltHash)
    expect(WalletAddress.create2Salt(saltHash, custody, legacy)).toBe(create2Salt)
    expect(WalletAddress.initCodeHash(code, beacon)).toBe(initCodeHash)
    expect(WalletAddress.predict({ factory, initCodeHash, create2Salt })).toBe(vector.wallet)
  })

  interface DeployVector extends Record<"factory" | "deployer", Address> {
    readonly chainId: number
    readonly deploy: Omit<Deployment.Deployment, "config"> & { configHash: Hex.Bytes32; bundler: Address }
    readonly config: Config
    readonly digest: Hex.Bytes32
    readonly authorization: Hex.Hex
  }
  it.each(vectors<DeployVector>("deployDigest"))("Deploy digest $digest", (vector) => {
    const { chainId, factory, deploy, config, digest, deployer, authorization } = vector
    expect(WalletConfig.configHash(config)).toBe(deploy.configHash)
    const domain = { chainId: BigInt(chainId), factory }
    expect(Deployment.digest(domain, { ...deploy, config }, deploy.bundler)).toBe(digest)
    const signature = Hex.slice(authorization, 0, 65)
    expect(ecdsaSigners(digest, signature)[0]?.[0]).toBe(deployer)
    expect(Deployment.authorization(signature, deploy.bundler)).toBe(authorization)
  })

  it.each(vectors<{ userOpHash: Hex.Bytes32; conditions: Bound; signingHash: Hex.Bytes32 }>("signingHash"))(
    "signing hash $signingHash",
    ({ userOpHash, conditions, signingHash }) => {
      expect(Conditions.signingHash(userOpHash, conditions)).toBe(signingHash)
    }
  )

  it.each(vectors<{ conditions: Bound; proof: Hex.Hex; signature: Hex.Hex }>("opSignature"))(
    "op.signature of a bundler $conditions.bundler",
    ({ conditions, proof, signature }) => {
      expect(Conditions.encodeSignature(conditions, proof)).toBe(signature)
      expect(Conditions.decodeSignature(signature)).toEqual(Result.succeed({ conditions, proof }))
    }
  )

  it.each(vectors<{ config: Config; hash: Hex.Bytes32; proof: Hex.Hex; valid: boolean }>("proofs"))(
    "a proof of custody $config.custody, as the validator judges it: $valid",
    ({ config, hash, proof, valid }) => {
      expect(Result.isSuccess(ProofVerification.verify(config, hash, proof))).toBe(valid)
    }
  )

  interface SignatureVector extends Record<"userOpHash" | "signingHash", Hex.Bytes32> {
    readonly about: string
    readonly config: Config
    readonly conditions: Bound
    readonly ecdsa: Hex.Hex
    readonly passkeys: ReadonlyArray<{ index: number; response: Parameters<typeof WebAuthn.read>[0] }>
    readonly proof: Hex.Hex
    readonly signature: Hex.Hex
    readonly valid: boolean
  }
  it.each(vectors<SignatureVector>("signatures"))("op.signature of $about", (vector) => {
    const { config, conditions, ecdsa, proof, signature, signingHash } = vector
    const passkeys = vector.passkeys.map(({ index, response }) => ({
      index,
      auth: Result.getOrThrow(WebAuthn.read(response))
    }))
    expect(Conditions.signingHash(vector.userOpHash, conditions)).toBe(signingHash)
    expect(Proof.encode({ ecdsa, passkeys })).toBe(proof)
    expect(Proof.normalise(proof)).toEqual(Result.succeed(proof))
    expect(Conditions.encodeSignature(conditions, proof)).toBe(signature)
    expect(Conditions.decodeSignature(signature)).toEqual(Result.succeed({ conditions, proof }))
    expect(Result.isSuccess(ProofVerification.verify(config, signingHash, proof))).toBe(vector.valid)
  })
})
