import { dirname, resolve } from "node:path"
import { parseArgs } from "node:util"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Secrets from "../Secrets.js"
import * as Wiring from "../Wiring.js"

export const usage = `castellan key (--pepper-env NAME | --pepper-file PATH)

Issues an API key. Prints the key, once and nowhere else, and the hash that goes into the account's "keys" in the
configuration file. The pepper is the one that the configuration's "keyPepper" names.`

/** The lines that the command prints, or why it can not. */
export const issue = (
  args: ReadonlyArray<string>,
  env: Secrets.Sources["env"]
): Effect.Effect<string, string> =>
  Effect.gen(function* () {
    const { values } = yield* Effect.try({
      try: () =>
        parseArgs({
          args: [...args],
          options: { "pepper-env": { type: "string" }, "pepper-file": { type: "string" } }
        }),
      catch: () => usage
    })
    const { "pepper-env": variable, "pepper-file": file } = values
    const reference =
      variable !== undefined && file === undefined
        ? { env: variable }
        : file !== undefined && variable === undefined
          ? { file: resolve(file) }
          : null
    if (reference === null) return yield* Effect.fail(usage)
    const folder = "file" in reference ? dirname(reference.file) : "."
    const pepper = yield* Either.mapLeft(
      Secrets.read(reference, { env, folder, allowInline: false }),
      (why) => `no pepper: ${why}`
    )
    const { hash, key } = yield* Wiring.issueKey(pepper)
    return [
      `API key (shown once): ${Redacted.value(key)}`,
      `for the configuration: { "hash": "${hash}" }`
    ].join("\n")
  })
