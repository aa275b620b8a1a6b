import * as Context from "effect/Context"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { AuditLog } from "../../../application/ports/AuditLog.js"
import * as Admin from "../../console/Admin.js"
import { help, json, optional, report } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

export const commands = [
  Command.make("list", {
    account: optional("account", "ID", "acts on behalf of this account"),
    request: optional("request", "ID", "only signatures for this request"),
    signer: optional("signer", "ADDRESS", "acts of this key"),
    hash: optional("hash", "HASH", "this digest or transaction"),
    from: optional("from", "TIME", "not before this time (ISO 8601, or Unix milliseconds)"),
    to: optional("to", "TIME", "not after this time"),
    before: optional("before", "NUMBER", "entries below this number: the next page"),
    limit: optional("limit", "COUNT", "number of entries: default 100, at most 1000"),
    json
  }).pipe(
    help(
      "Lists signatures and transactions, the newest first.",
      "--account acme --from 2026-01-01T00:00:00Z",
      "--hash 0x… --json"
    ),
    report(function* ({ json: _, ...asked }) {
      const parameters = Object.entries(asked).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]]
      )
      const question = yield* Effect.fromResult(
        Admin.question(new URLSearchParams(Object.fromEntries(parameters)))
      )
      const { ports } = yield* OperatorContext.open
      const entries = yield* Context.get(ports, AuditLog).find(question)
      return Table.list(entries.map(Admin.shown), "no entry", {
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
    })
  )
]

export const notes = [
  "A signature is logged before it is made, so the log also has signatures that the key's provider then refused.",
  "The database refuses to change or remove an entry."
]
