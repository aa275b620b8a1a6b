import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Config from "../../../src/hosts/config/Config.js"
import * as Service from "../../../src/hosts/node/Service.js"
import { runSource } from "../process/Program.js"

export interface Ran {
  readonly code: number | string
  readonly stdout: string
  readonly stderr: string
}

/** A configuration file, the service and the command line on it. */
export interface Castellan {
  readonly env: Readonly<Record<string, string>>
  /** Runs the command in its own process, as an operator does. */
  readonly command: (...args: ReadonlyArray<string>) => Promise<Ran>
  /** JSON output of a command that must succeed. */
  readonly said: <A>(...args: ReadonlyArray<string>) => Promise<A>
  /** The service in this process, and its address; the caller stops it. */
  readonly serve: () => Promise<{ readonly url: string; readonly stop: () => Promise<void> }>
}

const pepper = randomBytes(24).toString("hex")

/** Over a folder that the caller removes. */
export const make = (
  folder: string,
  file: Readonly<Record<string, unknown>>,
  variables: Readonly<Record<string, string>> = {}
): Castellan => {
  const path = join(folder, `castellan-${randomBytes(4).toString("hex")}.json`)
  const text = JSON.stringify({
    profile: "production",
    listen: { host: "127.0.0.1", port: 0 },
    database: { path: "castellan.sqlite" },
    keyPepper: { env: "PEPPER" },
    accounts: [],
    networks: [],
    ...file
  })
  writeFileSync(path, text)
  const env = { ...variables, PEPPER: pepper, CASTELLAN_CONFIG: path }
  const command = async (...args: ReadonlyArray<string>): Promise<Ran> => {
    const program = await runSource("src/hosts/cli/castellan.ts", args, { env })
    const code = await program.ended
    return { code, stdout: program.stdout(), stderr: program.stderr() }
  }
  return {
    env,
    command,
    said: async <A>(...args: ReadonlyArray<string>): Promise<A> => {
      const { code, stderr, stdout } = await command(...args, "--json")
      if (code !== 0) throw new Error(`castellan ${args.join(" ")} ended with ${code}: ${stderr}`)
      return JSON.parse(stdout)
    },
    serve: async () => {
      const scope = Effect.runSync(Scope.make())
      const config = Result.getOrThrow(Config.fromText(text, path, env, folder))
      const { url } = await Effect.runPromise(
        Service.start(config).pipe(
          Scope.provide(scope),
          Effect.provideService(References.MinimumLogLevel, "None")
        )
      )
      return { url, stop: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
    }
  }
}

/** Calls an endpoint that needs only a key. */
export const ask = async (url: string, key: string, path = "/predict", body: unknown = {}) => {
  const answer = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: JSON.stringify(body)
  })
  const json: { readonly code?: string } = JSON.parse(await answer.text())
  return { status: answer.status, code: json.code ?? null, headers: answer.headers }
}

/** Repeats until the answers have the code; rejects when they never have it. */
export const until = async (code: string, again: () => Promise<{ readonly code: string | null }>) => {
  let last: string | null = null
  for (let turn = 0; turn < 1_000; turn++) {
    last = (await again()).code
    if (last === code) return
    await sleep(25)
  }
  throw new Error(`still ${last}, not ${code}`)
}
