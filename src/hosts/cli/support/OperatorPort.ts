import * as http from "node:http"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { Config } from "../../config/Config.js"

interface Answer {
  readonly status: number
  readonly text: string
}

class Silence extends Data.TaggedError("Silence")<{ readonly code: string }> {}

/** Signatures of the lane may wait for an HSM, and for somebody who approves. Milliseconds. */
const patience = 120_000

const wildcards: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" }

const send = (
  { host, port, token }: NonNullable<Config["operations"]["admin"]>,
  path: string
): Effect.Effect<Answer, Silence> =>
  Effect.callback<Answer, Silence>((resume) => {
    const request = http.request(
      {
        host: wildcards[host] ?? host,
        port,
        path,
        method: "POST",
        // Whatever the address: the port answers to loopback's name.
        headers: { host: "localhost", authorization: `Bearer ${Redacted.value(token)}` },
        timeout: patience
      },
      (response) => {
        const parts: Array<Buffer> = []
        response.on("data", (part: Buffer) => parts.push(part))
        response.on("end", () =>
          resume(
            Effect.succeed({
              status: response.statusCode ?? 0,
              text: Buffer.concat(parts).toString("utf8")
            })
          )
        )
      }
    )
    request.on("timeout", () => request.destroy(Object.assign(new Error(), { code: "ETIMEDOUT" })))
    request.on("error", (error: NodeJS.ErrnoException) =>
      resume(Effect.fail(new Silence({ code: error.code ?? "" })))
    )
    request.end()
    return Effect.sync(() => request.destroy())
  })

const unreadable = "the service gave an answer that can not be read"

const parsed = (text: string): Result.Result<unknown, string> =>
  Result.try({ try: (): unknown => JSON.parse(text), catch: () => unreadable })

const errorOf = (body: unknown): string =>
  typeof body === "object" && body !== null && "error" in body && typeof body.error === "string"
    ? body.error
    : unreadable

/** Asks the running service to do something that only the process may do that owns the lanes. */
export const post = ({ operations }: Config, path: string): Effect.Effect<unknown, string> =>
  Effect.gen(function* () {
    const { admin } = operations
    if (admin === null)
      return yield* Effect.fail(
        'lanes belong to the running service, which is asked through its operator\'s port: the configuration names none ("admin")'
      )
    if (admin.port === 0)
      return yield* Effect.fail('"admin.port" is 0, another one after each start: name one to find it')
    const { status, text } = yield* Effect.mapError(send(admin, path), ({ code }) =>
      code === "ETIMEDOUT"
        ? "the service has not answered in time; what it has begun goes on"
        : `nobody answers at ${admin.host}:${admin.port} (${code}): the service does not run there. Nothing was changed; once it starts it takes up all lanes`
    )
    const body = yield* Effect.fromResult(parsed(text))
    return status === 200 ? body : yield* Effect.fail(`the service refused (${status}): ${errorOf(body)}`)
  })
