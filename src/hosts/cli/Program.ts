import { readFileSync } from "node:fs"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as NodeTerminal from "@effect/platform-node/NodeTerminal"
import * as Array from "effect/Array"
import * as CliConfig from "effect/cli/CliConfig"
import * as ValidationError from "effect/cli/CliError"
import * as Cli from "effect/cli/Command"
import * as Descriptor from "effect/cli/CommandDescriptor"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { closest } from "../../domain/primitives/Suggestion.js"
import { type Command, type Commands, Operator, type Run } from "./support/Command.js"
import * as Help from "./support/Help.js"

/** Loaded when one of its commands is named: most of them bring the adapters of the service with them. */
const groups: Readonly<Record<string, { readonly about: string; readonly load: () => Promise<Commands> }>> = {
  serve: { about: "run the service", load: () => import("./commands/serve.js") },
  dev: {
    about: "a development chain and the service on it, ready to be called",
    load: () => import("./commands/dev.js")
  },
  call: { about: "call an endpoint of a running service", load: () => import("./commands/call.js") },
  accounts: {
    about: "create, show, change and pause accounts",
    load: () => import("./commands/accounts.js")
  },
  keys: { about: "issue, list, rotate and revoke API keys", load: () => import("./commands/keys.js") },
  chains: { about: "pause and resume writes on a chain", load: () => import("./commands/chains.js") },
  audit: { about: "who signed what, when, and for whom", load: () => import("./commands/audit.js") },
  lanes: {
    about: "list and show pending transactions, replace them at higher prices",
    load: () => import("./commands/lanes.js")
  },
  webhooks: {
    about: "tell accounts of their requests' events: add, pause, rotate, send again",
    load: () => import("./webhooks/webhooks.js")
  },
  watches: {
    about: "tell webhooks of events of contracts: add, show, pause, resume, remove",
    load: () => import("./webhooks/watches.js")
  },
  requests: { about: "list and show accepted requests", load: () => import("./commands/requests.js") },
  deploy: {
    about: "put EntryPoints and the contract suite on a chain",
    load: () => import("./commands/deploy.js")
  },
  store: {
    about: "copy a database from SQLite to PostgreSQL, confirm the clock",
    load: () => import("./commands/store.js")
  },
  config: {
    about: "check a configuration, print its JSON Schema",
    load: () => import("./commands/config.js")
  },
  signers: {
    about: "list and show the keys that sign, create one in an HSM, pause and resume one",
    load: () => import("./commands/signers.js")
  }
}

/** The command of a group that is one: `castellan deploy`. */
const ownCommand = ({ commands, name }: Group): Command | undefined =>
  commands.length === 1 && commands[0]?.name === name ? commands[0] : undefined

const names = Object.entries(groups).map(([name, { about }]) => ({ name, about }))

type Group = Commands & Help.Group

const loaded = (name: string): Effect.Effect<Group | null> => {
  const group = Object.hasOwn(groups, name) ? groups[name] : undefined
  return group === undefined
    ? Effect.succeed(null)
    : Effect.map(Effect.promise(group.load), ({ commands, environment, notes }) => ({
        name,
        about: group.about,
        commands,
        notes,
        environment
      }))
}

/** All groups with their commands. */
export const manual: Effect.Effect<ReadonlyArray<Group>> = Effect.map(
  Effect.forEach(names, ({ name }) => loaded(name)),
  (all) => all.filter((group) => group !== null)
)

const library = Layer.mergeAll(
  NodeFileSystem.layer,
  NodePath.layer,
  NodeTerminal.layer,
  Layer.succeed(CliConfig.CliConfig, Help.config)
)

/** A command whose own words are commands. */
const branch = (
  name: string,
  about: string,
  children: Array.NonEmptyReadonlyArray<Descriptor.Command<Run>>
): Descriptor.Command<Run> =>
  Descriptor.make(name).pipe(
    Descriptor.withDescription(about),
    Descriptor.withSubcommands(Array.map(children, (child) => [null, child] as const)),
    Descriptor.map(({ subcommand }) =>
      Option.match(subcommand, {
        onNone: () => Effect.fail(`castellan ${name} needs a command`),
        onSome: ([, run]) => run
      })
    )
  )

/**
 * Below the second word the library's script looks for commands under another name than it files them under: it would
 * complete none of their options.
 */
const repaired = (line: string): string =>
  line.replace(
    /^( *\w+),(\w+),(\w+)\)$/,
    (_, root: string, group: string, name: string) => `${root}__${group},${name.replaceAll("__", "-")})`
  )

/** What the library does by itself with all commands at hand: completions, the wizard, the log level, the version. */
const builtIn = (args: ReadonlyArray<string>): Run =>
  Effect.gen(function* () {
    const branches = (yield* manual).map(
      (group) =>
        ownCommand(group)?.descriptor ??
        branch(
          group.name,
          group.about,
          Array.map(group.commands, ({ descriptor }) => descriptor)
        )
    )
    if (!Array.isReadonlyArrayNonEmpty(branches)) return
    const { version }: { readonly version: string } = JSON.parse(
      readFileSync(new URL("../../../package.json", import.meta.url), "utf8")
    )
    const tree = branch("castellan", "the operator's command line", branches)
    const [option, shell = ""] = args
    if (option === "--completions" && !["bash", "fish", "sh", "zsh"].includes(shell))
      return yield* Effect.fail("--completions: expected bash, zsh or fish")
    if (option === "--completions" && ["bash", "sh"].includes(shell)) {
      const { print } = yield* Operator
      return yield* print((yield* Descriptor.getBashCompletions(tree, "castellan")).map(repaired).join("\n"))
    }
    const root = Descriptor.map(tree, (run) => ({ name: "castellan" as const, run }))
    const app = Cli.run(
      Cli.fromDescriptor(root, ({ run }) => run),
      { name: "castellan", version, executable: "castellan" }
    )
    yield* app(["node", "castellan", ...args]).pipe(
      Effect.provide(library),
      // It has said why.
      Effect.mapError((why) =>
        ValidationError.isValidationError(why) ? '"castellan --help" tells more' : why
      )
    )
  })

