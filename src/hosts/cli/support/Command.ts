import { parseArgs } from "node:util"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Secrets from "../../config/Secrets.js"
import * as Table from "./Table.js"

/** Something that is said after the operands: `--name TEXT`, or without a value. */
export interface Option {
  /** What stands for its value in the help; null: it has none. */
  readonly value: string | null
  readonly about: string
  readonly required?: boolean
}

export interface Given {
  readonly operands: ReadonlyArray<string>
  /** The options with a value. */
  readonly options: Readonly<Record<string, string>>
  readonly env: Secrets.Sources["env"]
}

/** The same for people and for programs. */
export interface Said {
  readonly text: string
  readonly json: unknown
}

export interface Command {
  readonly name: string
  /** Names of the operands; one in brackets may be left out, one with dots may be many. */
  readonly operands: ReadonlyArray<string>
  readonly about: string
  readonly options?: Readonly<Record<string, Option>>
  readonly run: (given: Given) => Effect.Effect<Said, string, Scope.Scope>
}

export interface Group {
  readonly name: string
  readonly about: string
  readonly commands: ReadonlyArray<Command>
  /** What a reader of the help has to know beside the commands. */
  readonly notes: ReadonlyArray<string>
}

/** What an operator runs: the lines that it prints, or why it can not. */
export type Run = (args: ReadonlyArray<string>, env: Secrets.Sources["env"]) => Effect.Effect<string, string>

const always: Readonly<Record<string, Option>> = {
  json: { value: null, about: "print JSON" },
  help: { value: null, about: "print this" }
}

const shown = ([name, { required, value }]: readonly [string, Option]): string => {
  const text = value === null ? `--${name}` : `--${name} ${value}`
  return required === true ? text : `[${text}]`
}

const synopsis = (group: string, { name, operands, options }: Command): string =>
  ["castellan", group, name, ...operands, ...Object.entries(options ?? {}).map(shown)].join(" ")

const paragraph = (lines: ReadonlyArray<string>) => lines.map((line) => `    ${line}`)

/** The manual page of a group of commands. */
export const help = ({ about, commands, name, notes }: Group): string =>
  [
    "NAME",
    `    castellan ${name} - ${about}`,
    "",
    "COMMANDS",
    ...commands.flatMap((command) => [
      `    ${synopsis(name, command)}`,
      `        ${command.about}`,
      ...Object.entries(command.options ?? {}).map(([option, { about }]) => `        --${option}: ${about}`),
      ""
    ]),
    "OPTIONS",
    ...paragraph(
      Table.aligned(Object.entries(always).map(([option, { about }]) => [`--${option}`, about])).split("\n")
    ),
    "",
    "NOTES",
    ...paragraph(notes),
    "",
    "ENVIRONMENT",
    "    CASTELLAN_CONFIG names the configuration file of the service; its database is worked on.",
    "",
    "EXIT STATUS",
    "    0, or 1 with the reason on standard error."
  ].join("\n")

const fits = (operands: ReadonlyArray<string>, count: number): boolean => {
  const least = operands.filter((operand) => !operand.startsWith("[")).length
  const most = operands.some((operand) => operand.includes("..."))
    ? Number.POSITIVE_INFINITY
    : operands.length
  return count >= least && count <= most
}

const parsed = (command: Command, args: ReadonlyArray<string>) =>
  Effect.try({
    try: () =>
      parseArgs({
        args: [...args],
        allowPositionals: true,
        options: Object.fromEntries(
          Object.entries({ ...always, ...command.options }).map(([name, { value }]) => [
            name,
            { type: value === null ? ("boolean" as const) : ("string" as const) }
          ])
        )
      }),
    catch: (cause) =>
      (cause instanceof Error ? cause.message : "the options can not be read").split(". ")[0] ?? ""
  })

const perform = (group: Group, command: Command, args: ReadonlyArray<string>, env: Given["env"]) =>
  Effect.gen(function* () {
    const usage = synopsis(group.name, command)
    const wrong = (why: string) => Effect.fail(`${why}\nusage: ${usage}`)
    const { positionals, values } = yield* Effect.catchAll(parsed(command, args), wrong)
    const missing = Object.entries(command.options ?? {}).find(
      ([name, { required }]) => required === true && values[name] === undefined
    )
    if (!fits(command.operands, positionals.length))
      return yield* wrong(
        `expected ${command.operands.length === 0 ? "no operand" : command.operands.join(" ")}`
      )
    if (missing !== undefined) return yield* wrong(`--${missing[0]} is missing`)
    const options = Object.fromEntries(
      Object.entries(values).flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : []))
    )
    return yield* command.run({ operands: positionals, options, env })
  })

/** Runs what the arguments name. */
export const run =
  (group: Group): Run =>
  (args, env) => {
    const end = args.indexOf("--")
    const flags = end < 0 ? args : args.slice(0, end)
    if (flags.includes("--help") || args[0] === "help") return Effect.succeed(help(group))
    const json = flags.includes("--json")
    const [name, ...rest] = args
    const command = group.commands.find((each) => each.name === name)
    const names = group.commands.map((each) => each.name).join(", ")
    return (
      command === undefined
        ? Effect.fail(
            `castellan ${group.name} needs one of: ${names}\n"castellan ${group.name} --help" tells more`
          )
        : Effect.scoped(perform(group, command, rest, env))
    ).pipe(
      Effect.mapBoth({
        onSuccess: (said) => (json ? JSON.stringify(said.json, null, 2) : said.text),
        onFailure: (why) => (json ? JSON.stringify({ error: why }, null, 2) : why)
      })
    )
  }
