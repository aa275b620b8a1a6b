import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Front } from "../http/Front.js"

/** Where and how the service listens. Times in milliseconds. */
export interface Options {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** How long requests under way may take once the service stops. Default 25 s. */
  readonly drainMillis?: number
  /** A client must have sent its headers by then. Default 10 s. */
  readonly headersTimeoutMillis?: number
  /** A client must have sent its whole request by then. Default 60 s. */
  readonly requestTimeoutMillis?: number
  /** How long an idle connection is kept. Default 65 s, above what load balancers use. */
  readonly keepAliveTimeoutMillis?: number
  /** Most bytes of all headers of a request. Default 16 KiB. */
  readonly maxHeaderBytes?: number
}

/** The address that the service listens at. */
export interface Listening {
  readonly host: string
  readonly port: number
  /** `http://host:port`, without a slash at its end. */
  readonly url: string
}

/** The address can not be listened at; `code` is the system's, for example EADDRINUSE. */
export class ListenError extends Data.TaggedError("ListenError")<{
  readonly code: string
  readonly message: string
}> {}

/**
 * Listens over node:http until the scope closes. Closing stops gracefully: no new connections, `front.stop` with the
 * drain time, then every connection is closed.
 */
export declare const serve: (
  front: Front,
  options: Options
) => Effect.Effect<Listening, ListenError, Scope.Scope>
