import { stripVTControlCharacters } from "node:util"
import * as CliConfig from "effect/cli/CliConfig"
import * as Descriptor from "effect/cli/CommandDescriptor"
import * as HelpDoc from "effect/cli/HelpDoc"
import * as Usage from "effect/cli/Usage"
import type { Command } from "./Command.js"
import * as Table from "./Table.js"

export const config: CliConfig.CliConfig = CliConfig.make({ isCaseSensitive: true, showBuiltIns: false })

/** The library's text without control characters, and without what the usage line says already. */
export const plain = (page: HelpDoc.HelpDoc): string =>
  stripVTControlCharacters(HelpDoc.toAnsiText(page))
    .split("\n")
    .filter((line) => line !== "" && !noise.has(line.trim()))
    .join("\n")

/** The library's page in sections, as the others are. */
const sections = (page: HelpDoc.HelpDoc): string =>
  plain(page)
    .replace(/^(?![A-Z]+$)/gm, "  ")
    .replace(/\n(?=[A-Z]+$)/gm, "\n\n")

const noise = new Set([
  "A user-defined piece of text.",
  "A true or false value.",
  "This setting is optional.",
  "This argument is optional."
])

/** How a command is written. */
export const usage = (group: string, { descriptor, name }: Command): string =>
  `castellan ${group === name ? "" : `${group} `}${plain(Usage.getHelp(Descriptor.getUsage(descriptor)))}`
    // Whatever may be given several times may be left out.
    .replace(/(--[a-z-]+ [A-Z]+)\.\.\./g, "[$1]...")

const section = (title: string, lines: ReadonlyArray<string>): string =>
  [title, ...lines.map((line) => (line === "" ? "" : `  ${line}`))].join("\n")

const page = (sections: ReadonlyArray<string>): string => sections.join("\n\n")

const ends = ({ environment }: Group): ReadonlyArray<string> => [
  section(
    "ENVIRONMENT",
    environment ?? [
      "CASTELLAN_CONFIG names the configuration file of the service, whose database the commands use."
    ]
  ),
  section("EXIT STATUS", ["0, or 1 with the reason on standard error."])
]

export interface Group {
  readonly name: string
  readonly about: string
  readonly commands: ReadonlyArray<Command>
  readonly notes: ReadonlyArray<string>
  readonly environment: ReadonlyArray<string> | undefined
}

const examples = (group: string, { examples, name }: Command): ReadonlyArray<string> =>
  examples.map((example) => `$ castellan ${group === name ? "" : `${group} `}${name} ${example}`.trimEnd())

/** What the manual says of a command beside what its group has in common. */
export const body = (group: string, command: Command): string =>
  page([
    section("USAGE", [`$ ${usage(group, command)}`]),
    sections(Descriptor.getHelp(command.descriptor, config)),
    section("EXAMPLES", examples(group, command))
  ])

export const ofCommand = (group: Group, command: Command): string =>
  page([body(group.name, command), section("NOTES", group.notes), ...ends(group)])

export const ofGroup = (group: Group): string => {
  const { about, commands, name, notes } = group
  return page([
    section("NAME", [`castellan ${name} - ${about}`]),
    section(
      "COMMANDS",
      commands.flatMap((command) => [usage(name, command), `  ${command.about}`])
    ),
    section("NOTES", notes),
    ...ends(group),
    `"castellan ${name} <command> --help" tells more.`
  ])
}

export const ofProgram = (groups: ReadonlyArray<Pick<Group, "name" | "about">>): string =>
  page([
    "castellan <command>",
    Table.aligned(groups.map(({ about, name }) => [`  ${name}`, about])),
    section("OPTIONS", [
      "--help              a command's page: castellan <command> --help",
      "--json              print one JSON value; every command has it",
      "--completions SHELL the completions for bash, zsh or fish",
      "--log-level LEVEL   all, trace, debug, info, warning, error, fatal or none",
      "--version           the version"
    ]),
    `"castellan <command> --help" tells more.`
  ])
