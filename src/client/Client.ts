import type * as ListNetworks from "../application/endpoints/chain/ListNetworks.js"
import type * as CancelRequest from "../application/endpoints/operations/CancelRequest.js"
import type * as GetRequest from "../application/endpoints/operations/GetRequest.js"
import type * as ListRequests from "../application/endpoints/operations/ListRequests.js"
import { CastellanError } from "./CastellanError.js"
import { type Reads, reads, type Signing, signing, type Writes, writes } from "./Endpoints.js"
import * as Events from "./Events.js"
import * as Transport from "./Transport.js"
import * as Watches from "./Watches.js"
import * as Webhooks from "./Webhooks.js"

/**
 * `castellan/client`: the service's client for browsers and Node, built only on fetch. Its types are those of the
 * service's contract; it loads no code of the service.
 */

export { CastellanError, type Problem } from "./CastellanError.js"
export type {
  Account,
  CreateResult,
  ExecuteResult,
  Operation,
  Outcome,
  Reads,
  Settings,
  Signing,
  Writes
} from "./Endpoints.js"
export type { EventsOptions, RequestEvent } from "./Events.js"
export type { CallOptions, Options } from "./Transport.js"
export type { Watches } from "./Watches.js"
export type { Webhooks } from "./Webhooks.js"

/** Options of a write. */
export interface WriteOptions extends Transport.CallOptions {
  /** Default: a random key per call. Store your own key to send a write only once across your restarts. */
  readonly idempotencyKey?: string
  /** Labels to find the write by: at most 16 strings by key, 2 KiB together. See `requests`. */
  readonly metadata?: Readonly<Record<string, string>>
}

/** An accepted write; `waitFor` returns its outcome. */
export interface Accepted<A = unknown> {
  readonly requestId: string
  /** The outcome if already known: of a repeat, or without anything to do. */
  readonly answer?: A
}

/** The state of a write, as `GET /requests/{requestId}` answers it. */
export type RequestState = typeof GetRequest.Response.Encoded

type Read<E extends { request: unknown; response: unknown }> = (
  request: E["request"],
  options?: Transport.CallOptions
) => Promise<E["response"]>

interface Write<E extends { request: unknown; response: unknown }> {
  (request: E["request"], options: WriteOptions & { readonly async: true }): Promise<Accepted<E["response"]>>
  (request: E["request"], options?: WriteOptions): Promise<E["response"]>
}

/** A client of a running service, for one account. */
export type Client = { readonly [K in keyof Reads]: Read<Reads[K]> } & {
  readonly [K in keyof Signing]: Read<Signing[K]>
} & { readonly [K in keyof Writes]: Write<Writes[K]> } & {
  /** State of a write. `wait`: seconds, 0 to 60, for which the response waits for a final state. */
  readonly request: (
    requestId: string,
    options?: Transport.CallOptions & { readonly wait?: number }
  ) => Promise<RequestState>
  /** The chains that the account may use, with their settings. */
  readonly networks: (options?: Transport.CallOptions) => Promise<typeof ListNetworks.Response.Encoded>
  readonly requests: (
    query?: typeof ListRequests.Query.Encoded,
    options?: Transport.CallOptions
  ) => Promise<typeof ListRequests.Response.Encoded>
  readonly cancel: (
    requestId: string,
    options?: Transport.CallOptions
  ) => Promise<typeof CancelRequest.Response.Encoded>
  /**
   * Events of an accepted write, until its answer is final (`request` returns the answer). After a broken connection it
   * continues behind the last event; it rejects after too many breaks in a row without an event.
   *
   * @example
   * for await (const { type, data } of client.events(requestId)) console.log(type, data)
   */
  readonly events: (
    requestId: string,
    options?: Events.EventsOptions
  ) => AsyncGenerator<Events.RequestEvent, void, void>
  /** Endpoints that receive the account's events. Needs a key with the scope `webhooks`. */
  readonly webhooks: Webhooks.Webhooks
  /** Contract events that webhooks receive. Needs a key with the scope `webhooks`. */
  readonly watches: Watches.Watches
  /**
   * The final answer of a write that was accepted, after `outcome_unknown` or in asynchronous mode; waits until there is
   * one or the signal aborts. Rejects as the call itself would have.
   */
  readonly waitFor: <K extends keyof Writes>(
    requestId: string,
    options?: Transport.CallOptions
  ) => Promise<Writes[K]["response"]>
}

