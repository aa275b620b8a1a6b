import * as Context from "effect/Context"
import * as Argument from "effect/cli/Argument"
import * as Cli from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type * as Secrets from "../../config/Secrets.js"
import * as Table from "./Table.js"

/** Where a command runs. */
export class Operator extends Context.Service<
  Operator,
  {
    readonly env: Secrets.Sources["env"]
    /** Standard output: the result, and nothing else. */
    readonly print: (text: string) => Effect.Effect<void>
    /** Standard error: what is to be said beside the result. */
    readonly tell: (line: string) => Effect.Effect<void>
    /** Asks a person; false as well where there is none to ask. */
    readonly ask: (question: string) => Effect.Effect<boolean>
    /** Becomes the service's process, of the configuration file or of the one that the environment names. */
    readonly serve: (configFile: string | undefined) => Effect.Effect<never>
    /** Runs until a signal stops the process, and ends with it. */
    readonly become: (
      program: Effect.Effect<void, { readonly message: string }, Scope.Scope>
    ) => Effect.Effect<never>
  }
>()("castellan/cli/Operator") {}

/** The same for people and for programs. */
export interface Said {
  readonly text: string
  readonly json: unknown
}

/** A row for each, its cells under their headings for people, all of it for programs. */
export const listed = <A>(rows: ReadonlyArray<A>, nothing: string, columns: Table.Columns<A>): Said => ({
  json: rows,
  text: Table.listed(rows, nothing, columns)
})

/** The reason why there is no result: told by the command, or the failure of what it used. */
export type Why = string | { readonly message: string }

/** Prints the result, or fails with the reason why there is none. */
export type Run = Effect.Effect<void, string, Operator>

export type Command = Cli.Command<string, never, object, string, Operator>

/** What a module of commands exports. */
export interface Commands {
  readonly commands: ReadonlyArray<Command>
  /** What a reader of the help has to know beside the commands. */
  readonly notes: ReadonlyArray<string>
  /** What they read of the environment, where that is not the configuration of the service. */
  readonly environment?: ReadonlyArray<string> | undefined
}

export const operand = (name: string, about: string): Argument.Argument<string> =>
  Argument.String(name).pipe(Argument.withDescription(about))

const text = (name: string, value: string, about: string): Flag.Flag<string> =>
  Flag.String(name).pipe(Flag.withMetavar(value), Flag.withDescription(about))

/** `--name VALUE`. */
export const required = (name: string, value: string, about: string): Flag.Flag<string> =>
  text(name, value, `${about} (required)`)

export const optional = (name: string, value: string, about: string): Flag.Flag<string | undefined> =>
  text(name, value, about).pipe(Flag.optional, Flag.map(Option.getOrUndefined))

/** `--name VALUE`, as often as there are values. */
export const repeated = (name: string, value: string, about: string): Flag.Flag<ReadonlyArray<string>> =>
  text(name, value, about).pipe(Flag.atLeast(0))

/** One of some words. */
export const choice = <const Words extends ReadonlyArray<string>>(
  name: string,
  words: Words,
  about: string
): Flag.Flag<Words[number] | undefined> =>
  Flag.Literals(name, words).pipe(Flag.withDescription(about), Flag.optional, Flag.map(Option.getOrUndefined))

/** Takes nothing of what stands behind it: a chain id of 1 is no "yes". */
export const flag = (name: string, about: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(
    Flag.withDescription(about),
    Flag.withOptionalValue("true"),
    Flag.withoutNegation,
    Flag.withDefault(false)
  )

const json = flag("json", "print one JSON value")

const print = (asJson: boolean, { json, text }: Said) =>
  Effect.flatMap(Operator, (operator) => operator.print(asJson ? JSON.stringify(json, null, 2) : text))

type Operands = Readonly<Record<string, Argument.Argument<unknown>>>
type Flags = Readonly<Record<string, Flag.Flag<unknown>>>

/** A command with its operands in the order of their names. Every one has --json. */
export const make = <P extends Operands = Record<never, never>, F extends Flags = Record<never, never>>({
  about,
  examples,
  flags,
  name,
  operands,
  run
}: {
  readonly name: string
  readonly about: string
  /** What follows "castellan <group> <command>". */
  readonly examples: ReadonlyArray<string>
  readonly operands?: P
  readonly flags?: F
  /** As `Effect.gen` takes it. */
  readonly run: (
    given: Cli.Command.Config.Infer<P & F>,
    asJson: boolean
  ) => Generator<Effect.Effect<unknown, Why, Operator | Scope.Scope>, Said, never>
}): Command =>
  Cli.make(name, { ...operands, ...flags, json }, ({ json, ...given }) =>
    Effect.gen(() => run(given as Cli.Command.Config.Infer<P & F>, json)).pipe(
      Effect.scoped,
      Effect.mapError((why) => (typeof why === "string" ? why : why.message)),
      Effect.flatMap((said) => print(json, said))
    )
  ).pipe(
    Cli.withDescription(about),
    Cli.withExamples(({ commandPath }) =>
      examples.map((example) => ({ command: `${commandPath.join(" ")} ${example}`.trimEnd() }))
    )
  )
