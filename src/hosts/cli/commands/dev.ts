import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { quote } from "../../../domain/primitives/InvalidValue.js"
import { isHttpUrl, notHttpUrl } from "../../config/FileFields.js"
import * as EntryPoints from "../deploy/EntryPoints.js"
import * as Anvil from "../dev/Anvil.js"
import { DevError } from "../dev/DevChain.js"
import * as DevFile from "../dev/DevFile.js"
import * as DevStack from "../dev/DevStack.js"
import { apiPageOf, playgroundOf } from "../dev/DevStack.js"
import * as FirstOperation from "../dev/FirstOperation.js"
import * as Bring from "../support/Bring.js"
import { help, json, Operator, optional, report } from "../support/Operator.js"

const integer = (name: string, text: string, from: number, to: number): Effect.Effect<number, string> => {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN
  return value >= from && value <= to
    ? Effect.succeed(value)
    : Effect.fail(`--${name}: expected an integer from ${from} to ${to}, got ${quote(text)}`)
}

/** Logs to stderr, so that the output for pasting stays together. */
const requestLines = Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])

const lines = (info: DevStack.DevInfo, first: FirstOperation.Executed, file: string): string =>
  [
    `\nPlayground  ${playgroundOf(info)}`,
    `API page    ${apiPageOf(info)}`,
    `Console     ${info.console}`,
    `\nThe wallet ${first.wallet} has minted 1000 tokens in the transaction ${first.txHash}. Paste this to do it again:\n\n${first.command}`,
    `\nThe service listens at ${info.baseUrl}, chain ${info.chainId} at ${info.rpc}. Keys and addresses: ${file}. Ctrl-C stops it.`
  ].join("\n")

const run = (options: DevStack.Options, asJson: boolean) =>
  Effect.gen(function* () {
    const { become, env, print, tell } = yield* Operator
    const stack = Effect.gen(function* () {
      yield* DevStack.onlyInDevelopment(env)
      yield* Effect.mapError(
        Bring.packages(tell, [...EntryPoints.absent(), ...(options.rpc === undefined ? Anvil.absent() : [])]),
        (message) => new DevError({ message })
      )
      yield* tell(
        options.rpc === undefined
          ? "starting a chain"
          : `preparing the chain of ${new URL(options.rpc).origin}`
      )
      const info = yield* DevStack.start(options)
      const file = yield* DevFile.publish(process.cwd(), info)
      const first = yield* FirstOperation.execute(info)
      yield* print(asJson ? JSON.stringify({ ...info, file, first }, null, 2) : lines(info, first, file))
      return yield* Effect.never
    })
    return yield* become(Effect.provide(stack, requestLines))
  })

export const commands = [
  Command.make("dev", {
    port: optional("port", "PORT", "of the service: default 8080; 0 picks a free one"),
    rpcPort: optional("rpc-port", "PORT", "of the chain: default 8545; 0 picks a free one"),
    consolePort: optional(
      "console-port",
      "PORT",
      "of the operator's console: default 8081; 0, or --port 0, picks a free one"
    ),
    blockTime: optional(
      "block-time",
      "SECONDS",
      "between blocks; without it there is a block per transaction"
    ),
    chainId: optional("chain-id", "CHAIN", "default 31337"),
    rpc: optional("rpc", "URL", "a running node of anvil or Hardhat, instead of a new anvil"),
    json
  }).pipe(
    help(
      "Starts a development chain with the EntryPoints and the wallet suite on it, and the service, on 127.0.0.1. Executes a first operation, and prints it as a request to paste, with links to the playground, the API page and the console.",
      "",
      "--port 0 --rpc-port 0 --block-time 2",
      "--rpc http://127.0.0.1:8545"
    ),
    report(function* ({ blockTime, chainId, consolePort, json, port, rpc, rpcPort }) {
      if (rpc !== undefined && (blockTime ?? chainId ?? rpcPort) !== undefined)
        return yield* Effect.fail("--rpc: the node that runs there has its own port, chain id and block time")
      if (rpc !== undefined && !isHttpUrl(rpc)) return yield* Effect.fail(`--rpc: ${notHttpUrl}`)
      const own = yield* integer("port", port ?? "8080", 0, 65_535)
      const options = {
        port: own,
        rpcPort: yield* integer("rpc-port", rpcPort ?? "8545", 0, 65_535),
        consolePort: yield* integer("console-port", consolePort ?? (own === 0 ? "0" : "8081"), 0, 65_535),
        blockTime: blockTime === undefined ? null : yield* integer("block-time", blockTime, 1, 3_600),
        chainId: yield* integer("chain-id", chainId ?? "31337", 1, 2 ** 32),
        rpc
      }
      return yield* run(options, json)
    })
  )
]

export const notes = [
  "Its keys are public: it runs only on nodes of anvil and Hardhat.",
  "The EntryPoints and anvil are npm packages of their authors. npm installs missing packages into .castellan in the working folder; an anvil on the PATH is used, and --rpc needs none.",
  "In the same folder the commands of lanes, requests, accounts, signers and others work without a configuration, and castellan call without URL and key.",
  "Addresses, keys and settings are in .castellan/dev.json while it runs. SIGINT and SIGTERM stop it; the service's data are gone then.",
  "npx is another process, which ends before the service: to stop the service by its pid, start node_modules/.bin/castellan."
]

export const environment = [
  "NODE_ENV=production, and a CASTELLAN_CONFIG outside the development profile, keep it from starting."
]
