/** The page of the command line, made of what `--help` prints. */

/** What `--help` prints for a group or a command. */
export interface Help {
  /** For example `accounts`, `create`. */
  readonly words: ReadonlyArray<string>
  readonly text: string
}

/** An argument or a flag, with its meaning. */
interface Parameter {
  readonly name: string
  readonly meaning: string
}

interface Command {
  readonly words: ReadonlyArray<string>
  /** The first sentence, then remarks. */
  readonly description: ReadonlyArray<string>
  readonly usage: string
  readonly parameters: ReadonlyArray<Parameter>
  readonly examples: ReadonlyArray<string>
}

/** Facts that the head of the page states for all commands. */
const stated = [
  "It ends with 0, or with 1 and the reason on standard error.",
  "CASTELLAN_CONFIG names the service's configuration file, unless --config does.",
  "CASTELLAN_CONFIG names the service's configuration file, unless --config does. In the folder of a running castellan dev, neither is needed.",
  "All changes take effect within a second, on all replicas, without a restart."
]

/** Arguments and flags that the heads of the pages explain for all commands. */
const explained = [
  /^(the account|of the database or of the file)$/,
  /^(a chain id|id of the chain|a chain id of the configuration)\.?$/i,
  /^your name, for the log of operators$/,
  /^the reason, for the log of operators/,
  /^of this account$/,
  /: the next page$/,
  /^number of \w+: default 100, at most 1000$/
]

const read = ({ text, words }: Help): Command => {
  const [, ...parts] = `\n${text}`.split(/\n([A-Z]+)\n/)
  const linesOf = (title: string): ReadonlyArray<string> =>
    (parts[parts.indexOf(title) + 1] ?? "")
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "" && !line.startsWith("Run 'castellan --help'"))
  const among = (title: string) => (parts.includes(title) ? linesOf(title) : [])
  return {
    words,
    description: among("DESCRIPTION").filter((line) => !stated.includes(line)),
    usage: (among("USAGE")[0] ?? "").replace("castellan ", "").replace(" [flags]", ""),
    parameters: [...among("ARGUMENTS"), ...among("FLAGS")].flatMap((line) => {
      const [name = "", meaning = ""] = line.split(/ {2,}/)
      return name.startsWith("--json ") || explained.some((each) => each.test(meaning))
        ? []
        : [{ name: name.replace(/ (string|choice)$/, ""), meaning }]
    }),
    examples: among("EXAMPLES")
  }
}

const code = (text: string): string => `\`${text.replaceAll("|", "\\|")}\``

