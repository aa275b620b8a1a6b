import * as Config from "../../config/Config.js"
import * as Wiring from "../../Wiring.js"
import * as Command from "../support/Command.js"
import * as Table from "../support/Table.js"

export const commands = [
  Command.make({
    name: "copy",
    about:
      "Copies everything from the SQLite file of a service that is stopped to an empty PostgreSQL database.",
    examples: ["/etc/castellan/replicas.json"],
    operands: {
      file: Command.operand(
        "FILE",
        "the configuration of the service to be: with database.url, and with the same keyPepper"
      )
    },
    run: function* ({ file }) {
      const { env, tell } = yield* Command.Operator
      const from = yield* Config.load(env)
      const to = yield* Config.load({ ...env, CASTELLAN_CONFIG: file })
      const copied = yield* Wiring.copyStore(from, to, ({ rows, table }) => tell(`${table}: ${rows} rows`))
      const rows = copied.reduce((sum, table) => sum + table.rows, 0)
      return {
        json: copied,
        text: [
          `${rows} rows of ${copied.length} tables are copied, and counted in both`,
          Table.aligned(copied.map((each) => [`  ${each.table}`, each.rows]))
        ].join("\n")
      }
    }
  })
] as const

export const notes = [
  "CASTELLAN_CONFIG names the configuration of the present service, whose database is the SQLite file. A service that runs on the file, and a database that is not empty, are refused. All is copied in one transaction, or nothing.",
  "From then on never start a service on the file again: two services would use the same nonces."
]
