import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { AbiCoder, concat, getCreate2Address, id, keccak256 } from "ethers"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { devKey } from "./Chain.js"
import { assertion, configOf, ecdsa, indexIn, passkeyFrom, passkeyProof, personal } from "./Keys.js"
import {
  authorizationOf,
  configHash,
  configType,
  create2Salt,
  deployDigest,
  ledgerKey,
  mixedProof,
  opSignature,
  saltHash,
  signingHash,
  sponsorshipData,
  sponsorshipDigest,
  unbound,
  walletInitCode
} from "./Layouts.js"

/**
 * Writes test/vectors/*.json: one example and more of every layout of docs/contracts.md, for whoever implements them
 * elsewhere. `npx tsx test/support/suite/writeVectors.ts [name ...]`; no name: all. P-256 signatures differ with every
 * run, nothing else does.
 */
const write = (name: string, about: string, vectors: ReadonlyArray<object>) => {
  const wanted = process.argv.slice(2)
  if (wanted.length > 0 && !wanted.includes(name)) return
  writeFileSync(
    fileURLToPath(new URL(`../../vectors/${name}.json`, import.meta.url)),
    `${JSON.stringify({ about, vectors }, null, 2)}\n`
  )
}

const [a, b, c] = [devKey(20), devKey(21), devKey(22)] as const
const [p, q] = [
  "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgW4bLjSa+UNqM/Fgyddkvc1y9rVRjQRLZ3g8OYRztA/qhRANCAAToM0Uf+Vs+1ci6b4KaLp9msjCq1PePZ18QMIVoB/E9ODT/3N1G6CfAdy8xIvMq0ygFrlbs8E85k1AfPgEgy6QU",
  "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgprNdjMUK4ljlqwN4+pqFeCfQ/1y0WQiYRHuWeLugHpShRANCAATgDJRuI2T4VPJjZwtY0WKaEoOc6jn3o5z8HIWTEQFnWbxJ/iNvKjNRog79bsQR6XCU3+mfE0GC5jswc5fHDcIQ"
].map(passkeyFrom)
if (p === undefined || q === undefined) throw new Error("two passkeys")

const configs = [
  configOf(1, [a]),
  configOf(2, [a], [p]),
  configOf(3, [a, b, c], [], 2),
  configOf(4, [a, b], [p, q], 3),
  configOf(5, [], [p, q])
]

write(
  "nonce",
  "nonce = epoch (64 bits) ++ key (128) ++ sequence (64), where epoch = configNonce - 1; the EntryPoint's key is the first 192 bits",
  [1n, 2n, 3n, 2n ** 64n - 1n].flatMap((configNonce) =>
    [
      [0n, 0n],
      [0n, 1n],
      [7n, 5n],
      [2n ** 128n - 1n, 2n ** 64n - 1n]
    ].map(([key = 0n, sequence = 0n]) => {
      const epoch = configNonce - 1n
      return {
        configNonce: String(configNonce),
        epoch: String(epoch),
        key: String(key),
        sequence: String(sequence),
        entryPointKey: String((epoch << 128n) | key),
        nonce: `0x${((epoch << 192n) | (key << 64n) | sequence).toString(16).padStart(64, "0")}`
      }
    })
  )
)

write(
  "configHash",
  "configHash = keccak256(abi.encode(config))",
  configs.map((config) => ({
    config,
    encoded: AbiCoder.defaultAbiCoder().encode([configType], [config]),
    configHash: configHash(config)
  }))
)

const factory = "0x00000000000000000000000000000000000fac70"
const beacon = "0x00000000000000000000000000000000000beac0"
const initCodeHash = keccak256(walletInitCode(walletProxyCreationCode, beacon))

write(
  "walletAddress",
  "wallet = CREATE2(factory, create2Salt, keccak256(creationCode ++ abi.encode(beacon, bytes(''))))",
  ["order 4711", "Müller & Söhne", "財布", "0", "a".repeat(256)].flatMap((salt) =>
    [1, 2, 3, 4, 5].flatMap((custody) =>
      [false, true].map((legacy) => {
        const create2 = create2Salt(saltHash(salt), custody, legacy)
        return {
          salt,
          custody,
          legacy,
          factory,
          beacon,
          creationCodeHash: keccak256(walletProxyCreationCode),
          saltHash: saltHash(salt),
          create2Salt: create2,
          initCodeHash,
          wallet: getCreate2Address(factory, create2, initCodeHash)
        }
      })
    )
  )
)

write(
  "deployDigest",
  "EIP-712 digest of Deploy in the domain (castellan, 1, chainId, factory); authorization = the deployer's signature ++ [bundler is zero: 0x01]",
  configs.flatMap((config) =>
    [
      { chainId: 137, legacy: false, deadline: 1_800_000_000, bundler: b.address },
      { chainId: 31337, legacy: true, deadline: 1_800_000_000, bundler: b.address },
      { chainId: 31337, legacy: false, deadline: 1_800_000_000, bundler: unbound.bundler }
    ].map(({ bundler, chainId, legacy, deadline }) => {
      const deploy = {
        saltHash: saltHash("order 4711"),
        custody: config.custody,
        legacy,
        configHash: configHash(config),
        deadline,
        bundler
      }
      const digest = deployDigest(BigInt(chainId), factory, deploy)
      return {
        chainId,
        factory,
        deploy,
        config,
        digest,
        deployer: a.address,
        authorization: authorizationOf(ecdsa(digest, a), bundler)
      }
    })
  )
)

