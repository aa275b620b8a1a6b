import { parseArgs } from "node:util"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Process from "../src/hosts/node/Process.js"
import * as DevFile from "./DevFile.js"
import * as DevStack from "./DevStack.js"
import * as PlaygroundLink from "./PlaygroundLink.js"
import * as Tour from "./Tour.js"

const usage = `npm run dev -- [--port 8080] [--rpc-port 8545] [--block-time seconds] [--chain-id 31337]

Starts a development chain with the EntryPoints and the wallet suite on it, and the service, on 127.0.0.1.
Port 0 picks a free one. Without --block-time there is a block per transaction.`

class UsageError extends Data.TaggedError("UsageError")<{ readonly message: string }> {}

const integer = (name: string, text: string, from: number, to: number): number => {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= from && value <= to)) throw new Error(`--${name}: expected an integer from ${from} to ${to}`)
  return value
}

const options = (args: ReadonlyArray<string>): Effect.Effect<DevStack.Options, UsageError> =>
  Effect.try({
    try: () => {
      const { values } = parseArgs({
        args: [...args],
        options: {
          port: { type: "string", default: "8080" },
          "rpc-port": { type: "string", default: "8545" },
          "block-time": { type: "string" },
          "chain-id": { type: "string", default: "31337" }
        }
      })
      const blockTime = values["block-time"]
      return {
        port: integer("port", values.port, 0, 65_535),
        rpcPort: integer("rpc-port", values["rpc-port"], 0, 65_535),
        blockTime: blockTime === undefined ? null : integer("block-time", blockTime, 1, 3_600),
        chainId: integer("chain-id", values["chain-id"], 1, 2 ** 32)
      }
    },
    catch: (cause) =>
      new UsageError({ message: `${cause instanceof Error ? cause.message : String(cause)}\n\n${usage}` })
  })

const say = (text: string) => Effect.sync(() => process.stdout.write(`${text}\n`))

/** On stderr, so that what is printed for pasting stays together. */
const requestLines = Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger))

Process.run(
  Effect.gen(function* () {
    const info = yield* DevStack.start(yield* options(process.argv.slice(2)))
    const file = yield* DevFile.publish(process.cwd(), info)
    yield* say(`\n# Paste these first:\n${Tour.preamble(info, file)}`)
    for (const { command, title } of Tour.stops(info)) yield* say(`\n# ${title}\n${command}`)
    yield* say(`\n# Passkeys in the browser: open\n# ${PlaygroundLink.of(info)}`)
    yield* say(
      `\ncastellan (development) listens at ${info.baseUrl}, chain ${info.chainId} at ${info.rpc}; keys and addresses in ${file}. Ctrl-C stops both.`
    )
    return yield* Effect.never
  }).pipe(Effect.provide(requestLines))
)
