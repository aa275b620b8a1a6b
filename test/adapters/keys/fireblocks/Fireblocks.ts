import { createHash, generateKeyPairSync, randomUUID, verify } from "node:crypto"
import * as Effect from "effect/Effect"
import type * as Keys from "../../../support/kms/Keys.js"
import * as Server from "../../../support/kms/Server.js"

/** Fireblocks as it answers on the wire: JSON, requests signed with a JWT (RS256) over path and body. */

export const apiKey = "7f3c1a52-4f10-4a57-9a0e-api-user-id"
const user = generateKeyPairSync("rsa", { modulusLength: 2_048 })
export const secretKey = user.privateKey.export({ format: "pem", type: "pkcs8" }).toString()

/** Part of every message of an error or a transaction: it must not come out of the adapter. */
export const remark = "operator of Acme is not authorized"

export interface Asset {
  readonly vaultAccountId: string
  readonly assetId: string
  readonly key: Keys.Secp256k1Key
  readonly algorithm?: string
}

export interface Transaction {
  readonly id: string
  readonly externalTxId: string
  readonly asset: Asset
  readonly contents: ReadonlyArray<string>
  status: string
  subStatus: string
  lastUpdated: number
}

export interface Fireblocks {
  readonly server: Server.Server
  readonly basePath: string
  readonly transactions: ReadonlyArray<Transaction>
  /** Initial status of a new transaction. */
  policy: (transaction: Transaction) => string
  /** Sets the later status of a transaction. */
  readonly decide: (transaction: Transaction, status: string, subStatus?: string) => void
}

const failure = (status: number, code: number): Server.Answer => ({
  status,
  body: JSON.stringify({ message: `${remark} (${code})`, code })
})

const success = (body: unknown): Server.Answer => ({ status: 200, body: JSON.stringify(body) })

const part = (text: string | undefined) => JSON.parse(Buffer.from(text ?? "", "base64url").toString())

/** The code of what is wrong with a request's token; null when the holder of the secret has signed this very request. */
const unsigned = ({ body, headers, method, url }: Server.Asked, nonces: Set<string>): number | null => {
  const [, token = ""] = /^Bearer (\S+)$/.exec(headers.authorization ?? "") ?? []
  const [head = "", claims = "", signature = ""] = token.split(".")
  if (token === "") return -3
  const { alg } = part(head)
  const { bodyHash, exp, iat, nonce, sub, uri } = part(claims)
  const good = verify(
    "sha256",
    Buffer.from(`${head}.${claims}`),
    user.publicKey,
    Buffer.from(signature, "base64url")
  )
  if (alg !== "RS256" || !good) return -1
  const now = Date.now() / 1_000
  if (sub !== apiKey || headers["x-api-key"] !== apiKey) return -6
  if (uri !== `${url.pathname}${url.search}`) return -4
  if (!(exp > now && exp - iat < 60 && iat <= now + 1)) return -10
  if (typeof nonce !== "string" || nonces.has(nonce)) return -7
  nonces.add(nonce)
  const bytes = method === "GET" ? "" : body
  return bodyHash === createHash("sha256").update(bytes).digest("hex") ? null : -7
}

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

const hex = (value: bigint) => value.toString(16).padStart(64, "0")

const shown = ({ asset, contents, externalTxId, id, lastUpdated, status, subStatus }: Transaction) => ({
  id,
  externalTxId,
  status,
  subStatus,
  createdAt: lastUpdated,
  lastUpdated,
  operation: "RAW",
  assetId: asset.assetId,
  note: remark,
  rejectedBy: remark,
  systemMessages: [{ type: "BLOCK", message: remark }],
  signedMessages:
    status !== "COMPLETED"
      ? []
      : [...contents].reverse().map((content) => {
          const { r, s } = asset.key.sign(Buffer.from(content, "hex"))
          const low = s > order / 2n ? order - s : s
          return {
            content,
            algorithm: "MPC_ECDSA_SECP256K1",
            derivationPath: [44, 60, 0, 0, 0],
            signature: { fullSig: hex(r) + hex(low), r: hex(r), s: hex(low), v: 0 },
            publicKey: asset.key.publicKey
          }
        })
})

