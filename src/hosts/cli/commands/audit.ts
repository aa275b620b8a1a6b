import * as Effect from "effect/Effect"
import { AuditLog } from "../../../application/ports/AuditLog.js"
import * as Admin from "../../admin/Admin.js"
import * as Wiring from "../../Wiring.js"
import * as Command from "../support/Command.js"
import * as OperatorContext from "../support/OperatorContext.js"

export const commands = [
  Command.make({
    name: "list",
    about: "Lists signatures and transactions, the newest first.",
    examples: ["--account acme --from 2026-01-01T00:00:00Z", "--hash 0x… --json"],
    flags: {
      account: Command.optional("account", "ID", "acts on behalf of this account"),
      request: Command.optional("request", "ID", "what this request led to"),
      signer: Command.optional("signer", "ADDRESS", "acts of this key"),
      hash: Command.optional("hash", "HASH", "this digest or transaction"),
      from: Command.optional("from", "TIME", "not before this time (ISO 8601, or Unix milliseconds)"),
      to: Command.optional("to", "TIME", "not after this time"),
      before: Command.optional("before", "NUMBER", "entries below this number: the next page"),
      limit: Command.optional("limit", "COUNT", "number of entries: default 100, at most 1000")
    },
    run: function* (asked) {
      const config = yield* OperatorContext.config
      const said = Object.entries(asked).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]]
      )
      const question = yield* Effect.fromResult(Admin.question(new URLSearchParams(Object.fromEntries(said))))
      const entries = yield* AuditLog.pipe(
        Effect.flatMap((log) => log.find(question)),
        Effect.provide(Wiring.auditLog(config))
      )
      const shown = entries.map(Admin.shown)
      return Command.listed(shown, "no entry", {
        number: (each) => each.number,
        time: (each) => each.at,
        act: (each) => each.kind,
        account: (each) => each.accountId ?? "-",
        request: (each) => each.requestId ?? "-",
        by: (each) => each.by ?? "-",
        signer: (each) => each.signer,
        chain: (each) => each.chainId ?? "-",
        hash: (each) => each.hash
      })
    }
  })
] as const

export const notes = [
  "A signature is logged before it is made, so the log also has signatures that the key's provider then refused.",
  "The database refuses to change or remove an entry."
]
