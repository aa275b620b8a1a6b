import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { Accounts } from "../../application/ports/Accounts.js"
import type { RateLimit } from "../../application/ports/RateLimit.js"
import type { Answer, Incoming } from "./Exchange.js"
import type { Handlers } from "./Handlers.js"

/** What the operator may set. All have defaults. */
export interface Options {
  /** Longest body, bytes. Default 1 MiB. */
  readonly maxBodyBytes?: number
  /** Most elements of an array in a body. Default 256. */
  readonly maxElements?: number
  /** Most requests under way; more are answered 503. Default 512. */
  readonly maxConcurrent?: number
}

/** The service, seen from its transports. */
export interface Front {
  /** Answers one request; never fails, and has an answer for everything. */
  readonly handle: (incoming: Incoming) => Effect.Effect<Answer>
  /**
   * Refuses new requests with 503 `shutting down` and waits until those under way are answered; what is left after
   * `drain` is interrupted and answered 503. Health checks are answered to the end.
   */
  readonly stop: (drain: Duration.DurationInput) => Effect.Effect<void>
}

/** The front over the use cases in `handlers` (`Http.handlers` has the real ones). Its requirements are theirs. */
export declare const make: <H extends Handlers>(
  handlers: H,
  options?: Options
) => Effect.Effect<Front, never, Accounts | RateLimit | Effect.Effect.Context<ReturnType<H[keyof Handlers]>>>
