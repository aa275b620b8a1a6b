import { createHash, createHmac, timingSafeEqual } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Keys from "../../../support/kms/Keys.js"
import * as Server from "../../../support/kms/Server.js"

/** AWS KMS as it answers on the wire: AWS JSON 1.1, requests signed with signature version 4. */

export const region = "eu-central-1"
export const account = "111122223333"
export const accessKeyId = "AKIDTESTTESTTEST"
export const secretAccessKey = "test/secret/that+nobody=knows"
export const sessionToken = "test-session-token"

/** Part of every message of an error: it must not come out of the adapter. */
export const remark = `arn:aws:iam::${account}:user/operator is not authorized`

export interface Key {
  readonly id: string
  readonly alias: string
  readonly key: Keys.StoredKey
  readonly state: "Enabled" | "Disabled" | "PendingDeletion"
  readonly usage: "SIGN_VERIFY" | "KEY_AGREEMENT"
  /** Whether the policy lets the caller use it. */
  readonly allowed: boolean
}

export const arn = (id: string) => `arn:aws:kms:${region}:${account}:key/${id}`

const sha256 = (data: Buffer | string) => createHash("sha256").update(data).digest("hex")
const hmac = (key: Buffer | string, data: string) => createHmac("sha256", key).update(data).digest()

const shape =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/

/** True for a request that the holder of the secret has signed, its body included (Signature Version 4). */
const isSigned = ({ body, headers, method, url }: Server.Asked): boolean => {
  const parts = shape.exec(headers.authorization ?? "")
  const [, id = "", day = "", where = "", service = "", names = "", signature = ""] = parts ?? []
  const date = String(headers["x-amz-date"])
  const signedNames = names.split(";")
  if (parts === null || id !== accessKeyId || where !== region || service !== "kms") return false
  if (
    !date.startsWith(day) ||
    !["host", "x-amz-date", "x-amz-target"].every((name) => signedNames.includes(name))
  )
    return false
  const canonical = [
    method,
    url.pathname,
    "",
    ...signedNames.map((name) => `${name}:${String(headers[name]).trim().replaceAll(/\s+/g, " ")}`),
    "",
    names,
    sha256(body)
  ].join("\n")
  const scope = `${day}/${where}/${service}/aws4_request`
  const key = hmac(hmac(hmac(hmac(`AWS4${secretAccessKey}`, day), where), service), "aws4_request")
  const expected = hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${sha256(canonical)}`)
  return timingSafeEqual(expected, Buffer.from(signature, "hex"))
}

export const failure = (name: string, status = 400, headers: Record<string, string> = {}): Server.Answer => ({
  status,
  headers: { "content-type": "application/x-amz-json-1.1", ...headers },
  body: JSON.stringify({ __type: name, message: `${remark} (${name})` })
})

const success = (body: object): Server.Answer => ({
  status: 200,
  headers: { "content-type": "application/x-amz-json-1.1", "x-amzn-requestid": "0" },
  body: JSON.stringify(body)
})

const specs = { secp256k1: "ECC_SECG_P256K1", p256: "ECC_NIST_P256", rsa: "RSA_2048" } as const

const answer =
  (keys: ReadonlyArray<Key>) =>
  (asked: Server.Asked): Server.Answer => {
    if (asked.headers["content-type"] !== "application/x-amz-json-1.1")
      return failure("SerializationException")
    if (!isSigned(asked)) return failure("InvalidSignatureException")
    if (
      asked.headers["x-amz-security-token"] !== undefined &&
      asked.headers["x-amz-security-token"] !== sessionToken
    )
      return failure("UnrecognizedClientException")
    const input = JSON.parse(asked.body.toString())
    const found = keys.find(({ alias, id }) => [id, arn(id), alias].includes(input.KeyId))
    if (found === undefined) return failure("NotFoundException")
    if (!found.allowed) return failure("AccessDeniedException")
    const common = { KeyId: arn(found.id), SigningAlgorithms: ["ECDSA_SHA_256"] }
    switch (asked.headers["x-amz-target"]) {
      case "TrentService.GetPublicKey":
        if (found.state === "PendingDeletion") return failure("KMSInvalidStateException")
        return success({
          ...common,
          PublicKey: found.key.spki.toString("base64"),
          KeySpec: specs[found.key.kind],
          CustomerMasterKeySpec: specs[found.key.kind],
          KeyUsage: found.usage
        })
      case "TrentService.Sign": {
        const digest = Buffer.from(input.Message, "base64")
        if (input.MessageType !== "DIGEST" || digest.length !== 32) return failure("ValidationException")
        if (found.state === "Disabled") return failure("DisabledException")
        if (found.state === "PendingDeletion") return failure("KMSInvalidStateException")
        if (found.key.kind !== "secp256k1" || found.usage !== "SIGN_VERIFY")
          return failure("InvalidKeyUsageException")
        if (input.SigningAlgorithm !== "ECDSA_SHA_256") return failure("InvalidKeyUsageException")
        return success({
          KeyId: arn(found.id),
          SigningAlgorithm: input.SigningAlgorithm,
          Signature: Keys.der(found.key.sign(digest)).toString("base64")
        })
      }
      default:
        return failure("UnknownOperationException")
    }
  }

export const key = (name: string, stored: Keys.StoredKey, more: Partial<Key> = {}): Key => ({
  id: name,
  alias: `alias/${name}`,
  key: stored,
  state: "Enabled",
  usage: "SIGN_VERIFY",
  allowed: true,
  ...more
})

/** The service on loopback, as long as the scope lives. */
export const make = (keys: ReadonlyArray<Key>) =>
  Effect.map(Server.make(answer(keys)), (server) => ({ server, endpoint: `http://127.0.0.1:${server.port}` }))
