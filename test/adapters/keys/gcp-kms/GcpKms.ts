import { generateKeyPairSync, verify } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Keys from "../../../support/kms/Keys.js"
import * as Server from "../../../support/kms/Server.js"

/** Google Cloud KMS as it answers over REST: transcoded protojson, bearer tokens that a service account signs itself. */

export const ring = "projects/acme/locations/europe-west3/keyRings/castellan"
export const versionName = (key: string, version = 1) =>
  `${ring}/cryptoKeys/${key}/cryptoKeyVersions/${version}`

/** Part of every message of an error: it must not come out of the adapter. */
export const remark = "Permission 'x' denied on resource: operator is not authorized"

export interface Key {
  readonly name: string
  readonly key: Keys.StoredKey
  readonly enabled: boolean
  readonly allowed: boolean
}

export const key = (name: string, stored: Keys.StoredKey, more: Partial<Key> = {}): Key => ({
  name: versionName(name),
  key: stored,
  enabled: true,
  allowed: true,
  ...more
})

const account = generateKeyPairSync("rsa", { modulusLength: 2_048 })
const email = "castellan@acme.iam.gserviceaccount.com"
const scope = "https://www.googleapis.com/auth/cloud"

/** The file of a service account, as `gcloud iam service-accounts keys create` writes it. */
export const serviceAccount = {
  type: "service_account",
  project_id: "acme",
  private_key_id: "0123456789abcdef",
  private_key: account.privateKey.export({ format: "pem", type: "pkcs8" }).toString(),
  client_email: email,
  client_id: "1",
  token_uri: "http://127.0.0.1:9/never-asked"
}

/** A file of credentials, as long as the scope lives. */
export const credentialsFile = (content: unknown) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "castellan-gcp-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => {
      const file = join(folder, "credentials.json")
      writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content))
      return file
    }
  )

/** Token that the token service issues in exchange. */
export const exchangedToken = "token-in-exchange-for-another"

const json = (segment = "") => JSON.parse(Buffer.from(segment, "base64url").toString() || "{}")

/** True for the exchanged token, and for a token signed by the service account for this service. */
const isBearer = (authorization = ""): boolean => {
  if (authorization === `Bearer ${exchangedToken}`) return true
  const [head, claims, signature] = authorization.replace(/^Bearer /, "").split(".")
  const { aud, exp, iat, iss, scope: scopes, sub } = json(claims)
  return (
    json(head).alg === "RS256" &&
    verify(
      "RSA-SHA256",
      Buffer.from(`${head}.${claims}`),
      account.publicKey,
      Buffer.from(signature ?? "", "base64url")
    ) &&
    iss === email &&
    sub === email &&
    iat <= Date.now() / 1_000 + 1 &&
    exp > Date.now() / 1_000 &&
    (aud === "https://cloudkms.googleapis.com/" || String(scopes).startsWith(scope))
  )
}

const polynomial = 0x82f63b78n

/** CRC-32C by long division, bit by bit, straight from its definition. */
export const crc32c = (bytes: Uint8Array): string => {
  let value = 0xffffffffn
  for (const byte of bytes) {
    value ^= BigInt(byte)
    for (let bit = 0; bit < 8; bit++) value = (value >> 1n) ^ (value & 1n ? polynomial : 0n)
  }
  return String(value ^ 0xffffffffn)
}

export const failure = (status: number, name: string): Server.Answer => ({
  status,
  headers: { "content-type": "application/json; charset=UTF-8" },
  body: JSON.stringify({ error: { code: status, message: `${remark} (${name})`, status: name } }, null, 2)
})

const success = (body: object): Server.Answer => ({
  status: 200,
  headers: { "content-type": "application/json; charset=UTF-8" },
  body: JSON.stringify(body, null, 2)
})

/** google.cloud.kms.v1.CryptoKeyVersion.CryptoKeyVersionAlgorithm. */
const algorithms = { secp256k1: 31, p256: 12, rsa: 5 } as const

const pemOf = (spki: Buffer): string =>
  `-----BEGIN PUBLIC KEY-----\n${(spki.toString("base64").match(/.{1,64}/g) ?? []).join("\n")}\n-----END PUBLIC KEY-----\n`

const answer =
  (keys: ReadonlyArray<Key>) =>
  (asked: Server.Asked): Server.Answer => {
    if (asked.url.pathname === "/token")
      return success({
        access_token: exchangedToken,
        token_type: "Bearer",
        expires_in: 3_600,
        issued_token_type: "urn:ietf:params:oauth:token-type:access_token"
      })
    if (!isBearer(asked.headers.authorization)) return failure(401, "UNAUTHENTICATED")
    if (asked.url.searchParams.get("$alt") !== "json;enum-encoding=int")
      return failure(400, "INVALID_ARGUMENT")
    const found = keys.find(({ name }) => asked.url.pathname.startsWith(`/v1/${name}`))
    if (found === undefined) return failure(404, "NOT_FOUND")
    if (!found.allowed) return failure(403, "PERMISSION_DENIED")
    if (!found.enabled) return failure(400, "FAILED_PRECONDITION")
    const { key: stored, name } = found
    const action = `${asked.method} ${asked.url.pathname.slice(`/v1/${name}`.length)}`
    if (action === "GET /publicKey") {
      const pem = pemOf(stored.spki)
      return success({
        pem,
        algorithm: algorithms[stored.kind],
        pemCrc32c: crc32c(Buffer.from(pem)),
        name,
        protectionLevel: 2,
        publicKeyFormat: 1
      })
    }
    if (action !== "POST :asymmetricSign") return failure(404, "NOT_FOUND")
    const { digest, digestCrc32c } = JSON.parse(asked.body.toString())
    const bytes = Buffer.from(digest?.sha256 ?? "", "base64")
    if (bytes.length !== 32 || digestCrc32c !== crc32c(bytes)) return failure(400, "INVALID_ARGUMENT")
    if (stored.kind !== "secp256k1") return failure(400, "INVALID_ARGUMENT")
    const signature = Keys.der(stored.sign(bytes))
    return success({
      signature: signature.toString("base64"),
      signatureCrc32c: crc32c(signature),
      verifiedDigestCrc32c: true,
      name,
      protectionLevel: 2
    })
  }

/** The service on loopback, as long as the scope lives. */
export const make = (keys: ReadonlyArray<Key>) => Server.make(answer(keys))
