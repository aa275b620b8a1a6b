import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { EventStream } from "../../../src/application/endpoints/operations/EventStream.js"
import { type Code, catalogue } from "../../../src/application/failures/Catalogue.js"
import { type Allowance, RateLimit } from "../../../src/application/ports/RateLimit.js"
import { type AccountId, type Principal, Tenants } from "../../../src/application/ports/Tenants.js"
import * as Statuses from "../../../src/hosts/http/message/Statuses.js"
import * as Server from "../../../src/hosts/http/server/Server.js"
import type { Handlers } from "../../../src/hosts/http/service/Groups.js"
import * as HttpService from "../../../src/hosts/http/service/HttpService.js"
import * as Conformance from "./Conformance.js"
import { endpoints } from "./Contract.js"

export const key = randomBytes(32).toString("hex")
export const pausedKey = randomBytes(32).toString("hex")
export const readOnlyKey = randomBytes(32).toString("hex")

/** The id of another key of acme. */
export const otherKeyId = "21ca2b88d8bd"

const principal = (id: string, change: Partial<Principal> = {}): Principal => ({
  accountId: id as AccountId,
  name: id,
  tier: "pro",
  // More than a key may have: the tests send every request with one key.
  scopes: new Set(["read", "write", "sign", "webhooks", "policies", "treasury"]),
  paused: false,
  keyId: null,
  ...change
})

const principals = new Map([
  [key, principal("acme")],
  [pausedKey, principal("paused", { paused: true })],
  [readOnlyKey, principal("reader", { scopes: new Set(["read"]) })]
])

export const accounts = Layer.succeed(Tenants, {
  authenticate: (given) => Effect.succeed(principals.get(Redacted.value(given)) ?? null),
  hasKey: (account, keyId) => Effect.succeed(account === "acme" && keyId === otherKeyId)
})

export const unlimited: Allowance = { allowed: true, limit: 300, remaining: 299, resetSeconds: 30 }

export const rateLimit = (allowance: () => Allowance) =>
  Layer.succeed(RateLimit, { take: () => Effect.sync(allowance) })

type All = Handlers<never>

