import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Config from "../../config/Config.js"
import { jsonSchema } from "../../config/ConfigFile.js"
import * as Inspections from "../../Inspections.js"
import { flag, help, json, Operator, report } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

const summary = (config: Config.Config) => ({
  profile: config.profile,
  listen: config.listen,
  database: "url" in config.database ? "PostgreSQL" : config.database.path,
  accounts: config.accounts.length,
  signers: config.keys.signers.length,
  networks: config.networks
    .filter(({ chainId }) => !config.unconfigured.has(chainId))
    .map(({ chainId }) => Number(chainId)),
  /** Chains shown by `/networks` and open to requests with their own node, without an entry in the file. */
  unconfigured: [...config.unconfigured].map(Number)
})

/** Fails when the service cannot do what the configuration promises; warnings do not fail. */
const connected = (config: Config.Config) =>
  Effect.gen(function* () {
    const { tell } = yield* Operator
    yield* tell("connecting to databases, nodes and key providers")
    const found = yield* Inspections.run(config)
    const lines = (severity: Inspections.ReportLine["severity"]) =>
      found
        .filter((finding) => finding.severity === severity)
        .map(({ message, place }) => `  ${place}: ${message}`)
    const [broken, limited] = [lines("broken"), lines("limited")]
    if (broken.length === 0) return found
    return yield* Effect.fail(
      [
        "the configuration names unusable parts:",
        ...broken,
        ...(limited.length === 0 ? [] : ["beside that:", ...limited])
      ].join("\n")
    )
  })

export const commands = [
  Command.make("check", {
    file: Argument.String("FILE").pipe(
      Argument.withDescription("default: the file that --config or CASTELLAN_CONFIG names"),
      Argument.withDefault(undefined)
    ),
    connect: flag(
      "connect",
      "connect to every node, provider and database that the configuration names; write nothing"
    ),
    json
  }).pipe(
    help(
      "Reads the file as the service would, including secrets and overrides of the environment, and lists every problem. With --connect also what is wrong with databases, nodes, contracts and keys.",
      "",
      "/etc/castellan/castellan.json",
      "--connect"
    ),
    report(function* ({ connect, file }) {
      const { env } = yield* Operator
      const config = yield* file === undefined
        ? OperatorContext.config
        : Effect.fromResult(Config.load({ ...env, CASTELLAN_CONFIG: file }))
      const found = summary(config)
      const findings = connect ? yield* connected(config) : []
      return {
        text: `the configuration can be used\n${Table.card({
          "  profile": found.profile,
          "  listen": `${found.listen.host}:${found.listen.port}`,
          "  database": found.database,
          "  accounts": found.accounts,
          "  signers": found.signers,
          "  networks": found.networks.length === 0 ? "none" : found.networks.join(", "),
          "  note": [
            ...(found.unconfigured.length === 0
              ? []
              : [
                  `networks: /networks shows chains that have no entry, ${found.unconfigured.join(", ")}: they are built in, and serve requests that name an rpc. An entry with rpc lets your node serve them`
                ]),
            ...findings.map(({ message, place }) => `${place}: ${message}`)
          ]
        })}`,
        json: connect ? { ...found, notes: findings } : found
      }
    })
  ),
  Command.make("schema", { json }).pipe(
    help("Prints the JSON Schema of the file, for editors and pipelines.", "> castellan.schema.json"),
    report(function* () {
      const text = yield* Effect.sync(jsonSchema)
      return { text, json: JSON.parse(text) }
    })
  )
]

export const notes = [
  "CASTELLAN__limits__bodyBytes=65536 in the environment overrides that field; values are JSON or plain text.",
  "No secret is printed. Without --connect the command connects to nothing: no database, node or HSM."
]
