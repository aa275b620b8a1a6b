import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Nonce from "../../src/domain/erc4337/Nonce.js"
import * as Address from "../../src/domain/primitives/Address.js"
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

const Config = Schema.Struct({
  custody: Custody.storedSchema,
  threshold: Schema.Int,
  owners: Schema.Array(Address.schema),
  passkeys: Schema.Array(Schema.Struct({ x: Hex.schema32, y: Hex.schema32 }))
})
const Bound = Schema.Struct({
  validUntil: Schema.Int,
  validAfter: Schema.Int,
  bundler: Address.schema
})

/** The published vectors of this file in test/vectors, at least one. */
const vectors = <A, I>(name: string, schema: Schema.Schema<A, I>): ReadonlyArray<A> => {
  const text = readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), "utf8")
  const file = Schema.Struct({ about: Schema.String, vectors: Schema.NonEmptyArray(schema) })
  return Schema.decodeUnknownSync(Schema.parseJson(file))(text).vectors
}

describe("The published test vectors hold in the domain:", () => {
  it.each(
    vectors("configHash", Schema.Struct({ config: Config, encoded: Hex.schema, configHash: Hex.schema32 }))
  )("configHash $configHash", ({ config, encoded, configHash }) => {
    expect(WalletConfig.encode(config)).toBe(encoded)
    expect(WalletConfig.configHash(config)).toBe(configHash)
  })

  it.each(
    vectors(
      "nonce",
      Schema.Struct({
        configNonce: Schema.BigInt,
        epoch: Schema.BigInt,
        key: Schema.BigInt,
        sequence: Schema.BigInt,
        entryPointKey: Schema.BigInt,
        nonce: Hex.schema32
      })
    )
  )("nonce $nonce", ({ configNonce, entryPointKey, epoch, key, nonce, sequence }) => {
    expect(WalletConfig.epochOf({ configNonce })).toBe(epoch)
    expect(Nonce.inEpoch({ from: key, to: key }, epoch)).toEqual({ from: entryPointKey, to: entryPointKey })
    expect(Nonce.make(entryPointKey, sequence)).toBe(BigInt(nonce))
    expect([Nonce.epochOf(BigInt(nonce)), Nonce.keyOf(BigInt(nonce))]).toEqual([epoch, entryPointKey])
  })

  it.each(
    vectors(
      "walletAddress",
      Schema.Struct({
        salt: Salt.schema,
        custody: Custody.storedSchema,
        legacy: Schema.Boolean,
        factory: Address.schema,
        beacon: Address.schema,
        creationCodeHash: Hex.schema32,
        saltHash: Hex.schema32,
        create2Salt: Hex.schema32,
        initCodeHash: Hex.schema32,
        wallet: Address.schema
      })
    )
  )("wallet $wallet of salt $salt", (vector) => {
    const { salt, custody, legacy, factory, beacon, saltHash, create2Salt, initCodeHash } = vector
    const code = Either.getOrThrow(WalletAddress.creationCode(walletProxyCreationCode))
    expect(Keccak.hash(code)).toBe(vector.creationCodeHash)
    expect(Salt.hash(salt)).toBe(saltHash)
    expect(WalletAddress.create2Salt(saltHash, custody, legacy)).toBe(create2Salt)
    expect(WalletAddress.initCodeHash(code, beacon)).toBe(initCodeHash)
    expect(WalletAddress.predict({ factory, initCodeHash, create2Salt })).toBe(vector.wallet)
  })

  it.each(
    vectors(
      "deployDigest",
      Schema.Struct({
        chainId: Schema.Int,
        factory: Address.schema,
        deploy: Schema.Struct({
          saltHash: Hex.schema32,
          custody: Custody.storedSchema,
          legacy: Schema.Boolean,
          configHash: Hex.schema32,
          deadline: Schema.Int,
          bundler: Address.schema
        }),
        config: Config,
        digest: Hex.schema32,
        deployer: Address.schema,
        authorization: Hex.schema
      })
    )
  )("Deploy digest $digest", ({ chainId, factory, deploy, config, digest, deployer, authorization }) => {
    expect(WalletConfig.configHash(config)).toBe(deploy.configHash)
    const domain = { chainId: BigInt(chainId), factory }
    expect(Deployment.digest(domain, { ...deploy, config }, deploy.bundler)).toBe(digest)
    const signature = Hex.unsafe(authorization.slice(0, 2 + 2 * 65))
    expect(ecdsaSigners(digest, signature)[0]?.[0]).toBe(deployer)
    expect(Deployment.authorization(signature, deploy.bundler)).toBe(authorization)
  })

  it.each(
    vectors(
      "signingHash",
      Schema.Struct({ userOpHash: Hex.schema32, conditions: Bound, signingHash: Hex.schema32 })
    )
  )("signing hash $signingHash", ({ userOpHash, conditions, signingHash }) => {
    expect(Conditions.signingHash(userOpHash, conditions)).toBe(signingHash)
  })

  it.each(
    vectors("opSignature", Schema.Struct({ conditions: Bound, proof: Hex.schema, signature: Hex.schema }))
  )("op.signature of a bundler $conditions.bundler", ({ conditions, proof, signature }) => {
    expect(Conditions.encodeSignature(conditions, proof)).toBe(signature)
    expect(Conditions.decodeSignature(signature)).toEqual(Either.right({ conditions, proof }))
  })

  const proofs = vectors(
    "proofs",
    Schema.Struct({
      form: Schema.String,
      config: Config,
      hash: Hex.schema32,
      proof: Hex.schema,
      valid: Schema.Boolean
    })
  )
  it.each(proofs.filter(({ form }) => form === "ecdsa"))(
    "ECDSA proof of custody $config.custody is valid: $valid",
    ({ config, hash, proof, valid }) => {
      const signers = Either.match(Proof.normalise(proof), {
        onLeft: (): ReadonlyArray<Address.Address | undefined> => [],
        onRight: (normal) =>
          ecdsaSigners(hash, normal).map((pair) => config.owners.find((owner) => pair.includes(owner)))
      })
      const distinct = new Set(signers).size === signers.length && !signers.includes(undefined)
      expect(distinct && signers.length >= config.threshold).toBe(valid)
    }
  )

  it.each(proofs)("a proof of custody $config.custody, as the validator judges it: $valid", (vector) => {
    const { config, hash, proof, valid } = vector
    expect(Either.isRight(ProofVerification.verify(config, hash, proof))).toBe(valid)
  })

  it.each(
    vectors(
      "signatures",
      Schema.Struct({
        about: Schema.String,
        config: Config,
        userOpHash: Hex.schema32,
        conditions: Bound,
        signingHash: Hex.schema32,
        ecdsa: Hex.schema,
        passkeys: Schema.Array(
          Schema.Struct({
            index: Schema.Int,
            response: Schema.Struct({
              signature: Schema.String,
              authenticatorData: Schema.String,
              clientDataJSON: Schema.String
            })
          })
        ),
        proof: Hex.schema,
        signature: Hex.schema,
        valid: Schema.Boolean
      })
    )
  )(
    "op.signature of $about",
    ({ config, conditions, ecdsa, passkeys, proof, signature, signingHash, ...vector }) => {
      expect(Conditions.signingHash(vector.userOpHash, conditions)).toBe(signingHash)
      const parts = passkeys.map(({ index, response }) => ({
        index,
        auth: Either.getOrThrow(WebAuthn.read(response))
      }))
      expect(Proof.encode({ ecdsa, passkeys: parts })).toBe(proof)
      expect(Proof.normalise(proof)).toEqual(Either.right(proof))
      expect(Conditions.encodeSignature(conditions, proof)).toBe(signature)
      expect(Conditions.decodeSignature(signature)).toEqual(Either.right({ conditions, proof }))
      expect(Either.isRight(ProofVerification.verify(config, signingHash, proof))).toBe(vector.valid)
    }
  )
})
