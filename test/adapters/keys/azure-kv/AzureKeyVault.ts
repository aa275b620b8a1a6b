import type { AgentOptions } from "node:https"
import * as Certificate from "../../../support/kms/Certificate.js"
import type * as Keys from "../../../support/kms/Keys.js"
import * as Server from "../../../support/kms/Server.js"

/** A key vault as it answers over REST: a challenge first, then bearer tokens; and the authority that gives them out. */

const host = "castellan-test.vault.azure.net"
const authority = "login.castellan-test.net"
export const tenantId = "72f988bf-0000-4000-8000-2d7cd011db47"
export const clientId = "11111111-2222-4333-8444-555555555555"
export const clientSecret = "client~secret.nobody-knows"
export const token = "token-of-the-vault"

/** Part of every message of an error: it must not come out of the adapter. */
export const remark = "Caller: appid=operator is not authorized"

export interface Key {
  readonly name: string
  readonly version: string
  readonly key: Keys.StoredKey
  readonly curve: "P-256K" | "P-256"
  readonly enabled: boolean
  readonly allowed: boolean
  readonly operations: ReadonlyArray<string>
  /** Seconds. */
  readonly expires?: number
}

export const version = "0123456789abcdef0123456789abcdef"

export const key = (name: string, stored: Keys.StoredKey, more: Partial<Key> = {}): Key => ({
  name,
  version,
  key: stored,
  curve: stored.kind === "p256" ? "P-256" : "P-256K",
  enabled: true,
  allowed: true,
  operations: ["sign", "verify"],
  ...more
})

const json = { "content-type": "application/json; charset=utf-8" }

export const failure = (status: number, code: string, inner?: string): Server.Answer => ({
  status,
  headers: json,
  body: JSON.stringify({
    error: {
      code,
      message: `${remark} (${code})`,
      ...(inner === undefined ? {} : { innererror: { code: inner } })
    }
  })
})

const success = (body: object): Server.Answer => ({ status: 200, headers: json, body: JSON.stringify(body) })

export const challenge: Server.Answer = {
  status: 401,
  headers: {
    ...json,
    "www-authenticate": `Bearer authorization="https://login.microsoftonline.com/${tenantId}", resource="https://vault.azure.net"`
  },
  body: failure(401, "Unauthorized").body
}

/** RFC 6749, 4.4: the application shows its secret. */
const authorise = ({ body, method, url }: Server.Asked): Server.Answer => {
  if (url.pathname.endsWith("/v2.0/.well-known/openid-configuration"))
    return success({
      token_endpoint: `https://${url.host}/${tenantId}/oauth2/v2.0/token`,
      authorization_endpoint: `https://${url.host}/${tenantId}/oauth2/v2.0/authorize`,
      end_session_endpoint: `https://${url.host}/${tenantId}/oauth2/v2.0/logout`,
      jwks_uri: `https://${url.host}/${tenantId}/discovery/v2.0/keys`,
      issuer: `https://${url.host}/${tenantId}/v2.0`
    })
  const form = new URLSearchParams(body.toString())
  const wrong = (status: number, error: string): Server.Answer => ({
    status,
    headers: json,
    body: JSON.stringify({ error, error_description: `AADSTS7000215: ${remark}`, error_codes: [7_000_215] })
  })
  if (method !== "POST" || url.pathname !== `/${tenantId}/oauth2/v2.0/token`) return wrong(404, "not_found")
  if (form.get("client_id") !== clientId || form.get("client_secret") !== clientSecret)
    return wrong(401, "invalid_client")
  if (form.get("grant_type") !== "client_credentials") return wrong(400, "unsupported_grant_type")
  if (form.get("scope")?.includes("https://vault.azure.net/.default") !== true)
    return wrong(400, "invalid_scope")
  return success({ token_type: "Bearer", expires_in: 3_599, ext_expires_in: 3_599, access_token: token })
}

const answer =
  (keys: ReadonlyArray<Key>) =>
  (asked: Server.Asked): Server.Answer => {
    const { body, headers, method, url } = asked
    if (url.hostname === authority) return authorise(asked)
    if (headers.authorization !== `Bearer ${token}`) return challenge
    if (!/^\d{4}-\d\d-\d\d$/.test(url.searchParams.get("api-version") ?? ""))
      return failure(400, "BadParameter")
    const [, folder, name, asks = "", action = ""] = url.pathname.split("/")
    const wanted = asks === "sign" ? "" : asks
    const found = keys.find((each) => each.name === name && (wanted === "" || each.version === wanted))
    if (folder !== "keys" || found === undefined) return failure(404, "KeyNotFound")
    if (!found.allowed) return failure(403, "Forbidden", "ForbiddenByRbac")
    const { key: stored } = found
    const kid = `https://${host}:${url.port}/keys/${found.name}/${found.version}`
    if (method === "GET" && action === "")
      return success({
        key: {
          kid,
          ...(stored.kind === "rsa"
            ? { kty: "RSA", n: "AQAB", e: "AQAB" }
            : {
                kty: "EC",
                crv: found.curve,
                x: stored.spki.subarray(-64, -32).toString("base64url"),
                y: stored.spki.subarray(-32).toString("base64url")
              }),
          key_ops: found.operations
        },
        attributes: {
          enabled: found.enabled,
          created: 1_700_000_000,
          updated: 1_700_000_000,
          recoveryLevel: "Recoverable",
          ...(found.expires === undefined ? {} : { exp: found.expires })
        }
      })
    if (method !== "POST" || (action || asks) !== "sign") return failure(405, "MethodNotAllowed")
    if (body.length === 0) return failure(400, "BadParameter")
    const { alg, value } = JSON.parse(body.toString())
    const digest = Buffer.from(value ?? "", "base64url")
    if (!found.enabled) return failure(403, "Forbidden", "KeyDisabled")
    if (!found.operations.includes("sign")) return failure(403, "Forbidden", "KeyOperationForbidden")
    if (alg !== "ES256K" || digest.length !== 32 || stored.kind !== "secp256k1")
      return failure(400, "BadParameter")
    const { r, s } = stored.sign(digest)
    const compact = Buffer.from(r.toString(16).padStart(64, "0") + s.toString(16).padStart(64, "0"), "hex")
    return success({ kid, value: compact.toString("base64url") })
  }

const tls = Certificate.selfSigned([host, authority])

/** Trusts only the stand-in's certificate, and resolves its host names to loopback. */
export const agentOptions: AgentOptions = {
  ca: tls.cert,
  lookup: (_name, options, done) =>
    options.all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4)
}

export const vaultUrl = ({ port }: Server.Server) => `https://${host}:${port}`
export const authorityHost = ({ port }: Server.Server) => `https://${authority}:${port}`

/** The service on loopback, as long as the scope lives. */
export const make = (keys: ReadonlyArray<Key>) => Server.make(answer(keys), tls)
