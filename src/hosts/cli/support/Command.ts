import type * as Array from "effect/Array"
import * as Context from "effect/Context"
import * as Args from "effect/cli/Argument"
import * as Descriptor from "effect/cli/CommandDescriptor"
import * as Options from "effect/cli/Flag"
import * as HelpDoc from "effect/cli/HelpDoc"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { YieldWrap } from "effect/Utils"
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

export interface Command {
  readonly name: string
  readonly about: string
  /** What follows "castellan <group> <command>". */
  readonly examples: ReadonlyArray<string>
  readonly descriptor: Descriptor.Command<Run>
}

/** What a module of commands exports. */
export interface Commands {
  readonly commands: Array.NonEmptyReadonlyArray<Command>
  /** What a reader of the help has to know beside the commands. */
  readonly notes: ReadonlyArray<string>
  /** What they read of the environment, where that is not the configuration of the service. */
  readonly environment?: ReadonlyArray<string> | undefined
}

type Operands = Readonly<Record<string, Args.Args<unknown>>>
type Flags = Readonly<Record<string, Options.Options<unknown>>>
type Given<P extends Operands, F extends Flags> = {
  readonly [K in keyof P]: P[K] extends Args.Args<infer A> ? A : never
} & { readonly [K in keyof F]: F[K] extends Options.Options<infer A> ? A : never }

/** What stands where an operand is expected and looks like an option was meant as one. */
export const operand = (name: string, about: string): Args.Args<string> =>
  Args.text({ name }).pipe(
    Args.withDescription(about),
    Args.mapEffect((text) =>
      text.startsWith("-") ? Effect.fail(HelpDoc.p(`expected ${name}`)) : Effect.succeed(text)
    )
  )

/** `--name VALUE`. */
export const required = (name: string, value: string, about: string): Options.Options<string> =>
  Options.text(name).pipe(Options.withPseudoName(value), Options.withDescription(about))

export const optional = (name: string, value: string, about: string): Options.Options<string | undefined> =>
  required(name, value, about).pipe(Options.optional, Options.map(Option.getOrUndefined))

/** `--name VALUE`, as often as there are values. */
export const repeated = (
  name: string,
  value: string,
  about: string
): Options.Options<ReadonlyArray<string>> => required(name, value, about).pipe(Options.repeated)

/** One of some words. */
export const choice = <const Words extends Array.NonEmptyReadonlyArray<string>>(
  name: string,
  words: Words,
  about: string
): Options.Options<Words[number] | undefined> =>
  Options.choice(name, words).pipe(
    Options.withDescription(about),
    Options.optional,
    Options.map(Option.getOrUndefined)
  )

export const flag = (name: string, about: string): Options.Options<boolean> =>
  Options.boolean(name).pipe(Options.withDescription(about))

const json = flag("json", "print one JSON value")

const print = (asJson: boolean, { json, text }: Said) =>
  Effect.flatMap(Operator, (operator) => operator.print(asJson ? JSON.stringify(json, null, 2) : text))

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
  readonly examples: ReadonlyArray<string>
  readonly operands?: P
  readonly flags?: F
  /** As `Effect.gen` takes it. */
  readonly run: (
    given: Given<P, F>,
    asJson: boolean
  ) => Generator<YieldWrap<Effect.Effect<unknown, Why, Operator | Scope.Scope>>, Said>
}): Command => ({
  name,
  about,
  examples,
  descriptor: Descriptor.make(
    name,
    Options.all<Flags & { readonly json: typeof json }>({ ...flags, json }),
    operands === undefined ? Args.map(Args.none, () => ({})) : Args.all<Operands>({ ...operands })
  ).pipe(
    Descriptor.withDescription(about),
    Descriptor.map(({ args, options: { json, ...options } }) =>
      Effect.gen(() => run({ ...args, ...options } as Given<P, F>, json)).pipe(
        Effect.scoped,
        Effect.mapError((why) => (typeof why === "string" ? why : why.message)),
        Effect.flatMap((said) => print(json, said))
      )
    )
  )
})
