import * as Context from "effect/Context"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { given } from "../../../domain/primitives/InvalidValue.js"
import type * as Secrets from "../../config/Secrets.js"

/**
 * What operators need and `effect/cli` lacks: one result for people and with --json for programs, on a standard output
 * that has nothing else; reasons in words; flags whose texts stand in one line.
 */

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

/** The reason why there is no result: told by the command, or the failure of what it used. */
export type Why = string | { readonly message: string }

/** Prints the result, or fails with the reason why there is none. */
export type Run = Effect.Effect<void, string, Operator>

/** What a module of commands exports. */
export interface Commands {
  readonly commands: ReadonlyArray<Command.Command.Any>
  /** What a reader of the help has to know beside the commands. */
  readonly notes: ReadonlyArray<string>
  /** What they read of the environment, where that is not the configuration of the service. */
  readonly environment?: ReadonlyArray<string> | undefined
}

/** `--name VALUE`. */
export const text = (name: string, value: string, about: string): Flag.Flag<string> =>
  Flag.String(name).pipe(Flag.withMetavar(value), Flag.withDescription(about))

export const required = (name: string, value: string, about: string): Flag.Flag<string> =>
  text(name, value, `${about} (required)`)

export const optional = (name: string, value: string, about: string): Flag.Flag<string | undefined> =>
  text(name, value, about).pipe(Flag.withDefault(undefined))

/** Takes nothing of what stands behind it: a chain id of 1 is no "yes". */
export const flag = (name: string, about: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(
    Flag.withDescription(about),
    Flag.withOptionalValue("true"),
    Flag.withoutNegation,
    Flag.withDefault(false)
  )

export const json = flag("json", "print one JSON value")

/** The number that stands behind a flag, where there is any. */
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
    : Effect.fail(`${name}expected a chain id, a decimal number, got ${given(text)}`)

/** What the help says of a command; examples are what follows its name. */
export const help =
  (about: string, ...examples: ReadonlyArray<string>) =>
  <Name extends string, Input, C, E, R>(command: Command.Command<Name, Input, C, E, R>) =>
    command.pipe(
      Command.withDescription(about),
      Command.withExamples(({ commandPath }) =>
        examples.map((example) => ({ command: `${commandPath.join(" ")} ${example}`.trimEnd() }))
      )
    )

/** What a command does, in steps as `Effect.gen` takes them; what they end with is printed. */
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
