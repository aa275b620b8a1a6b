import { secp256k1 } from "@noble/curves/secp256k1"
import * as Either from "effect/Either"
import { keccak256, SigningKey } from "ethers"
import { createKeccak } from "hash-wasm"
import { recover, signRecoverable, verify } from "tiny-secp256k1"
import * as Hex from "../src/domain/evm/Hex.js"
import * as Keccak from "../src/domain/evm/Keccak.js"
import * as Secp256k1 from "../src/domain/evm/Secp256k1.js"

/**
 * `npm run bench:crypto`: what one thread does in a second of the crypto on the hot path, by the service's own module,
 * by ethers and by WebAssembly, from and to the values that callers have. The last one reads files when it is imported,
 * and so is no part of what runs anywhere.
 */

const hex = `0x${"a1".repeat(32)}`
const digest = Hex.unsafe32(`0x${"5a".repeat(32)}`)
const digestBytes = Buffer.from(digest.slice(2), "hex")
const keyBytes = Buffer.from(hex.slice(2), "hex")
const key = Either.getOrThrow(Secp256k1.privateKey(Hex.unsafe32(hex)))
const signature = key.sign(digest)
const { v } = signature
const serialized = Secp256k1.serialize(signature)
const prove = Secp256k1.prover(key.publicKey)
const theirs = new SigningKey(hex)
const wasm = signRecoverable(digestBytes, keyBytes)
const publicKeyBytes = Buffer.from(key.publicKey, "hex")
const keccak = await createKeccak(256)
const preimage = Hex.unsafe(`0x${"07".repeat(85)}`)

const roundMillis = 200
const rounds = 7

/** Calls a second in the best of the rounds: a busy machine makes slower ones, never faster ones. */
const best = (calls: ReadonlyArray<() => unknown>): ReadonlyArray<number> => {
  const rates = calls.map(() => 0)
  for (let round = 0; round < rounds; round++)
    for (const [index, call] of calls.entries()) {
      const began = performance.now()
      let count = 0
      while (performance.now() - began < roundMillis) {
        for (let n = 0; n < 5; n++) call()
        count += 5
      }
      rates[index] = Math.max(rates[index] ?? 0, (count * 1_000) / (performance.now() - began))
    }
  return rates
}

const rows: ReadonlyArray<readonly [string, ...ReadonlyArray<readonly [string, () => unknown]>]> = [
  [
    "keccak256 of 85 bytes",
    ["Keccak.hash", () => Keccak.hash(preimage)],
    ["ethers", () => keccak256(preimage)],
    [
      "hash-wasm",
      () =>
        `0x${keccak
          .init()
          .update(Buffer.from(preimage.slice(2), "hex"))
          .digest("hex")}`
    ]
  ],
  [
    "sign a digest",
    ["Secp256k1.sign", () => Secp256k1.serialize(key.sign(digest))],
    ["ethers", () => theirs.sign(digest).serialized],
    ["noble alone", () => secp256k1.sign(digestBytes, keyBytes)],
    ["tiny-secp256k1", () => signRecoverable(digestBytes, keyBytes)]
  ],
  [
    "recover a signer",
    ["Secp256k1.recover", () => Secp256k1.recover(digest, signature)],
    ["ethers", () => SigningKey.recoverPublicKey(digest, serialized)],
    ["tiny-secp256k1", () => recover(digestBytes, wasm.signature, wasm.recoveryId, false)]
  ],
  [
    "prove a signature of a known key, and find its v",
    ["Secp256k1.prover", () => prove(digest, signature)],
    [
      "ethers, by trial",
      () =>
        [27, 28].find(
          (each) =>
            SigningKey.recoverPublicKey(digest, `${serialized.slice(0, 130)}${each.toString(16)}`) ===
            theirs.publicKey
        )
    ],
    [
      "noble's verify, without v",
      () => secp256k1.verify(serialized.slice(2, 130), digestBytes, publicKeyBytes)
    ],
    ["tiny-secp256k1's verify, without v", () => verify(digestBytes, publicKeyBytes, wasm.signature)]
  ]
]

console.log(`one thread, Node ${process.versions.node}; the signature's v is ${v}`)
for (const [what, ...candidates] of rows) {
  const rates = best(candidates.map(([, call]) => call))
  const [own = 1] = rates
  console.log(what)
  for (const [index, [name]] of candidates.entries()) {
    const rate = rates[index] ?? 0
    console.log(
      `  ${name.padEnd(36)}${Math.round(rate).toLocaleString("en-US").padStart(10)}/s  ${(rate / own).toFixed(2)}`
    )
  }
}
