import * as NodeServices from "@effect/platform-node/NodeServices"
import * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Cli from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import { version } from "../Packages.js"
import { type Commands, Operator, optional, type Run } from "./support/Operator.js"

/** Summary and module of each group. A module loads when one of its commands is named: most load the service's adapters. */
const groups: Readonly<Record<string, readonly [about: string, load: () => Promise<Commands>]>> = {
  serve: ["run the service", () => import("./commands/serve.js")],
  dev: ["a development chain and the service on it, ready to be called", () => import("./commands/dev.js")],
  init: ["write a commented configuration and its secrets", () => import("./commands/init.js")],
  call: ["call an endpoint of a running service", () => import("./commands/call.js")],
  accounts: ["create, show, change and pause accounts", () => import("./commands/accounts.js")],
  keys: ["issue, list, rotate and revoke API keys", () => import("./commands/keys.js")],
  policies: [
    "set, show and remove spending rules of keys, signers and wallets",
    () => import("./commands/policies.js")
  ],
  topups: ["set and show top-ups of an account's signers and wallets", () => import("./accounts/topups.js")],
  chains: ["pause and resume writes on a chain", () => import("./commands/chains.js")],
  audit: ["list signatures with their time and account", () => import("./commands/audit.js")],
  lanes: [
    "list and show pending transactions, replace them at higher prices",
    () => import("./commands/lanes.js")
  ],
  webhooks: [
    "deliver events of requests to accounts: add, pause, rotate, send again",
    () => import("./webhooks/webhooks.js")
  ],
  watches: [
    "deliver events of contracts to webhooks: add, show, pause, resume, remove",
    () => import("./webhooks/watches.js")
  ],
  requests: ["list and show accepted requests", () => import("./commands/requests.js")],
  deploy: ["put EntryPoints and the contract suite on a chain", () => import("./commands/deploy.js")],
  store: [
    "copy a database from SQLite to PostgreSQL, confirm the clock",
    () => import("./commands/store.js")
  ],
  config: ["check a configuration, print its JSON Schema", () => import("./commands/config.js")],
  signers: [
    "list and show the keys that sign, create one in an HSM, pause and resume one",
    () => import("./commands/signers.js")
  ]
}

const configuration = [
  "CASTELLAN_CONFIG names the service's configuration file, unless --config does. In the folder of a running castellan dev, neither is needed."
]

const configFile = GlobalFlag.Setting("config")({
  flag: optional(
    "config",
    "FILE",
    "The service's configuration file (default: CASTELLAN_CONFIG, or the file of castellan dev in this folder)"
  )
})

/** The environment of a command, where --config replaces CASTELLAN_CONFIG. */
const configured = Effect.gen(function* () {
  const [operator, file] = [yield* Operator, yield* configFile]
  return file === undefined
    ? operator
    : { ...operator, env: { ...operator.env, CASTELLAN_CONFIG: file }, devConfig: undefined }
})

type Command = Cli.Command<string, never, object, string, Operator>

/** The commands of a group; `castellan deploy` is itself a command. */
const branch = (
  name: string,
  about: string,
  { commands: loaded, environment = configuration, notes }: Commands
): Command => {
  const commands: ReadonlyArray<Command> = loaded
  const own = commands.find((command) => command.name === name)
  const group = Cli.make(name, {}, () =>
    Effect.fail(
      `castellan ${name} needs one of: ${commands.map((command) => command.name).join(", ")}\n"castellan ${name} --help" shows the usage`
    )
  ).pipe(Cli.withSubcommands(commands))
  const ends = [...notes, ...environment, "It ends with 0, or with 1 and the reason on standard error."]
  return (own ?? group).pipe(
    Cli.withShortDescription(about),
    Cli.withDescription(`${own?.description ?? about}\n\n  ${ends.join("\n  ")}`)
  )
}

