import * as http from "node:http"
import { text } from "node:stream/consumers"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type { Config } from "../../config/Config.js"
import * as OperatorContext from "./OperatorContext.js"

/** Time-out in ms: the lane's signatures may wait for an HSM or a human approver. */
const patience = 120_000

const wildcards: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" }

/** Uses `node:http`: `fetch` sets the Host header from the address, and the port expects a loopback name. */
const send = (
  { host, port }: NonNullable<Config["operations"]["admin"]>,
  token: string,
  path: string,
  signal: AbortSignal
) =>
  new Promise<http.IncomingMessage>((resolve, reject) => {
    const request = http.request({
      host: wildcards[host] ?? host,
      port,
      path,
      method: "POST",
      headers: {
        host: "localhost",
        authorization: `Bearer ${token}`
      },
      timeout: patience,
      signal
    })
    request.on("timeout", () => request.destroy(Object.assign(new Error(), { code: "ETIMEDOUT" })))
    request.on("response", resolve).on("error", reject).end()
  })

const codeOf = (cause: unknown): string => (Predicate.hasProperty(cause, "code") ? String(cause.code) : "")

const unreadable = "the service's answer cannot be read"

const errorOf = (body: unknown): string =>
  Predicate.hasProperty(body, "error") && typeof body.error === "string" ? body.error : unreadable

/** Calls the running service as an operator, the first one by default, for actions reserved to the process that owns the lanes. */
export const post = (config: Config, path: string, operator?: string): Effect.Effect<unknown, string> =>
  Effect.gen(function* () {
    const { admin } = config.operations
    if (admin === null)
      return yield* Effect.fail(
        'lanes belong to the running service; configure its operator\'s port ("admin")'
      )
    if (admin.port === 0)
      return yield* Effect.fail('"admin.port" is 0, another one after each start: name one to find it')
    const signedIn =
      operator === undefined ? admin.operators[0] : yield* OperatorContext.operatorOf(config, operator)
    const token = signedIn === undefined ? "" : Redacted.value(signedIn.token)
    const { status, answer } = yield* Effect.tryPromise({
      try: async (signal) => {
        const response = await send(admin, token, path, signal)
        return { status: response.statusCode, answer: await text(response) }
      },
      catch: (cause) =>
        codeOf(cause) === "ETIMEDOUT"
          ? "the service has not answered in time; it continues the work"
          : `no answer at ${admin.host}:${admin.port} (${codeOf(cause)}): the service does not run there. Nothing was changed. The service resumes all lanes when it starts`
    })
    const body = yield* Effect.try({ try: (): unknown => JSON.parse(answer), catch: () => unreadable })
    return status === 200 ? body : yield* Effect.fail(`the service refused (${status}): ${errorOf(body)}`)
  })
