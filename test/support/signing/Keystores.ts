import { createCipheriv, scryptSync } from "node:crypto"
import * as Redacted from "effect/Redacted"
import { computeAddress, encryptKeystoreJsonSync, keccak256 } from "ethers"

/** A keystore with minimal key derivation work, for fast tests. */
export const keystore = (privateKey: string, password: string) => ({
  json: Redacted.make(
    encryptKeystoreJsonSync({ address: computeAddress(privateKey), privateKey }, password, {
      scrypt: { N: 1024, r: 8, p: 1 }
    })
  ),
  password: Redacted.make(password)
})

/** A keystore with geth's light parameters, made by node's own cryptography. */
const scryptKeystore = (privateKey: string, password: string): string => {
  const [salt, iv] = [Buffer.alloc(32, 7), Buffer.alloc(16, 9)]
  const key = scryptSync(password, salt, 32, { N: 4096, r: 8, p: 6 })
  const cipher = createCipheriv("aes-128-ctr", key.subarray(0, 16), iv)
  const ciphertext = Buffer.concat([cipher.update(privateKey.slice(2), "hex"), cipher.final()])
  return JSON.stringify({
    address: computeAddress(privateKey).slice(2).toLowerCase(),
    crypto: {
      cipher: "aes-128-ctr",
      ciphertext: ciphertext.toString("hex"),
      cipherparams: { iv: iv.toString("hex") },
      kdf: "scrypt",
      kdfparams: { dklen: 32, n: 4096, p: 6, r: 8, salt: salt.toString("hex") },
      mac: keccak256(Buffer.concat([key.subarray(16, 32), ciphertext])).slice(2)
    },
    id: "3198bc9c-6672-5ab3-d995-4942343ae5b6",
    version: 3
  })
}

const privateKey = "0x7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"
const password = "testpassword"

/** A test vector of the Web3 Secret Storage definition, and a keystore made without ethers. */
export const vectors = [
  {
    kdf: "pbkdf2, the test vector of the definition",
    privateKey,
    password,
    json: JSON.stringify({
      crypto: {
        cipher: "aes-128-ctr",
        cipherparams: { iv: "6087dab2f9fdbbfaddc31a909735c1e6" },
        ciphertext: "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        kdf: "pbkdf2",
        kdfparams: {
          c: 262144,
          dklen: 32,
          prf: "hmac-sha256",
          salt: "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"
        },
        mac: "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"
      },
      id: "3198bc9c-6672-5ab3-d995-4942343ae5b6",
      version: 3
    })
  },
  { kdf: "scrypt, as geth writes it", privateKey, password, json: scryptKeystore(privateKey, password) }
]
