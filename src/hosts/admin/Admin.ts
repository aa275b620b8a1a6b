import { createHash, timingSafeEqual } from "node:crypto"
import * as http from "node:http"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Runtime from "effect/Runtime"
import type * as Scope from "effect/Scope"
import type { AuditLog, Entry, Question } from "../../application/ports/AuditLog.js"
import type { Lane } from "../../application/ports/journal/Transactions.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import type * as UnstickLane from "../../application/usecases/operator/UnstickLane.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { ListenError, type Listening } from "../node/server/Server.js"
import * as Prometheus from "./Prometheus.js"

/** The operator's own port: figures, the audit log, and new prices for the lanes of this process. */
export interface Options {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** What every request has to bring as `Authorization: Bearer`. */
  readonly token: Redacted.Redacted<string>
  /** Names under which it may be asked for, beside loopback's: a page that has another name resolve to it gets nothing. */
  readonly hosts: ReadonlyArray<string>
  /** Brings gauges up to date, before they are read. */
  readonly refresh: Effect.Effect<void>
  readonly audit: Pick<AuditLog["Type"], "find">
  readonly unstick: (
    lane: Lane,
    dryRun: boolean
  ) => Effect.Effect<UnstickLane.Unstuck, { readonly message: string }>
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

const json = (status: number, value: unknown): Answer => ({
  status,
  type: "application/json",
  body: `${JSON.stringify(value)}\n`
})

const refuse = (status: number, error: string, headers: Readonly<Record<string, string>> = {}): Answer => ({
  ...json(status, { error }),
  headers
})

const loopback = ["localhost", "127.0.0.1", "[::1]"]

/** Of equal length whatever was sent, so that the comparison takes one time. */
const digest = (text: string): Buffer => createHash("sha256").update(text, "utf8").digest()

/** Why the request is not listened to; null: it is. */
const stranger = (request: http.IncomingMessage, { hosts, token }: Options): Answer | null => {
  const { authorization = "", host = "", origin } = request.headers
  const name = host.replace(/:[0-9]+$/, "").toLowerCase()
  if (![...loopback, ...hosts.map((own) => own.toLowerCase())].includes(name))
    return refuse(421, "this port is not served under that name")
  // Browsers say where a page's request comes from; tools say nothing.
  const site = request.headers["sec-fetch-site"]
  if (origin !== undefined || (site !== undefined && site !== "none" && site !== "same-origin"))
    return refuse(403, "not for pages of other sites")
  const [, sent = ""] = /^Bearer (.+)$/.exec(authorization) ?? []
  if (!timingSafeEqual(digest(sent), digest(Redacted.value(token))))
    return refuse(401, "the operator's token is missing or wrong", { "www-authenticate": "Bearer" })
  return null
}

const millisOf = (text: string): number | null => {
  const millis = /^[0-9]{1,15}$/.test(text) ? Number(text) : Date.parse(text)
  return Number.isFinite(millis) ? millis : null
}

/** What the query of `/audit` asks for. `Left` names the parameter. */
export const question = (query: URLSearchParams): Either.Either<Question, string> => {
  const asked: { -readonly [K in keyof Question]: Question[K] } = { limit: 100 }
  for (const [name, value] of query) {
    switch (name) {
      case "account":
        asked.accountId = value as AccountId
        break
      case "request":
        asked.requestId = value
        break
      case "signer": {
        const address = Address.from(value)
        if (Either.isLeft(address)) return Either.left(`signer: ${address.left.message}`)
        asked.signer = address.right
        break
      }
      case "hash":
        if (!/^0x[0-9a-fA-F]{64}$/.test(value)) return Either.left("hash: expected 0x and 64 hex digits")
        asked.hash = Hex.unsafe32(value.toLowerCase())
        break
      case "from":
      case "to": {
        const millis = millisOf(value)
        if (millis === null) return Either.left(`${name}: expected an ISO 8601 time or Unix milliseconds`)
        asked[name] = millis
        break
      }
      case "before":
        if (!/^[0-9]{1,15}$/.test(value)) return Either.left("before: expected the number of an entry")
        asked.before = BigInt(value)
        break
      case "limit": {
        const limit = Number(value)
        if (!Number.isInteger(limit) || limit < 1 || limit > 1_000)
          return Either.left("limit: expected an integer from 1 to 1000")
        asked.limit = limit
        break
      }
      default:
        return Either.left(`${name}: expected account, request, signer, hash, from, to, before or limit`)
    }
  }
  return Either.right(asked)
}

/** An entry as JSON shows it. */
export const shown = (entry: Entry) => ({
  ...entry,
  number: entry.number.toString(),
  at: new Date(entry.at).toISOString(),
  chainId: entry.chainId?.toString() ?? null,
  nonce: entry.nonce?.toString() ?? null
})

/** Which lane `/lanes/unstick` is for. `Left` names the parameter. */
const laneOf = (
  query: URLSearchParams
): Either.Either<{ readonly lane: Lane; readonly dryRun: boolean }, string> => {
  const { chain = "", dryRun = "false", signer: text = "", ...others } = Object.fromEntries(query)
  const [other] = Object.keys(others)
  if (other !== undefined) return Either.left(`${other}: expected chain, signer or dryRun`)
  if (!/^[1-9][0-9]{0,15}$/.test(chain)) return Either.left("chain: expected a chain id, a decimal number")
  if (!["true", "false"].includes(dryRun)) return Either.left("dryRun: expected true or false")
  return Either.mapBoth(Address.from(text), {
    onLeft: ({ message }) => `signer: ${message}`,
    onRight: (signer) => ({ lane: { chainId: BigInt(chain), signer }, dryRun: dryRun === "true" })
  })
}

/** New prices as JSON shows them. */
const told = ({ left, replaced }: UnstickLane.Unstuck) => ({
  replaced: replaced.map(({ maxFeePerGas, maxPriorityFeePerGas, newTxHash, nonce, oldTxHash }) => ({
    nonce: Number(nonce),
    oldTxHash,
    newTxHash,
    maxFeePerGas: maxFeePerGas.toString(),
    maxPriorityFeePerGas: maxPriorityFeePerGas.toString()
  })),
  left: left.map(({ nonce, reason }) => ({ nonce: Number(nonce), reason }))
})

const methods: Readonly<Record<string, ReadonlyArray<string>>> = { "/lanes/unstick": ["POST"] }

const answer = (request: http.IncomingMessage, options: Options): Effect.Effect<Answer> =>
  Effect.gen(function* () {
    const refused = stranger(request, options)
    if (refused !== null) return refused
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://admin.invalid")
    const allowed = methods[pathname] ?? ["GET", "HEAD"]
    if (!allowed.includes(request.method ?? ""))
      return refuse(405, `expected ${allowed[0]}`, { allow: allowed.join(", ") })
    switch (pathname) {
      case "/metrics":
        yield* options.refresh
        return { status: 200, type: Prometheus.contentType, body: yield* Prometheus.text }
      case "/audit": {
        const asked = question(searchParams)
        if (Either.isLeft(asked)) return refuse(400, asked.left)
        return yield* Effect.match(options.audit.find(asked.right), {
          onFailure: () => refuse(503, "the audit log can not be read"),
          onSuccess: (entries) => json(200, { entries: entries.map(shown) })
        })
      }
      case "/lanes/unstick": {
        const asked = laneOf(searchParams)
        if (Either.isLeft(asked)) return refuse(400, asked.left)
        const { dryRun, lane } = asked.right
        return yield* Effect.match(options.unstick(lane, dryRun), {
          onFailure: ({ message }) => refuse(503, message),
          onSuccess: (unstuck) => json(200, told(unstuck))
        })
      }
      default:
        return refuse(404, "expected /metrics, /audit or /lanes/unstick")
    }
  }).pipe(
    Effect.catchAllCause((cause) =>
      Effect.as(Effect.logError("a request of the operator failed", cause), refuse(500, "internal error"))
    )
  )

/** Listens until the scope closes. */
export const serve = (options: Options): Effect.Effect<Listening, ListenError, Scope.Scope> =>
  Effect.gen(function* () {
    const run = Runtime.runPromise(yield* Effect.runtime())
    const server = http.createServer(
      { maxHeaderSize: 16_384, requestTimeout: 10_000, headersTimeout: 10_000 },
      (request, response) => {
        request.resume()
        void run(answer(request, options)).then(({ body, headers, status, type }) => {
          response.writeHead(status, {
            "content-type": type,
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
            ...headers
          })
          response.end(request.method === "HEAD" ? undefined : body)
        })
      }
    )
    server.maxConnections = 64
    yield* Effect.acquireRelease(
      Effect.async<void, ListenError>((resume) => {
        server.once("error", (error: NodeJS.ErrnoException) =>
          resume(
            Effect.fail(
              new ListenError({ code: error.code ?? "", message: `the operator's port: ${error.message}` })
            )
          )
        )
        server.listen(options.port, options.host, () => resume(Effect.void))
      }),
      () =>
        Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const at = server.address()
    const port = typeof at === "object" && at !== null ? at.port : options.port
    const host = options.host.includes(":") ? `[${options.host}]` : options.host
    return { host: options.host, port, url: `http://${host}:${port}` }
  })
