import { readFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import * as Args from "@effect/cli/Args"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Config from "../../config/Config.js"
import * as ConfigSchema from "../../config/ConfigSchema.js"
import * as Command from "../support/Command.js"

const summary = (config: Config.Config) => ({
  profile: config.profile,
  listen: config.listen,
  database: "url" in config.database ? "PostgreSQL" : config.database.path,
  accounts: config.accounts.length,
  signers: config.keys.signers.length,
  networks: config.networks.map(({ chainId }) => Number(chainId))
})

/** The file that is named, else the one of the environment. */
const load = (operand: Option.Option<string>, env: Command.Operator["Type"]["env"]) => {
  if (Option.isNone(operand)) return Config.load(env)
  const path = resolve(operand.value)
  return Either.flatMap(
    Either.try({
      try: () => readFileSync(path, "utf8"),
      catch: () => ({ message: `${path} can not be read` })
    }),
    (text) => Config.fromText(text, path, env, dirname(path))
  )
}

export const commands = [
  Command.make({
    name: "check",
    about:
      "Reads the file as the service would, including secrets and overrides of the environment, and lists every problem.",
    examples: ["", "/etc/castellan/castellan.json"],
    operands: {
      file: Command.operand("FILE", "default: the file that CASTELLAN_CONFIG names").pipe(Args.optional)
    },
    run: ({ file }) =>
      Effect.gen(function* () {
        const { env } = yield* Command.Operator
        const config = yield* Either.mapLeft(load(file, env), ({ message }) => message)
        const found = summary(config)
        return {
          text: [
            "the configuration can be used",
            `  profile   ${found.profile}`,
            `  listen    ${found.listen.host}:${found.listen.port}`,
            `  database  ${found.database}`,
            `  accounts  ${found.accounts}`,
            `  signers   ${found.signers}`,
            `  networks  ${found.networks.join(", ")}`
          ].join("\n"),
          json: found
        }
      })
  }),
  Command.make({
    name: "schema",
    about: "Prints the JSON Schema of the file, for editors and pipelines.",
    examples: ["> castellan.schema.json"],
    run: () => Effect.succeed({ text: ConfigSchema.text, json: JSON.parse(ConfigSchema.text) })
  })
] as const

export const notes = [
  "CASTELLAN__limits__bodyBytes=65536 in the environment overrides that field; values are JSON or plain text.",
  "No secret is printed. The command connects to nothing: no database, node or HSM."
]
