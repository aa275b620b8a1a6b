import { createHash, timingSafeEqual } from "node:crypto"
import * as http from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Effect from "effect/Effect"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type * as UnstickLane from "../../application/operate/UnstickLane.js"
import type { Entry, Question } from "../../application/ports/AuditLog.js"
import type { Lane } from "../../application/ports/journal/Transactions.js"
import { maxReason, reasonOfCommand } from "../../application/ports/operator/OperatorLog.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as HostPattern from "../../domain/net/HostPattern.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { quote } from "../../domain/primitives/InvalidValue.js"
import type { Operator } from "../config/OperationsFile.js"
import { ListenError, type Listening, listening } from "../http/server/Server.js"
import * as Console from "./Console.js"
import type { Data } from "./Data.js"

/** The operator's port: metrics, the audit log, repricing of this process's lanes, and the console. */
export interface Options {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** The token of one of them is required in every request as `Authorization: Bearer`. */
  readonly operators: ReadonlyArray<Operator>
  /** Allowed Host names in addition to loopback's; other names are refused, against DNS rebinding. */
  readonly hosts: ReadonlyArray<HostPattern.HostPattern>
  /** Whether a link with the token signs in to the console: for development, since browsers keep links. */
  readonly linked: boolean
  readonly data: Data
}

type Response = HttpServerResponse.HttpServerResponse

const json = (status: number, value: unknown): Response =>
  HttpServerResponse.text(`${JSON.stringify(value)}\n`, { status, contentType: "application/json" })

const refuse = (status: number, error: string, headers: Readonly<Record<string, string>> = {}): Response =>
  HttpServerResponse.setHeaders(json(status, { error }), headers)

const loopback = ["localhost", "127.0.0.1", "::1"].map((text) => Result.getOrThrow(HostPattern.parse(text)))

/** Hashes give equal lengths, so that the comparison takes constant time. */
const digest = (text: string): Buffer => createHash("sha256").update(text, "utf8").digest()

/** The operator with this token. Compares every token, so that the time reveals no match. */
const operatorOf =
  ({ operators }: Pick<Options, "operators">) =>
  (sent: string): string | null => {
    const hash = digest(sent)
    const found = operators.filter(({ token }) => timingSafeEqual(hash, digest(Redacted.value(token))))
    return found[0]?.name ?? null
  }

const isNamed = ({ headers }: HttpServerRequest.HttpServerRequest, { hosts }: Options): boolean =>
  HostPattern.matches([...loopback, ...hosts], headers.host ?? "")

/** The operator who sends this; a refusal of other sites' pages and of requests without an operator's token. */
const senderOf = ({ headers }: HttpServerRequest.HttpServerRequest, options: Options): string | Response => {
  const { authorization = "", origin } = headers
  // Browsers send the origin of a page's request; tools send nothing.
  const site = headers["sec-fetch-site"]
  if (origin !== undefined || (site !== undefined && site !== "none" && site !== "same-origin"))
    return refuse(403, "not for pages of other sites")
  const [, sent = ""] = /^Bearer (.+)$/.exec(authorization) ?? []
  const operator = operatorOf(options)(sent)
  return operator === null
    ? refuse(401, "the operator's token is missing or wrong", { "www-authenticate": "Bearer" })
    : operator
}

const millisOf = (text: string): number | null => {
  const millis = /^[0-9]{1,15}$/.test(text) ? Number(text) : Date.parse(text)
  return Number.isFinite(millis) ? millis : null
}