const table = (heads: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [heads, heads.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n")

/** Parameters of a group's commands: equal ones stand once, with the commands that take them. */
const parameterTable = (commands: ReadonlyArray<Command>): ReadonlyArray<string> => {
  const users = new Map<string, { readonly parameter: Parameter; readonly commands: Array<string> }>()
  for (const { parameters, words } of commands)
    for (const parameter of parameters) {
      const key = `${parameter.name}\n${parameter.meaning}`
      const entry = users.get(key) ?? { parameter, commands: [] }
      users.set(key, entry)
      entry.commands.push(words.at(-1) ?? "")
    }
  if (users.size === 0) return []
  const hasOne = commands.length === 1
  const [only, ...more] = users.values()
  if (only !== undefined && more.length === 0) {
    const { name, meaning } = only.parameter
    const of = hasOne || only.commands.length === commands.length ? "" : ` of ${only.commands.join(", ")}`
    return [`${code(name)}${of}: ${sentence(meaning)}`]
  }
  return [
    table(
      ["argument or flag", ...(hasOne ? [] : ["of"]), "meaning"],
      [...users.values()].map(({ commands: of, parameter: { meaning, name } }) => [
        code(name),
        ...(hasOne ? [] : [of.length === commands.length ? "all" : of.join(", ")]),
        meaning.replaceAll("|", "\\|")
      ])
    )
  ]
}

const sentence = (text: string): string =>
  text.charAt(0).toUpperCase() + text.slice(1) + (/[.)]$/.test(text) ? "" : ".")

/** Whether an example shows more than usage and table: a path, a pattern, JSON, input from a file, or several flags. */
const addsToUsage = (words: ReadonlyArray<string>): boolean =>
  words.some((word) => /[/*{<>=]/.test(word)) ||
  words.filter((word) => /^--(?!json|account|limit)/.test(word)).length > 1

/** Examples that add to the usage; of each command of a group the longest, which has most of its flags. */
const exampleBlock = (commands: ReadonlyArray<Command>): ReadonlyArray<string> => {
  const shown = commands.flatMap(({ examples, words }) => {
    const adding = examples.filter((example) => addsToUsage(example.split(" ").slice(1 + words.length)))
    return commands.length === 1
      ? adding
      : adding.toSorted((one, other) => other.length - one.length).slice(0, 1)
  })
  return shown.length === 0 ? [] : [`\`\`\`text\n${shown.join("\n")}\n\`\`\``]
}

const section = (group: Command, commands: ReadonlyArray<Command>): ReadonlyArray<string> => {
  const [about = "", ...remarks] = group.description
  const all = commands.length === 0 ? [group] : commands
  return [
    `## castellan ${group.words.join(" ")}`,
    ...(remarks.length === 1
      ? [`${sentence(about)} ${remarks[0]}`]
      : [
          sentence(about),
          ...(remarks.length === 0 ? [] : [remarks.map((remark) => `- ${remark}`).join("\n")])
        ]),
    ...(commands.length === 0
      ? []
      : [
          table(
            ["command", "effect"],
            commands.map(({ description, usage }) => [
              code(usage),
              description.join(" ").replaceAll("|", "\\|")
            ])
          )
        ]),
    ...parameterTable(all),
    ...exampleBlock(all)
  ]
}

const sections = (all: ReadonlyArray<Command>, groups: (group: string) => boolean): string =>
  all
    .filter(({ words: [group = "", ...rest] }) => rest.length === 0 && groups(group))
    .flatMap((group) =>
      section(
        group,
        all.filter(({ words }) => words.length > 1 && words[0] === group.words[0])
      )
    )
    .join("\n\n")
    .concat("\n")

/** Commands that install, configure and run the service; the others act on its database or ask it. */
const ofService = ["serve", "dev", "init", "call", "deploy", "store", "config", "signers"]

/** The pages, by path in the repository. */
export const pages = (manual: ReadonlyArray<Help>): Readonly<Record<string, string>> => {
  const all = manual.map(read)
  return {
    "docs/cli.md": [
      "# Command line",
      "Generated by `npm run docs` from what `--help` prints. `npm run castellan -- <command>` in this repository, `castellan <command>` where the package is installed. Every command prints its result on standard output, with `--json` as one JSON value; everything else is on standard error. `--help` of a command has more examples. It ends with 0, or with 1 and the reason. `CASTELLAN_CONFIG` or `--config FILE` names the service's configuration file; in the folder of a running `castellan dev`, neither is needed. Commands that pause, resume, revoke, cancel, release or drop take `--operator NAME` and `--reason TEXT` (at most 500 characters) for the log of operators. Accounts, keys, requests, lanes and the like have [their own page](cli-operating.md).",
      "Completions: `castellan --completions bash` (or `zsh`, `fish`, `powershell`) prints the script that the shell loads, for example `source <(castellan --completions bash)`. Bash needs the package bash-completion for it.",
      sections(all, (group) => ofService.includes(group))
    ].join("\n\n"),
    "docs/cli-operating.md": [
      "# Commands that operate a service",
      "Generated by `npm run docs` from what `--help` prints. The [first page](cli.md) says how every command answers and finds its configuration. `ACCOUNT` is the id of an account of the database or of the file, `CHAIN` a chain id. Changes of accounts, keys, policies and chains take effect within a second, on all replicas, without a restart. `webhooks list`, `watches list` and `requests list` take `--account ID`. `audit list` and `requests list` take `--limit COUNT` (default 100, at most 1000) and `--before NUMBER` for the next page.",
      sections(all, (group) => !ofService.includes(group))
    ].join("\n\n")
  }
}