/** Adds `outcomes`: the elements of `returnData` without the objects that carry their indexes. */
const flat = (answer: unknown): unknown => {
  const { returnData } = Object(answer)
  return Array.isArray(returnData)
    ? { ...Object(answer), outcomes: returnData.flatMap((one) => Object.values(Object(one))) }
    : answer
}

/** Answers that were final immediately, for `waitFor`: the service stores them under the id of an earlier call. */
const settledAnswers = (most: number) => {
  const known = new Map<string, unknown>()
  return {
    known,
    add: (requestId: string, answer: unknown): Accepted => {
      for (const oldest of known.keys()) if (known.size >= most) known.delete(oldest)
      known.set(requestId, answer)
      return { requestId, answer }
    }
  }
}

/** Headers carry ASCII only. */
const inAscii = (json: string): string =>
  json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** Long-poll timeout of `waitFor`, in seconds. */
const waitSeconds = 30

/**
 * Makes a client. Throws a TypeError for an unusable `baseUrl` or `apiKey`, including an empty one.
 *
 * @example
 * const client = Client.make({ baseUrl: "https://castellan.example", apiKey })
 * const [{ wallet }] = await client.predict({ accounts: [{ salt: "bob", walletCustody: 1 }], settings })
 */
export const make = (options: Transport.Options): Client => {
  const send = Transport.make(options)
  const settled = settledAnswers(256)

  const read =
    (name: string, repeatable: boolean) =>
    async (body: unknown, { signal }: Transport.CallOptions = {}) =>
      (await send({ method: "POST", path: `/${name}`, body, idempotencyKey: null, repeatable, signal })).body

  const write =
    (name: string) =>
    async (
      body: unknown,
      {
        async = false,
        idempotencyKey = crypto.randomUUID(),
        metadata,
        signal
      }: WriteOptions & { async?: boolean } = {}
    ) => {
      const headers = {
        ...(async && { prefer: "respond-async" }),
        ...(metadata !== undefined && { "request-metadata": inAscii(JSON.stringify(metadata)) })
      }
      const exchange = { method: "POST", path: `/${name}`, body, headers, idempotencyKey, signal } as const
      const { body: answer, requestId, status } = await send({ ...exchange, repeatable: true })
      if (status === 202) return answer
      return async ? settled.add(requestId ?? idempotencyKey, flat(answer)) : flat(answer)
    }

  const plain = async (
    method: "GET" | "DELETE",
    path: string,
    query: Readonly<Record<string, string | undefined>>,
    { signal }: Transport.CallOptions
  ) => {
    const target = `${path}${Transport.queryOf(query)}`
    return (await send({ method, path: target, idempotencyKey: null, repeatable: true, signal })).body
  }

  const request = async (
    requestId: string,
    { wait, ...more }: Transport.CallOptions & { readonly wait?: number } = {}
  ): Promise<RequestState> =>
    (await plain(
      "GET",
      `/requests/${encodeURIComponent(requestId)}`,
      { wait: wait === undefined ? undefined : String(wait) },
      more
    )) as RequestState

  const waitFor = async (requestId: string, more: Transport.CallOptions = {}): Promise<unknown> => {
    if (settled.known.has(requestId)) return settled.known.get(requestId)
    for (;;) {
      more.signal?.throwIfAborted()
      const { answer, httpStatus, state } = await request(requestId, { ...more, wait: waitSeconds })
      if (state !== "final") continue
      if (httpStatus === 200) return flat(answer)
      throw CastellanError.of(httpStatus ?? 0, answer, null)
    }
  }

  return {
    ...Object.fromEntries(reads.map((name) => [name, read(name, true)])),
    ...Object.fromEntries(writes.map((name) => [name, write(name)])),
    ...Object.fromEntries(signing.map((name) => [name, read(name, false)])),
    request,
    networks: (more: Transport.CallOptions = {}) => plain("GET", "/networks", {}, more),
    requests: (query = {}, more = {}) => plain("GET", "/requests", { ...query }, more),
    cancel: (requestId: string, more: Transport.CallOptions = {}) =>
      plain("DELETE", `/requests/${encodeURIComponent(requestId)}`, {}, more),
    events: Events.make(Transport.opener(options)),
    webhooks: Webhooks.make(send),
    watches: Watches.make(send),
    waitFor
  } as Client
}