/** Parses the query of `/audit`. `Failure` names the parameter. */
export const question = (query: URLSearchParams): Result.Result<Question, string> => {
  const asked: { -readonly [K in keyof Question]: Question[K] } = { limit: 100 }
  for (const [name, value] of query) {
    switch (name) {
      case "account":
      case "request":
        // PostgreSQL rejects such text, and no id contains it.
        if (value.includes("\0")) return Result.fail(`${name}: expected no null character`)
        if (name === "account") asked.accountId = value as AccountId
        else asked.requestId = value
        break
      case "signer": {
        const address = Address.from(value)
        if (Result.isFailure(address)) return Result.fail(`signer: ${address.failure.message}`)
        asked.signer = address.success
        break
      }
      case "hash":
        if (!/^0x[0-9a-fA-F]{64}$/.test(value)) return Result.fail("hash: expected 0x and 64 hex digits")
        asked.hash = Hex.unsafe32(value.toLowerCase())
        break
      case "from":
      case "to": {
        const millis = millisOf(value)
        if (millis === null)
          return Result.fail(`${name}: expected an ISO 8601 time or Unix milliseconds, got ${quote(value)}`)
        asked[name] = millis
        break
      }
      case "before":
        if (!/^[0-9]{1,15}$/.test(value))
          return Result.fail(`before: expected the number of an entry, got ${quote(value)}`)
        asked.before = BigInt(value)
        break
      case "limit": {
        const limit = Number(value)
        if (!Number.isInteger(limit) || limit < 1 || limit > 1_000)
          return Result.fail(`limit: expected an integer from 1 to 1000, got ${quote(value)}`)
        asked.limit = limit
        break
      }
      default:
        return Result.fail(`${name}: expected account, request, signer, hash, from, to, before or limit`)
    }
  }
  return Result.succeed(asked)
}

export const shown = (entry: Entry) => ({
  ...entry,
  number: entry.number.toString(),
  at: new Date(entry.at).toISOString(),
  chainId: entry.chainId?.toString() ?? null,
  nonce: entry.nonce?.toString() ?? null
})

/** The lane and the reason of `/lanes/unstick`. `Failure` names the parameter. */
const laneOf = (
  query: URLSearchParams
): Result.Result<{ readonly lane: Lane; readonly dryRun: boolean; readonly reason: string }, string> => {
  const {
    chain = "",
    dryRun = "false",
    reason = reasonOfCommand,
    signer: text = "",
    ...others
  } = Object.fromEntries(query)
  const [other] = Object.keys(others)
  if (other !== undefined) return Result.fail(`${other}: expected chain, signer, dryRun or reason`)
  if (!/^[1-9][0-9]{0,15}$/.test(chain))
    return Result.fail(`chain: expected a chain id, a decimal number, got ${quote(chain)}`)
  if (!["true", "false"].includes(dryRun)) return Result.fail("dryRun: expected true or false")
  if (reason.includes("\0") || reason.length > maxReason)
    return Result.fail(`reason: expected at most ${maxReason} characters, none null`)
  return Result.mapBoth(Address.from(text), {
    onFailure: ({ message }) => `signer: ${message}`,
    onSuccess: (signer) => ({ lane: { chainId: BigInt(chain), signer }, dryRun: dryRun === "true", reason })
  })
}

const unstuckBody = ({ left, replaced }: UnstickLane.Unstuck) => ({
  replaced: replaced.map(({ maxFeePerGas, maxPriorityFeePerGas, newTxHash, nonce, oldTxHash }) => ({
    nonce: Number(nonce),
    oldTxHash,
    newTxHash,
    maxFeePerGas: maxFeePerGas.toString(),
    maxPriorityFeePerGas: maxPriorityFeePerGas.toString()
  })),
  left: left.map(({ nonce, reason }) => ({ nonce: Number(nonce), reason }))
})

