import * as Context from "effect/Context"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { ClockConfirmations } from "../../../application/ports/clock/ClockConfirmations.js"
import * as Config from "../../config/Config.js"
import * as Wiring from "../../Wiring.js"
import { help, json, Operator, report } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

export const commands = [
  Command.make("copy", {
    file: Argument.String("FILE").pipe(
      Argument.withDescription(
        "the configuration of the service to be: with database.url, and with the same keyPepper"
      )
    ),
    json
  }).pipe(
    help(
      "Copies everything from the SQLite file of a service that is stopped to an empty PostgreSQL database.",
      "/etc/castellan/replicas.json"
    ),
    report(function* ({ file }) {
      const { env, tell } = yield* Operator
      const from = yield* OperatorContext.config
      const to = yield* Effect.fromResult(Config.load({ ...env, CASTELLAN_CONFIG: file }))
      const copied = yield* Wiring.copyStore(from, to, ({ rows, table }) => tell(`${table}: ${rows} rows`))
      const rows = copied.reduce((sum, table) => sum + table.rows, 0)
      return {
        json: copied,
        text: [
          `${rows} rows of ${copied.length} tables are copied, and counted in both`,
          Table.align(copied.map((each) => [`  ${each.table}`, each.rows]))
        ].join("\n")
      }
    })
  ),
  Command.make("confirm-clock", { json }).pipe(
    help(
      "Says that the clock is right, for services that doubt it: they delete and expire what is old again within seconds.",
      ""
    ),
    report(function* () {
      const { ports } = yield* OperatorContext.open
      const at = Table.time((yield* Context.get(ports, ClockConfirmations).confirm).at)
      return { text: `the clock is confirmed: it is ${at}`, json: { confirmedAt: at } }
    })
  )
]

export const notes = [
  "The configuration names the present service, whose database is the SQLite file. A service that runs on the file, and a database that is not empty, are refused. All is copied in one transaction, or nothing.",
  "From then on never start a service on the file again: two services would use the same nonces.",
  "A service whose clock is over an hour from a chain's latest block at its start, or was set by over an hour since, deletes nothing for its age, and no accepted request expires. Set a wrong clock: the service notices it. Confirm the clock if the node is behind or the chain makes no blocks. A confirmation counts for the services that run, and for those that start within an hour.",
  "The time that confirm-clock confirms is the database server's on PostgreSQL, and this machine's on SQLite."
]