/** A word that may be shown: a mistyped name, and no secret that somebody has put in its place. */
const shown = (word: string): string =>
  /^-{0,2}[a-z][a-z-]{0,30}$/.test(word) ? ` ${word}` : " of this name"

const meant = (word: string, known: ReadonlyArray<string>): string => {
  const best = closest(word, known)
  return best === null ? "" : `; did you mean ${best}?`
}

const noCommand = (place: string, word: string, known: ReadonlyArray<string>) =>
  Effect.fail(
    `${place} has no command${shown(word)}${meant(word, known)}\nit has: ${known.join(", ")}\n"${place} --help" tells more`
  )

const optionsOf = (usage: string): ReadonlyArray<string> => usage.match(/--[a-z-]+/g) ?? []

/** Why the words after a command can not be read. Values are never repeated: one may be a secret. */
const misread = (words: ReadonlyArray<string>, usage: string, why: string): string => {
  const known = optionsOf(usage)
  const unknown = words
    .slice(0, words.includes("--") ? words.indexOf("--") : undefined)
    .flatMap((word) => (word.startsWith("-") ? (word.split("=")[0] ?? "") : []))
    .find((word) => !known.includes(word))
  return unknown === undefined ? why : `there is no option${shown(unknown)}${meant(unknown, known)}`
}

/** What the first word that nothing takes tells. */
const leftOver = (first: string, words: ReadonlyArray<string>, usage: string): string => {
  const option = optionsOf(usage).find((each) => each === first.split("=")[0])
  if (option === undefined) return "an operand too many"
  const times = words.filter((word) => word.split("=")[0] === option).length
  return times > 1 ? `${option} is given twice` : `${option} needs a value`
}

/** Flags without a value go last: the library takes a "1" or a "no" behind one for its value. */
const flagsLast = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const isFlag = (word: string) => ["--json", "--dry-run", "--yes", "--connect", "--async"].includes(word)
  const end = args.includes("--") ? args.indexOf("--") : args.length
  const words = args.slice(0, end)
  return [...words.filter((word) => !isFlag(word)), ...words.filter(isFlag), ...args.slice(end)]
}

const perform = (group: Group, command: Command, words: ReadonlyArray<string>): Run =>
  Effect.gen(function* () {
    const { print } = yield* Operator
    const usage = Help.usage(group.name, command)
    const wrong = (why: string) => Effect.fail(`${why}\nusage: ${usage}`)
    const read = yield* Descriptor.parse(
      command.descriptor,
      [command.name, ...flagsLast(words)],
      Help.config
    ).pipe(
      Effect.provide(library),
      Effect.catch(({ error }) => wrong(misread(words, usage, Help.plain(error))))
    )
    if (read._tag === "BuiltIn")
      return yield* read.option._tag === "ShowHelp"
        ? print(Help.ofCommand(group, command))
        : builtIn([group.name, ...(command === ownCommand(group) ? [] : [command.name]), ...words])
    const [first] = read.leftover
    if (first === undefined) return yield* read.value
    return yield* wrong(misread(words, usage, leftOver(first, words, usage)))
  })

const isHelp = (word: string | undefined): boolean => word === "--help" || word === "-h" || word === "help"

const dispatch = (args: ReadonlyArray<string>): Run =>
  Effect.gen(function* () {
    const { print } = yield* Operator
    const [first, second, ...words] = args
    if (first === undefined || (isHelp(first) && second === undefined))
      return yield* print(Help.ofProgram(names))
    if (isHelp(first)) return yield* dispatch([...args.slice(1), "--help"])
    if (first.startsWith("-")) return yield* builtIn(args)
    const group = yield* loaded(first)
    if (group === null)
      return yield* noCommand(
        "castellan",
        first,
        names.map(({ name }) => name)
      )
    const own = ownCommand(group)
    if (own !== undefined) {
      const rest = args.slice(1)
      return yield* rest.length === 1 && isHelp(second)
        ? print(Help.ofCommand(group, own))
        : perform(group, own, rest)
    }
    const known = group.commands.map(({ name }) => name)
    if (second === undefined)
      return yield* Effect.fail(
        `castellan ${first} needs one of: ${known.join(", ")}\n"castellan ${first} --help" tells more`
      )
    const command = group.commands.find(({ name }) => name === second)
    if (command !== undefined) return yield* perform(group, command, words)
    if (isHelp(second))
      return yield* words.length === 0 ? print(Help.ofGroup(group)) : dispatch([first, ...words, "--help"])
    return yield* second.startsWith("-") && second !== "--json"
      ? builtIn(args)
      : noCommand(`castellan ${first}`, second, known)
  })

/** Runs what the arguments name. With --json the reason of a failure is JSON as well. */
export const run = (args: ReadonlyArray<string>): Run => {
  const words = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined)
  return words.includes("--json")
    ? Effect.mapError(dispatch(args), (error) => JSON.stringify({ error }, null, 2))
    : dispatch(args)
}
