import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { RateLimit } from "../../application/ports/RateLimit.js"
import { Tenants } from "../../application/ports/Tenants.js"
import * as Embedded from "../../Castellan.js"
import * as Client from "../../client/Client.js"
import * as JsonLog from "../service/JsonLog.js"
import { httpApp } from "./HttpApp.js"
import { defaultAccount } from "./SignerOptions.js"
import { handlerOf } from "./WebHandler.js"

/**
 * `castellan/promise`: the library for programs without Effect. Its methods are those of `castellan/client`, but run in
 * this process, without a server or API keys.
 */

export { CastellanError, type Problem } from "../../client/CastellanError.js"
export type {
  Accepted,
  Account,
  CallOptions,
  Client,
  CreateResult,
  ExecuteResult,
  Operation,
  Outcome,
  RequestState,
  Settings,
  WriteOptions
} from "../../client/Client.js"

/** Options of `create`. */
export interface Options extends Embedded.Options {
  /** Receives the log's lines, each a JSON object. Default: warnings and errors, to standard error. */
  readonly log?: (line: string) => void
  /** Milliseconds that `close` waits for calls in flight. Default 25,000. */
  readonly drainMillis?: number
}

/** castellan in this process: a client for the default account, and for other accounts. */
export interface Castellan extends Client.Client {
  /** The client of another account of `signers`. */
  readonly forAccount: (account: string) => Client.Client
  /** Refuses new calls, waits for those in flight, and ends. Accepted requests continue at the next `create`. */
  readonly close: () => Promise<void>
}

const month = 2_592_000

/** The library does not rate-limit its own program. */
const unlimited = Layer.succeed(RateLimit, {
  take: () => Effect.succeed({ allowed: true, limit: month, remaining: month, resetSeconds: 1 })
})

/** Accepts only calls of this program, by a secret of this run. */
const tenants = (secret: string) =>
  Layer.succeed(Tenants, {
    authenticate: (key) => {
      const [given, ...account] = Redacted.value(key).split(" ")
      return given === secret
        ? Effect.map(
            Embedded.caller({ account: decodeURIComponent(account.join(" ")) }),
            ({ principal }) => principal
          )
        : Effect.succeed(null)
    }
  })

const logger = (log: Options["log"]): Layer.Layer<never> =>
  log === undefined
    ? Layer.merge(
        Logger.layer([JsonLog.make((line) => void process.stderr.write(line))]),
        Layer.succeed(References.MinimumLogLevel, "Warn")
      )
    : Logger.layer([JsonLog.make(log)])

const start = (options: Options, secret: string) =>
  Effect.gen(function* () {
    const ports = yield* Layer.build(
      Layer.merge(Embedded.layer({ rateLimit: unlimited, ...options }), tenants(secret))
    )
    return yield* Effect.provide(
      Effect.flatMap(httpApp({ drain: options.drainMillis ?? 25_000 }), (app) =>
        Effect.map(Effect.context<never>(), (context) => handlerOf(app, {}, context))
      ),
      ports
    )
  }).pipe(Effect.provide(logger(options.log)))

/**
 * Starts castellan in this process and resumes the database's open work. Rejects with the reason when it cannot start.
 *
 * @example
 * const castellan = await create({ networks, signers, systemKeys, database })
 * const [{ wallet }] = await castellan.predict({ accounts: [{ salt: "bob", walletCustody: 1 }], settings })
 * await castellan.close()
 */
export const create = async (options: Options): Promise<Castellan> => {
  const scope = Effect.runSync(Scope.make())
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  const secret = globalThis.crypto.randomUUID()
  const started = await Effect.runPromise(Effect.result(Scope.provide(start(options, secret), scope)))
  if (started._tag === "Failure") {
    await close()
    throw new Error(started.failure.message)
  }
  const forAccount = (account: string): Client.Client =>
    Client.make({
      baseUrl: "http://castellan.invalid",
      apiKey: `${secret} ${encodeURIComponent(account)}`,
      fetch: (url, init) => started.success(new Request(url, init))
    })
  let closed: Promise<void> | null = null
  return {
    ...forAccount(defaultAccount),
    forAccount,
    close: () => {
      closed ??= close()
      return closed
    }
  }
}
