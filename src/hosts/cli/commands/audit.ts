import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { AuditLog } from "../../../application/ports/AuditLog.js"
import * as Admin from "../../admin/Admin.js"
import * as Config from "../../config/Config.js"
import * as Wiring from "../../Wiring.js"
import * as Command from "../support/Command.js"
import * as Table from "../support/Table.js"

const option = (value: string, about: string): Command.Option => ({ value, about })

const options = {
  account: option("ID", "acts on behalf of this account"),
  request: option("ID", "what this request led to"),
  signer: option("ADDRESS", "acts of this key"),
  hash: option("HASH", "this digest or transaction"),
  from: option("TIME", "not before this time (ISO 8601, or Unix milliseconds)"),
  to: option("TIME", "not after this time"),
  before: option("NUMBER", "entries below this number: the next page"),
  limit: option("COUNT", "at most so many, 100 unless told, 1000 at most")
}

export const group: Command.Group = {
  name: "audit",
  about: "who signed what, when, and for whom",
  commands: [
    {
      name: "list",
      operands: [],
      about: "signatures and transactions, the newest first",
      options,
      run: ({ env, options }) =>
        Effect.gen(function* () {
          const config = yield* Either.mapLeft(Config.load(env), ({ message }) => message)
          const question = yield* Admin.question(new URLSearchParams({ ...options }))
          const entries = yield* AuditLog.pipe(
            Effect.flatMap((log) => log.find(question)),
            Effect.provide(Wiring.auditLog(config)),
            Effect.mapError(({ message }) => message)
          )
          const shown = entries.map(Admin.shown)
          return {
            json: shown,
            text:
              shown.length === 0
                ? "no entry"
                : Table.aligned([
                    ["number", "time", "act", "account", "request", "by", "signer", "chain", "hash"],
                    ...shown.map((each) => [
                      each.number,
                      each.at,
                      each.kind,
                      each.accountId ?? "-",
                      each.requestId ?? "-",
                      each.by ?? "-",
                      each.signer,
                      each.chainId ?? "-",
                      each.hash
                    ])
                  ])
          }
        })
    }
  ],
  notes: [
    "A signature is in the log before it is made: one that the key's provider then refused is there as well.",
    "The database refuses to change or remove an entry."
  ]
}

export const run: Command.Run = Command.run(group)
