import { readFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
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
const load = (operand: string | undefined, env: Command.Given["env"]) => {
  if (operand === undefined) return Config.load(env)
  const path = resolve(operand)
  return Either.flatMap(
    Either.try({
      try: () => readFileSync(path, "utf8"),
      catch: () => ({ message: `${path} can not be read` })
    }),
    (text) => Config.fromText(text, path, env, dirname(path))
  )
}

export const group: Command.Group = {
  name: "config",
  about: "check a configuration, print its JSON Schema",
  commands: [
    {
      name: "check",
      operands: ["[FILE]"],
      about:
        "reads it as the service would, secrets and overrides of the environment included, and lists every problem",
      run: ({ env, operands }) =>
        Either.match(load(operands[0], env), {
          onLeft: ({ message }) => Effect.fail(message),
          onRight: (config) => {
            const found = summary(config)
            return Effect.succeed({
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
            })
          }
        })
    },
    {
      name: "schema",
      operands: [],
      about: "the JSON Schema of the file, for editors and pipelines",
      run: () => Effect.succeed({ text: ConfigSchema.text, json: JSON.parse(ConfigSchema.text) })
    }
  ],
  notes: [
    "Without FILE, the one that CASTELLAN_CONFIG names.",
    "CASTELLAN__limits__bodyBytes=65536 in the environment overrides that field; values are JSON, or texts.",
    "No secret is printed. Nothing is connected to: not the database, no node, no HSM."
  ]
}

export const run: Command.Run = Command.run(group)