const hash = id("an operation")
const conditions = [
  unbound,
  { validUntil: 1_800_000_000, validAfter: 0, bundler: b.address },
  { validUntil: 0, validAfter: 1, bundler: unbound.bundler },
  { validUntil: 2 ** 48 - 1, validAfter: 2 ** 48 - 1, bundler: "0xFFfFfFffFFfffFFfFFfFFFFFffFFFffffFfFFFfF" }
]

write(
  "signingHash",
  "userOpHash when nothing is demanded, else the EIP-712 digest of Conditions in the domain (castellan, 1)",
  conditions.map((each) => ({ userOpHash: hash, conditions: each, signingHash: signingHash(hash, each) }))
)

write(
  "opSignature",
  "op.signature = abi.encode(uint48 validUntil, uint48 validAfter, address bundler, bytes proof)",
  conditions.map((each) => {
    const proof = ecdsa(signingHash(hash, each), a)
    return { conditions: each, proof, signature: opSignature(each, proof) }
  })
)

const [single, either, multisig, union, passkeys] = configs
if (!single || !either || !multisig || !union || !passkeys) throw new Error("five configurations")
const by = (config: typeof union, passkey: typeof p) =>
  assertion(hash, passkey, { index: indexIn(config, passkey) })
const mixed = (config: typeof union, ecdsaParts: string, ...signers: ReadonlyArray<typeof p>) => {
  const assertions = signers.map((passkey) => by(config, passkey))
  return { passkeys: assertions, ecdsa: ecdsaParts, proof: mixedProof(ecdsaParts, assertions) }
}

write(
  "proofs",
  "r || s || v, once or several times; or abi.encode(bytes ecdsa, PasskeyProof[] passkeys). All over `hash`",
  [
    { form: "ecdsa", config: single, hash, proof: ecdsa(hash, a), valid: true },
    { form: "ecdsa", config: single, hash, proof: personal(hash, a), valid: true },
    { form: "ecdsa", config: single, hash, proof: ecdsa(hash, b), valid: false },
    { form: "ecdsa", config: either, hash, proof: ecdsa(hash, a), valid: true },
    { form: "ecdsa", config: multisig, hash, proof: ecdsa(hash, c, a), valid: true },
    { form: "ecdsa", config: multisig, hash, proof: ecdsa(hash, a), valid: false },
    { form: "ecdsa", config: multisig, hash, proof: ecdsa(hash, a, a), valid: false },
    { form: "abi", config: multisig, hash, ...mixed(multisig, ecdsa(hash, a, b)), valid: true },
    { form: "abi", config: either, hash, ...mixed(either, "0x", p), valid: true },
    { form: "abi", config: union, hash, ...mixed(union, ecdsa(hash, b), p, q), valid: true },
    { form: "abi", config: union, hash, ...mixed(union, ecdsa(hash, b), p), valid: false },
    { form: "abi", config: union, hash, ...mixed(union, ecdsa(hash, b), p, p), valid: false },
    { form: "abi", config: passkeys, hash, ...mixed(passkeys, "0x", q), valid: true },
    {
      form: "abi",
      config: passkeys,
      hash: id("another operation"),
      ...mixed(passkeys, "0x", q),
      valid: false
    },
    { form: "abi", config: passkeys, hash, proof: passkeyProof(hash, p, { index: 2 }), valid: false }
  ]
)

write(
  "ledgerKey",
  "key = keccak256(abi.encode(entryPoint, wallet, nonce))",
  Object.values(entryPoints).flatMap((entryPoint) =>
    [0n, 1n, (5n << 64n) | 7n, 2n ** 256n - 1n].map((nonce) => ({
      entryPoint,
      wallet: a.address,
      nonce: nonce.toString(),
      key: ledgerKey(entryPoint, a.address, nonce)
    }))
  )
)

const paymaster = "0x0000000000000000000000000000000000059050"

write(
  "sponsorship",
  "paymasterAndData = paymaster ++ [v0.7, v0.8: verificationGasLimit (16) ++ postOpGasLimit (16)] ++ validUntil (6) ++ validAfter (6) ++ [unbound: 0x01]; digest = EIP-712 of Sponsorship(userOpHash, bundler) in the domain (castellan, 1, chainId, paymaster); op.signature = the wallet's own ++ the sponsor's 65 bytes",
  (["v0.6", "v0.7", "v0.8"] as const).flatMap((version) =>
    [
      { chainId: 137, window: [1_800_000_000, 0], gas: [40_000n, 0n], bundler: c.address },
      { chainId: 31337, window: [2 ** 48 - 1, 1], gas: [2n ** 120n - 1n, 1n], bundler: c.address },
      { chainId: 31337, window: [1_800_000_000, 1], gas: [40_000n, 0n], bundler: unbound.bundler }
    ].map(
      ({
        bundler,
        chainId,
        gas: [verificationGasLimit = 0n, postOpGasLimit = 0n],
        window: [validUntil = 0, validAfter = 0]
      }) => {
        const limits = version === "v0.6" ? null : { verificationGasLimit, postOpGasLimit }
        const terms = { paymaster, validUntil, validAfter, limits, unbound: bundler === unbound.bundler }
        const digest = sponsorshipDigest(BigInt(chainId), paymaster, hash, bundler)
        const walletSignature = opSignature(unbound, ecdsa(hash, a))
        const sponsorSignature = ecdsa(digest, b)
        return {
          version,
          chainId,
          terms: {
            ...terms,
            limits: limits && {
              verificationGasLimit: limits.verificationGasLimit.toString(),
              postOpGasLimit: limits.postOpGasLimit.toString()
            }
          },
          paymasterAndData: sponsorshipData(terms),
          userOpHash: hash,
          bundler,
          digest,
          sponsor: b.address,
          sponsorSignature,
          walletSignature,
          signature: concat([walletSignature, sponsorSignature])
        }
      }
    )
  )
)
