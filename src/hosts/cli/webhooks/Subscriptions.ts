import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type { Stored } from "../../Wiring.js"
import { help, json, optional, report } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

/** The command line acts as the operator, for all accounts. */
export const operator = { accountId: null, by: "operator" } as const

interface Failed {
  readonly _tag: string
  readonly message: string
  readonly reason?: string
}

type Use<A> = Effect.Effect<A, Failed, Stored>

const failureText = ({ _tag, message, reason }: Failed): string => {
  if (reason === "url") return `URL: ${message}`
  const group = _tag === "UnknownWatch" ? "watches" : reason === "unknown" ? "webhooks" : null
  return group === null ? message : `${message}; "castellan ${group} list" lists them`
}

/** The configuration's database, with a runner for use cases on it. */
export const open = Effect.map(OperatorContext.open, (context) => ({
  ...context,
  within: <A>(use: Use<A>) => Effect.mapError(Effect.provide(use, context.ports), failureText)
}))

interface Kind<A, Row> {
  readonly name: "watch" | "webhook"
  readonly example: string
  readonly about: Readonly<Record<"list" | "show" | "pause" | "resume" | "remove", string>>
  readonly all: (accountId: AccountId | null) => Use<ReadonlyArray<A>>
  readonly find: (id: string) => Use<A>
  readonly setState: (id: string, state: "enabled" | "paused") => Use<unknown>
  readonly remove: (id: string) => Use<unknown>
  /** One row of JSON output. */
  readonly shown: (one: A) => Row
  readonly columns: Readonly<Record<string, (row: Row) => string | number>>
  readonly card: (row: Row) => Table.Fields
}

/** Operand with an id. */
export const operand = (name: "watch" | "webhook"): Argument.Argument<string> =>
  Argument.String(name.toUpperCase()).pipe(
    Argument.withDescription(`the id that ${name === "watch" ? "watches" : "webhooks"} list shows`)
  )

/** Commands shared by webhooks and watches. */
export const commands = <A, Row>(kind: Kind<A, Row>) => {
  const id = operand(kind.name)
  const changing = (
    name: "pause" | "resume" | "remove",
    done: string,
    change: (id: string) => Use<unknown>
  ) =>
    Command.make(name, { id, json }).pipe(
      help(kind.about[name], kind.example),
      report(function* ({ id }) {
        const { within } = yield* open
        yield* within(change(id))
        return { json: { [`${kind.name}Id`]: id, state: done }, text: `${kind.name} ${id} is ${done}` }
      })
    )
  return {
    list: Command.make("list", { account: optional("account", "ID", "of this account"), json }).pipe(
      help(kind.about.list, "--account acme --json"),
      report(function* ({ account }) {
        const context = yield* open
        const accountId =
          account === undefined ? null : (yield* OperatorContext.accountOf(context, account)).accountId
        const rows = (yield* context.within(kind.all(accountId))).map(kind.shown)
        return Table.list(rows, `no ${kind.name}`, kind.columns)
      })
    ),
    show: Command.make("show", { id, json }).pipe(
      help(kind.about.show, kind.example),
      report(function* ({ id }) {
        const { within } = yield* open
        const row = kind.shown(yield* within(kind.find(id)))
        return { json: row, text: Table.card(kind.card(row)) }
      })
    ),
    pause: changing("pause", "paused", (id) => kind.setState(id, "paused")),
    resume: changing("resume", "enabled", (id) => kind.setState(id, "enabled")),
    remove: changing("remove", "removed", kind.remove)
  }
}