/** Compressed, as Fireblocks gives it unless asked otherwise. */
const compressed = ({ x, y }: Keys.Secp256k1Key) =>
  Buffer.concat([Buffer.of((y[31] ?? 0) % 2 === 0 ? 2 : 3), x]).toString("hex")

/** The service on loopback, as long as the scope lives. */
export const make = (assets: ReadonlyArray<Asset>) =>
  Effect.gen(function* () {
    const transactions: Array<Transaction> = []
    const nonces = new Set<string>()
    const find = (vaultAccountId: unknown, assetId: unknown) =>
      assets.find((asset) => asset.vaultAccountId === vaultAccountId && asset.assetId === assetId)

    const create = (body: Buffer): Server.Answer => {
      const { assetId, externalTxId, extraParameters, operation, source } = JSON.parse(body.toString())
      const { algorithm, messages } = extraParameters?.rawMessageData ?? {}
      const asset = find(source?.id, assetId)
      if (source?.type !== "VAULT_ACCOUNT" || operation !== "RAW") return failure(400, 1405)
      if (asset === undefined) return failure(404, 1004)
      const contents = (messages ?? []).map(({ content }: { content: string }) => content)
      if (algorithm !== "MPC_ECDSA_SECP256K1" || contents.length === 0 || contents.length > 127)
        return failure(400, 1427)
      if (!contents.every((content: string) => /^[0-9a-f]{64}$/.test(content))) return failure(400, 1427)
      if (typeof externalTxId !== "string" || externalTxId.length > 255) return failure(400, 1436)
      if (transactions.some((other) => other.externalTxId === externalTxId)) return failure(400, 1438)
      const made: Transaction = {
        id: randomUUID(),
        externalTxId,
        asset,
        contents,
        status: "SUBMITTED",
        subStatus: "",
        lastUpdated: Date.now()
      }
      transactions.push(made)
      made.status = running.policy(made)
      return success({ id: made.id, status: "SUBMITTED" })
    }

    const answer = (asked: Server.Asked): Server.Answer => {
      const code = unsigned(asked, nonces)
      if (code !== null) return failure(401, code)
      const path = asked.url.pathname
      if (asked.method === "POST" && path === "/v1/transactions") return create(asked.body)
      if (asked.method !== "GET") return failure(404, 404)
      const [, external] = /^\/v1\/transactions\/external_tx_id\/([^/]+)$/.exec(path) ?? []
      const [, id] = /^\/v1\/transactions\/([^/]+)$/.exec(path) ?? []
      if (external !== undefined || id !== undefined) {
        const found = transactions.find((one) => one.id === id || one.externalTxId === external)
        return found === undefined ? failure(404, 1403) : success(shown(found))
      }
      const [, vault, assetId] =
        /^\/v1\/vault\/accounts\/(\d+)\/([^/]+)\/0\/0\/public_key_info$/.exec(path) ?? []
      const asset = find(vault, assetId)
      if (asset === undefined) return failure(404, 1004)
      return success({
        status: 0,
        algorithm: asset.algorithm ?? "MPC_ECDSA_SECP256K1",
        publicKey:
          asked.url.searchParams.get("compressed") === "false" ? asset.key.publicKey : compressed(asset.key),
        derivationPath: [44, 60, Number(vault), 0, 0]
      })
    }

    const server = yield* Server.make(answer)
    const running: Fireblocks = {
      server,
      basePath: `http://127.0.0.1:${server.port}/v1`,
      transactions,
      policy: () => "COMPLETED",
      decide: (transaction, status, subStatus = "") => {
        transaction.status = status
        transaction.subStatus = subStatus
        transaction.lastUpdated = Date.now()
      }
    }
    return running
  })