/** The program with the full commands of the named groups, and the summaries of the others. */
const program = (isNamed: (name: string) => boolean) =>
  Effect.map(
    Effect.forEach(Object.entries(groups), ([name, [about, load]]) =>
      isNamed(name)
        ? Effect.map(Effect.promise(load), (commands) => branch(name, about, commands))
        : Effect.succeed<Command>(Cli.make(name).pipe(Cli.withDescription(about)))
    ),
    (branches) =>
      Cli.make("castellan").pipe(
        Cli.withDescription("the operator's command line"),
        Cli.withSubcommands(branches),
        Cli.provideEffect(Operator, configured),
        Cli.withGlobalFlags([configFile])
      )
  )

const paths = (
  command: Cli.Command.Any,
  above: ReadonlyArray<string>
): ReadonlyArray<ReadonlyArray<string>> =>
  command.subcommands.flatMap(({ commands }) =>
    commands.flatMap((each) => [[...above, each.name], ...paths(each, [...above, each.name])])
  )

/** The words of all groups and commands, in the order of the help. */
export const manual: Effect.Effect<ReadonlyArray<ReadonlyArray<string>>> = Effect.map(
  program(() => true),
  (root) => paths(root, [])
)

/** Shows a mistyped name, but not a secret given in its place. */
const shown = (word: string): string => (/^-{0,2}[a-z][a-z-]{0,30}$/.test(word) ? word : "***")

/** Explains a parse error without values: one may be a secret. */
const reason = (error: CliError.NonShowHelpErrors): string => {
  switch (error._tag) {
    case "UnrecognizedOption": {
      const { command, option, suggestions } = error
      return new CliError.UnrecognizedOption({ command, option: shown(option), suggestions }).message
    }
    case "UnknownSubcommand": {
      const { parent, subcommand, suggestions } = error
      return new CliError.UnknownSubcommand({ parent, subcommand: shown(subcommand), suggestions }).message
    }
    case "InvalidValue": {
      const { expected, kind, option, value } = error
      const shownValue = /^(\d+ occurrences)?$/.test(value) ? value : "***"
      return new CliError.InvalidValue({ expected, kind, option, value: shownValue }).message
    }
    case "UnexpectedArgument":
      return new CliError.UnexpectedArgument({ arguments: error.arguments.map(() => "***") }).message
    default:
      return error.message
  }
}

/** No colours: the output is the same everywhere. */
const { formatHelpDoc } = CliOutput.defaultFormatter({ colors: false, globalFlags: "summary" })

const presenter = ({ print }: Operator["Service"]): CliOutput.Presenter => ({
  present: (event) => {
    switch (event._tag) {
      case "Help":
        return print(formatHelpDoc(event.helpDoc))
      case "Version":
        return print(event.version)
      case "InvalidInvocation":
        return Effect.void
    }
  }
})

/** "castellan help keys" and "castellan keys help" mean "castellan keys --help". */
const asked = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const at = args.indexOf("help")
  return at === 0 || at === 1 ? [...args.toSpliced(at, 1), "--help"] : args
}

const dispatch = (args: ReadonlyArray<string>): Run =>
  Effect.gen(function* () {
    const all = args.some((word) => /^--(completions|wizard)(=|$)/.test(word))
    const root = yield* program((name) => all || args.includes(name))
    yield* Cli.runWith(root, { version })(args).pipe(
      Effect.provideService(CliOutput.Presenter, presenter(yield* Operator)),
      Effect.provide(NodeServices.layer),
      Effect.catchIf(CliError.isCliError, (error) => {
        if (error._tag !== "ShowHelp") return Effect.fail(error.message)
        const { commandPath, errors } = error
        const [first] = errors
        return first === undefined
          ? Effect.void
          : Effect.fail(`${reason(first)}\n"${commandPath.join(" ")} --help" shows the usage`)
      })
    )
  })

/** Runs the command that the arguments name. With --json, failures are JSON, too. */
export const run = (args: ReadonlyArray<string>): Run => {
  const words = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined)
  return words.includes("--json")
    ? Effect.mapError(dispatch(asked(args)), (error) => JSON.stringify({ error }, null, 2))
    : dispatch(asked(args))
}
