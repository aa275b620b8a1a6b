import { readFileSync } from "node:fs"
import * as Context from "effect/Context"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Failure } from "../../../application/failures/Failure.js"
import * as Breakage from "../../../domain/json/Breakage.js"
import { quote } from "../../../domain/primitives/InvalidValue.js"
import * as SchemaProblems from "../../config/SchemaProblems.js"
import type * as Secrets from "../../config/Secrets.js"

/**
 * Additions to `effect/cli`: a result for people or, with --json, for programs, as the only standard output; errors in
 * plain sentences, and one-line flag descriptions.
 */

export class Operator extends Context.Service<
  Operator,
  {
    readonly env: Secrets.Sources["env"]
    /** Configuration of the development stack that runs in the working folder; undefined: none runs. */
    readonly devConfig: string | undefined
    /** Standard output, for the result only. */
    readonly print: (text: string) => Effect.Effect<void>
    /** Standard error, for progress and warnings. */
    readonly tell: (line: string) => Effect.Effect<void>
    /** Asks a person; false when standard input is not a terminal. */
    readonly ask: (question: string) => Effect.Effect<boolean>
    /** Becomes the service's process, with the given configuration file or the environment's. */
    readonly serve: (configFile: string | undefined) => Effect.Effect<never>
    /** Runs until a signal stops the process, and ends with it. */
    readonly become: (
      program: Effect.Effect<void, { readonly message: string }, Scope.Scope>
    ) => Effect.Effect<never>
    /** Asks a person for a text; the default when the reply is empty or standard input is not a terminal. */
    readonly answer: (question: string, byDefault: string) => Effect.Effect<string>
  }
>()("castellan/cli/Operator") {}

/** A result for people and for programs. */
export interface Said {
  readonly text: string
  readonly json: unknown
}

/** Reason for a missing result: the command's text, or an underlying failure. */
export type Why = string | { readonly message: string }

/** Prints the result, or fails with a reason. */
export type Run = Effect.Effect<void, string, Operator>

/** Exports of a command module. */
export interface Commands {
  readonly commands: ReadonlyArray<Command.Command.Any>
  /** Notes at the end of the help. */
  readonly notes: ReadonlyArray<string>
  /** Environment variables that the commands read, in addition to the service's configuration. */
  readonly environment?: ReadonlyArray<string> | undefined
}

/** `--name VALUE`. */
export const text = (name: string, value: string, about: string): Flag.Flag<string> =>
  Flag.String(name).pipe(Flag.withMetavar(value), Flag.withDescription(about))

export const required = (name: string, value: string, about: string): Flag.Flag<string> =>
  text(name, value, `${about} (required)`)

export const optional = (name: string, value: string, about: string): Flag.Flag<string | undefined> =>
  text(name, value, about).pipe(Flag.withDefault(undefined))

/** Consumes no following argument: `--yes 1` does not take the 1. */
export const flag = (name: string, about: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(
    Flag.withDescription(about),
    Flag.withOptionalValue("true"),
    Flag.withoutNegation,
    Flag.withDefault(false)
  )

export const json = flag("json", "print one JSON value")

/** The integer of a flag, if given. */
export const whole = (
  name: string,
  text: string | undefined,
  expected = "a decimal number"
): Effect.Effect<number | undefined, string> =>
  text === undefined || /^[0-9]{1,15}$/.test(text)
    ? Effect.succeed(text === undefined ? undefined : Number(text))
    : Effect.fail(`--${name}: expected ${expected}`)

export const chainOf = (text: string, name = ""): Effect.Effect<bigint, string> =>
  /^[1-9][0-9]{0,15}$/.test(text)
    ? Effect.succeed(BigInt(text))
    : Effect.fail(`${name}expected a chain id, a decimal number, got ${quote(text)}`)

/** The value under a schema, or all its problems. */
export const decode = <A, I>(value: unknown, schema: Schema.Codec<A, I>): Effect.Effect<A, string> =>
  Effect.fromResult(
    Result.mapError(SchemaProblems.decoder(schema)(value), (problems) =>
      SchemaProblems.lines(problems).join("\n")
    )
  )

/** The JSON of a file under a schema, or all its problems. */
export const decodeFile = <A>(file: string, schema: Schema.Codec<A, unknown>): Effect.Effect<A, string> =>
  Effect.gen(function* () {
    const text = yield* Effect.try({
      try: () => readFileSync(file, "utf8"),
      catch: () => `${file} cannot be read`
    })
    const value = yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: () => `${file} is not JSON${Breakage.describeIn(text)}`
    })
    return yield* decode(value, schema)
  })

/** A use case's failure for people. */
export const refusalOf = ({ details, message }: Failure): string =>
  details.length === 0
    ? message
    : details.map(({ message: why, path }) => (path === "" ? why : `${path}: ${why}`)).join("\n")

/** Help of a command; examples omit the command's name. */
export const help =
  (about: string, ...examples: ReadonlyArray<string>) =>
  <Name extends string, Input, C, E, R>(command: Command.Command<Name, Input, C, E, R>) =>
    command.pipe(
      Command.withDescription(about),
      Command.withExamples(({ commandPath }) =>
        examples.map((example) => ({ command: `${commandPath.join(" ")} ${example}`.trimEnd() }))
      )
    )

/** Runs a command's steps, as for `Effect.gen`, and prints their result. */
export const report = <Input extends { readonly json: boolean }>(
  steps: (given: Input) => Generator<Effect.Effect<unknown, Why, Operator | Scope.Scope>, Said, never>
) =>
  Command.withHandler(
    (given: Input): Run =>
      Effect.gen(() => steps(given)).pipe(
        Effect.scoped,
        Effect.mapError((why) => (typeof why === "string" ? why : why.message)),
        Effect.flatMap(({ json, text }) =>
          Effect.flatMap(Operator, ({ print }) => print(given.json ? JSON.stringify(json, null, 2) : text))
        )
      )
  )
