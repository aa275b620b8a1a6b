import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ClockConfirmations } from "../../../application/ports/clock/ClockConfirmations.js"
import * as Config from "../../config/Config.js"
import * as Wiring from "../../Wiring.js"
import * as Command from "../support/Command.js"
import * as OperatorContext from "../support/OperatorContext.js"
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
      const from = yield* Effect.fromResult(Config.load(env))
      const to = yield* Effect.fromResult(Config.load({ ...env, CASTELLAN_CONFIG: file }))
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
  }),
  Command.make({
    name: "confirm-clock",
    about:
      "Says that the clock is right, for services that doubt it: they delete and expire what is old again within seconds.",
    examples: [""],
    run: function* () {
      const config = yield* OperatorContext.config
      const { confirm } = Context.get(
        yield* Layer.build(Wiring.clockConfirmations(config)),
        ClockConfirmations
      )
      const at = Table.time((yield* confirm).at)
      return { text: `the clock is confirmed: it is ${at}`, json: { confirmedAt: at } }
    }
  })
] as const

export const notes = [
  "CASTELLAN_CONFIG names the configuration of the present service, whose database is the SQLite file. A service that runs on the file, and a database that is not empty, are refused. All is copied in one transaction, or nothing.",
  "From then on never start a service on the file again: two services would use the same nonces.",
  "A service whose clock is over an hour from a chain's latest block at its start deletes nothing for its age, and no accepted request expires. Where the clock is wrong set it and start the service again; confirm it where the node is behind or the chain makes no blocks. A confirmation counts for the services that run, and for those that start within an hour.",
  "The time that confirm-clock confirms is the database server's on PostgreSQL, and this machine's on SQLite."
]