const shown = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../../docs/examples/${name}.json`, import.meta.url), "utf8")).answer

/** Use cases that return the reference's example immediately, with the request's names. */
export const handlers = {
  ...(Object.fromEntries<() => Effect.Effect<unknown>>(
    endpoints
      .filter(({ name, withKey }) => withKey && name !== "streamEvents")
      .map(({ name, success }) => [
        name,
        () => Effect.succeed(Schema.decodeUnknownSync(success)(shown(name)))
      ])
  ) as { readonly [Name in keyof All]: () => Effect.Effect<Effect.Success<ReturnType<All[Name]>>> }),
  predict: (_, request) =>
    Effect.succeed(
      request.accounts.map(({ salt }) => ({ salt, wallet: `0x${"22".repeat(20)}`, error: null }))
    ),
  getRequest: (_, { requestId }) =>
    Effect.succeed({
      requestId,
      endpoint: "/execute",
      state: "pending" as const,
      acceptedAt: 1,
      metadata: {},
      notBefore: null,
      progress: { total: 1, waiting: 1, sent: 0, succeeded: 0, failed: 0 },
      txHashes: [],
      previews: null,
      policies: [],
      delay: null,
      httpStatus: null,
      answer: null
    }),
  streamEvents: () => Effect.succeed(new EventStream(null))
} satisfies All

export interface Started extends Server.Listening {
  readonly front: HttpService.HttpService
}

export interface StartOptions {
  readonly handlers?: Partial<Handlers<never>>
  readonly front?: HttpService.Options
  readonly server?: Partial<Server.Options>
  readonly allowance?: () => Allowance
}

/** The front over these use cases. */
export const makeFront = (options: StartOptions = {}): Effect.Effect<HttpService.HttpService> => {
  const all: Handlers<never> = { ...handlers, ...options.handlers }
  const ports = Layer.merge(accounts, rateLimit(options.allowance ?? (() => unlimited)))
  // All tests of a file share one address, and many requests have no key.
  return HttpService.make(all, { anonymousPerMinute: 1_000_000, ...options.front }).pipe(
    Effect.provide(ports)
  )
}

/** A request without a socket. */
export interface Asked {
  readonly method?: string
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly remoteAddress?: string | null
  readonly body?: NonNullable<RequestInit["body"]>
}

/** The answer to a request without a socket, its body unread. */
export const respond = (
  { app }: HttpService.HttpService,
  { body, headers = {}, method = "GET", remoteAddress = null, target }: Asked
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const init = { method, headers, ...(body !== undefined && { body, duplex: "half" }) }
  const request = HttpServerRequest.fromWeb(new Request("http://x", init as RequestInit)).modify({
    url: target,
    remoteAddress: Option.fromNullishOr(remoteAddress)
  })
  return Effect.scoped(Effect.provideService(app, HttpServerRequest.HttpServerRequest, request))
}

/** Likewise, with the body read to its end. */
export const ask = (front: HttpService.HttpService, asked: Asked): Effect.Effect<Answered> =>
  Effect.flatMap(respond(front, asked), (response) =>
    Effect.promise(async () => {
      const { headers, status } = response
      return { status, headers: new Headers(headers), text: await HttpServerResponse.toWeb(response).text() }
    })
  )

/** The front behind a real node server on a free port, until the scope closes. */
export const start = (options: StartOptions = {}): Effect.Effect<Started, never, Scope.Scope> =>
  Effect.gen(function* () {
    const front = yield* makeFront(options)
    const listening = yield* Effect.orDie(
      Server.serve(front, { host: "127.0.0.1", port: 0, ...options.server })
    )
    return { ...listening, front }
  })

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Sends a request like a well-behaved client with the account's key; `init` overrides parts. */
export const send = (url: string, path: string, init: RequestInit = {}): Effect.Effect<Answered> =>
  Effect.promise(async () => {
    const headers = new Headers({ "content-type": "application/json", "x-api-key": key })
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value)
    const response = await fetch(`${url}${path}`, { method: "POST", ...init, headers })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

export const post = (url: string, path: string, body: unknown): Effect.Effect<Answered> =>
  send(url, path, { body: JSON.stringify(body) })

const Envelope = Schema.fromJsonString(
  Schema.StructWithRest(
    Schema.Struct({
      error: Schema.NonEmptyString,
      code: Schema.Literals([...(Object.keys(catalogue) as Array<Code>)]),
      requestId: Schema.String.check(Schema.isUUID()),
      details: Schema.Array(
        Schema.StructWithRest(Schema.Struct({ path: Schema.String, message: Schema.String }), [
          Schema.Record(Schema.String, Schema.Unknown)
        ])
      )
    }),
    [Schema.Record(Schema.String, Schema.Unknown)]
  )
)

/** The envelope of an error response. Dies if the body does not fit exactly. */
export const envelope = ({ headers, status, text }: Answered) => {
  const body = Schema.decodeUnknownSync(Envelope)(text)
  if (Statuses.of(body.code) !== status) throw new Error(`${body.code} came with ${status}`)
  const type = headers.get("content-type")
  if (type !== "application/json") throw new Error(`the envelope came as ${type}`)
  return body
}

/** Writes the parts to a raw connection, one after the other, and reads until the server closes it. */
export const raw = (port: number, parts: ReadonlyArray<string | Uint8Array>): Effect.Effect<string> =>
  Effect.callback((resume) => {
    let said = ""
    const socket = connect(port, "127.0.0.1", () => {
      for (const part of parts) socket.write(part)
    })
    socket.on("data", (chunk) => {
      said += chunk.toString()
    })
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.as(conform(parts, said), said)))
    return Effect.sync(() => socket.destroy())
  })

/** Checks a raw request and its answer against the document if there is exactly one of each. */
const conform = (parts: ReadonlyArray<string | Uint8Array>, said: string): Effect.Effect<void> => {
  const [first = ""] = parts
  const [, method, target] =
    /^([A-Z]+) (?:http:\/\/[^/ ]*)?(\/\S*) HTTP\/1\.[01]\r\n/.exec(typeof first === "string" ? first : "") ??
    []
  if (method === undefined || target === undefined || said.split("HTTP/1.1 ").length !== 2) return Effect.void
  return Effect.promise(() => Conformance.note({ method, target, sent: null, ...parseRaw(said) }))
}

/** The last answer in raw HTTP text. */
export const parseRaw = (text: string): Answered => {
  const from = text.lastIndexOf("HTTP/1.1 ")
  const [head = "", ...rest] = text.slice(from).split("\r\n\r\n")
  const [statusLine = "", ...lines] = head.split("\r\n")
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(":")
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    })
  )
  return { status: Number(statusLine.split(" ")[1]), headers, text: rest.join("\r\n\r\n") }
}

/** The head of a raw POST with the account's key. */
export const head = (path: string, headers: Readonly<Record<string, string>>): string =>
  [
    `POST ${path} HTTP/1.1`,
    ...Object.entries({ host: "x", "x-api-key": key, "content-type": "application/json", ...headers }).map(
      ([name, value]) => `${name}: ${value}`
    ),
    "\r\n"
  ].join("\r\n")