/** Keeps the service's metrics and drops the runtime's. */
const own = (text: string): string => text.replace(/^(?!(?:# \w+ )?castellan_).*\n/gm, "")

interface Route {
  readonly method: "GET" | "POST"
  readonly answer: (query: URLSearchParams, operator: string) => Effect.Effect<Response>
}

const routes = ({ data: { audit, operators, refresh, unstick } }: Options): ReadonlyMap<string, Route> =>
  new Map<string, Route>([
    [
      "/metrics",
      {
        method: "GET",
        answer: () =>
          Effect.map(Effect.andThen(refresh, PrometheusMetrics.format()), (text) =>
            HttpServerResponse.text(own(text), { contentType: "text/plain; version=0.0.4; charset=utf-8" })
          )
      }
    ],
    [
      "/audit",
      {
        method: "GET",
        answer: (query) =>
          Result.match(question(query), {
            onFailure: (wrong) => Effect.succeed(refuse(400, wrong)),
            onSuccess: (question) =>
              Effect.match(audit.find(question), {
                onFailure: () => refuse(503, "the audit log cannot be read"),
                onSuccess: (entries) => json(200, { entries: entries.map(shown) })
              })
          })
      }
    ],
    [
      "/lanes/unstick",
      {
        method: "POST",
        answer: (query, operator) =>
          Result.match(laneOf(query), {
            onFailure: (wrong) => Effect.succeed(refuse(400, wrong)),
            onSuccess: ({ dryRun, lane, reason }) =>
              Effect.match(
                Effect.andThen(
                  dryRun
                    ? Effect.void
                    : operators.record({
                        operator,
                        act: "unstick",
                        subject: `lane ${lane.chainId} ${lane.signer}`,
                        reason
                      }),
                  unstick(lane, dryRun)
                ),
                {
                  onFailure: ({ message }) => refuse(503, message),
                  onSuccess: (unstuck) => json(200, unstuckBody(unstuck))
                }
              )
          })
      }
    ]
  ])

const route = (
  { method, url }: HttpServerRequest.HttpServerRequest,
  known: ReadonlyMap<string, Route>,
  operator: string
): Effect.Effect<Response> => {
  const { pathname, searchParams } = new URL(url, "http://admin.invalid")
  const route = known.get(pathname)
  const expected = route?.method ?? "GET"
  const allowed = expected === "GET" ? ["GET", "HEAD"] : [expected]
  if (!allowed.includes(method))
    return Effect.succeed(refuse(405, `expected ${expected}`, { allow: allowed.join(", ") }))
  // Stops when the client leaves.
  return route === undefined
    ? Effect.succeed(refuse(404, "expected /metrics, /audit, /lanes/unstick or /console"))
    : Effect.interruptible(route.answer(searchParams, operator))
}

const commonHeaders = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'"
}

/** The console, including the root path. */
const isPage = (url: string): boolean => /^\/(?:console(?:[/?]|$)|(?:\?|$))/.test(url)

const app = (options: Options): Console.App => {
  const known = routes(options)
  const pages = Console.app(options.data, operatorOf(options), options.linked)
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    if (!isNamed(request, options))
      return Effect.succeed(
        refuse(
          421,
          "this port is not served under that name or address: admin.hosts of the configuration names others"
        )
      )
    if (isPage(request.url)) return pages
    const sender = senderOf(request, options)
    return typeof sender === "string" ? route(request, known, sender) : Effect.succeed(sender)
  }).pipe(
    Effect.catchCause((cause) =>
      Effect.as(Effect.logError("operator request failed", cause), refuse(500, "internal error"))
    ),
    Effect.map((response) =>
      HttpServerResponse.setHeaders(response, { ...commonHeaders, ...response.headers })
    )
  )
}

const limits = { maxHeaderSize: 16_384, requestTimeout: 10_000, headersTimeout: 10_000 }

/** Listens until the scope closes. */
export const serve = (options: Options): Effect.Effect<Listening, ListenError, Scope.Scope> =>
  Effect.gen(function* () {
    const server = http.createServer(limits)
    server.maxConnections = 64
    const { serve } = yield* Effect.mapError(
      NodeHttpServer.make(() => server, {
        host: options.host,
        port: options.port,
        disablePreemptiveShutdown: true
      }),
      ({ cause }) => {
        const { code = "", message } = cause as NodeJS.ErrnoException
        return new ListenError({ code, message: `the operator's port: ${message}` })
      }
    )
    yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
    // Connections that the system could not accept; the service's port logs them.
    server.on("error", () => {})
    // Excludes the operator's requests from traces.
    yield* Effect.provideService(serve(app(options)), HttpMiddleware.TracerDisabledWhen, () => true)
    return listening(server, options)
  })
