import { buffer as bytesOf } from "node:stream/consumers"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { CastellanError } from "../../../client/CastellanError.js"
import { reads, signing, writes } from "../../../client/Endpoints.js"
import * as Transport from "../../../client/Transport.js"
import * as Json from "../../../domain/json/Json.js"
import { isHttpUrl, notHttpUrl } from "../../config/FileFields.js"
import * as DevFile from "../dev/DevFile.js"
import type { DevInfo } from "../dev/DevStack.js"
import * as NoAnswer from "../support/NoAnswer.js"
import { flag, help, json, Operator, optional, report } from "../support/Operator.js"

const writing: ReadonlyArray<string> = writes
const reading: ReadonlyArray<string> = reads

/** Endpoints with a body, whose names work without one. */
const posted: ReadonlyArray<string> = [...reads, ...writes, ...signing]

/** Adds default settings for a development stack, where wallets need no money. */
const withSettings = (body: unknown, endpoint: string, dev: DevInfo | null): unknown =>
  dev === null ||
  !Predicate.isObject(body) ||
  "settings" in body ||
  !("accounts" in body || "operations" in body)
    ? body
    : {
        ...body,
        settings: {
          ...dev.settings,
          ...(["create", "execute"].includes(endpoint) && { paymaster: dev.paymaster })
        }
      }

const service = (given: string | undefined, { env }: Operator["Service"], dev: DevInfo | null) =>
  Effect.gen(function* () {
    const named = given ?? env.CASTELLAN_URL
    const baseUrl = named ?? dev?.baseUrl
    if (baseUrl === undefined)
      return yield* Effect.fail("--url or CASTELLAN_URL is to say where the service is")
    if (!isHttpUrl(baseUrl)) return yield* Effect.fail(`--url: ${notHttpUrl}`)
    // Never sends the stack's key to another service.
    const apiKey = env.CASTELLAN_API_KEY ?? (named === undefined ? dev?.apiKeys.pro : undefined)
    if (apiKey === undefined) return yield* Effect.fail("CASTELLAN_API_KEY is to hold an API key")
    // As a header it would be refused, and the error would quote it.
    if (!/^[\x21-\x7e]+$/.test(apiKey))
      return yield* Effect.fail("CASTELLAN_API_KEY is to hold an API key, and holds what none has")
    return { baseUrl, apiKey }
  })

const standardInput = Effect.flatMap(
  Effect.promise(() => bytesOf(process.stdin)),
  (bytes) =>
    Effect.try({
      try: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
      catch: () => "the body is not well-formed UTF-8"
    })
)

/** Passes faults on for the service to refuse, such as duplicate names or numbers that lose digits. */
const bodyOf = (given: string | undefined): Effect.Effect<unknown, string> =>
  given === undefined
    ? Effect.succeed(undefined)
    : Effect.flatMap(given === "@-" ? standardInput : Effect.succeed(given), (text) =>
        Effect.fromResult(
          Result.mapError(Json.parse(text, Json.unbounded), ({ kind, message, path }) =>
            kind === "malformed"
              ? "the body is not JSON"
              : `the body is not valid: ${path === "" ? "" : `${path}: `}${message}`
          )
        )
      )

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const

const methodOf = (given: Transport.Exchange["method"] | undefined, endpoint: string, body: unknown) =>
  given ?? (body !== undefined || posted.includes(endpoint) ? "POST" : "GET")

/** Whether a retry after a lost response is safe. A second POST of webhooks or watches would add another one. */
const repeatable = (method: Transport.Exchange["method"], endpoint: string): boolean =>
  method === "POST"
    ? writing.includes(endpoint) || reading.includes(endpoint)
    : method !== "DELETE" || endpoint.startsWith("requests/")

const failureText = (error: unknown, baseUrl: string): string => {
  if (!(error instanceof CastellanError)) return String(error)
  const { code, idempotencyKey, requestId, status } = error
  const why = status === 0 ? NoAnswer.reason(error.cause) : null
  const about = [
    ...(status === 0 ? [] : [`HTTP ${status}`]),
    code,
    ...(why === null ? [] : [why]),
    ...(requestId === null ? [] : [`request ${requestId}`]),
    ...(idempotencyKey === null ? [] : [`idempotency key ${idempotencyKey}`])
  ]
  const place = status === 0 ? ` at ${new URL(baseUrl).origin}` : ""
  return `${error.message}${place} (${about.join(", ")})`
}

const flags = {
  url: optional(
    "url",
    "URL",
    "where the service is; default: CASTELLAN_URL, else the development stack of the working folder"
  ),
  method: Flag.Literals("method", methods).pipe(
    Flag.withDescription("default: POST for endpoints with a body, otherwise GET"),
    Flag.withDefault(undefined)
  ),
  idempotencyKey: optional(
    "idempotency-key",
    "KEY",
    "of a write; default: a random key, which the command also uses to repeat a request whose answer was lost"
  ),
  async: flag("async", "a write is answered when it is accepted")
}

export const commands = [
  Command.make("call", {
    endpoint: Argument.String("ENDPOINT").pipe(
      Argument.withDescription("its path: execute, networks, requests?limit=5")
    ),
    body: Argument.String("JSON").pipe(
      Argument.withDescription("the body; @- for standard input"),
      Argument.withDefault(undefined)
    ),
    ...flags,
    json
  }).pipe(
    help(
      "Calls an endpoint of a running service: JSON in, JSON out. Retries only calls that a repeat cannot do twice; writes have an idempotency key.",
      "networks",
      `predict '{"accounts": [{"salt": "bob", "walletCustody": 1}], "settings": {...}}'`,
      "execute @- < operations.json",
      "requests/5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77",
      "requests/5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --method DELETE",
      `webhooks/5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --method PATCH '{"state": "paused"}'`
    ),
    report(function* ({ async, body: given, endpoint: path, idempotencyKey, method, url }) {
      const operator = yield* Operator
      const dev = DevFile.read(process.cwd())
      const to = yield* service(url, operator, dev)
      const target = path.replace(/^\/+/, "")
      const [endpoint = ""] = target.split("?")
      const read = yield* bodyOf(given)
      const body = withSettings(
        read,
        endpoint,
        url === undefined && operator.env.CASTELLAN_URL === undefined ? dev : null
      )
      const isWrite = writing.includes(endpoint)
      if (!isWrite && (async || idempotencyKey !== undefined))
        return yield* Effect.fail(`--async and --idempotency-key are for writes: ${writes.join(", ")}`)
      const asked = methodOf(method, endpoint, body)
      const exchange: Transport.Exchange = {
        method: asked,
        path: `/${target}`,
        ...(posted.includes(endpoint) ? { body: body ?? {} } : body !== undefined && { body }),
        headers: async ? { prefer: "respond-async" } : {},
        idempotencyKey: isWrite ? (idempotencyKey ?? crypto.randomUUID()) : null,
        repeatable: repeatable(asked, endpoint)
      }
      const { body: answer } = yield* Effect.tryPromise({
        try: (signal) => Transport.make(to)({ ...exchange, signal }),
        catch: (error) => failureText(error, to.baseUrl)
      })
      return { json: answer, text: JSON.stringify(answer, null, 2) }
    })
  )
]

export const notes = [
  "The API key is never an option, which others could read in the list of processes.",
  "In a folder where castellan dev runs neither URL nor key is needed, and a body of accounts or operations without settings gets those of that stack.",
  "It ends with 1 where the service answers none of 200 and 202: the reason, its code and what to ask with again are on standard error."
]

export const environment = [
  "CASTELLAN_URL says where the service is, unless --url does.",
  "CASTELLAN_API_KEY holds the API key."
]
