import { createHash, createSign, generateKeyPairSync } from "node:crypto"
import { AbiCoder, concat, getBytes, hexlify, toBeHex } from "ethers"
import { type TestWallet, walletOf } from "./Wallets.js"
import type { World } from "./World.js"

const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
const proofType =
  "tuple(uint8 index, tuple(bytes32 r, bytes32 s, uint256 challengeIndex, uint256 typeIndex, bytes authenticatorData, string clientDataJSON) auth)[]"

const clientData = (hash: string): string => {
  const challenge = Buffer.from(getBytes(hash)).toString("base64url")
  return `{"type":"webauthn.get","challenge":"${challenge}","origin":"http://localhost:3000","crossOrigin":false}`
}

const authenticatorData = concat([
  hexlify(createHash("sha256").update("localhost").digest()),
  "0x05",
  "0x00000001"
])

const blob = (hash: string, r: bigint, s: bigint): string => {
  const json = clientData(hash)
  const low = s > order / 2n ? order - s : s
  const auth = {
    r: toBeHex(r, 32),
    s: toBeHex(low, 32),
    challengeIndex: json.indexOf('"challenge"'),
    typeIndex: json.indexOf('"type"'),
    authenticatorData,
    clientDataJSON: json
  }
  return AbiCoder.defaultAbiCoder().encode(["bytes", proofType], ["0x", [{ index: 0, auth }]])
}

/** A passkey wallet (custody 5) of a fresh P-256 key; its dummy has the right shape and challenge: a wrong one is refused before the curve. */
export const passkeyWallet = async (world: World, salt: string): Promise<TestWallet> => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const { x = "", y = "" } = publicKey.export({ format: "jwk" })
  const coordinate = (text: string) => hexlify(Buffer.from(text, "base64url"))
  const prove = (hash: string): string => {
    const client = createHash("sha256").update(clientData(hash)).digest()
    const signature = createSign("sha256")
      .update(concat([authenticatorData, hexlify(client)]).slice(2), "hex")
      .sign({ key: privateKey, dsaEncoding: "ieee-p1363" })
    return blob(hash, BigInt(hexlify(signature.subarray(0, 32))), BigInt(hexlify(signature.subarray(32))))
  }
  return walletOf(
    world,
    salt,
    { custody: 5, threshold: 1, owners: [], passkeys: [{ x: coordinate(x), y: coordinate(y) }] },
    { prove, dummy: (hash) => blob(hash, order - 5n, order / 2n - 7n) }
  )
}
