import { resolve } from "node:path"
import { createInterface } from "node:readline/promises"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Process from "../node/Process.js"
import * as JsonLog from "../service/JsonLog.js"
import * as DevFile from "./dev/DevFile.js"
import * as Program from "./Program.js"
import { Operator } from "./support/Operator.js"

const to = (stream: NodeJS.WriteStream) => (text: string) => Effect.sync(() => void stream.write(`${text}\n`))

/** Asks on standard error: standard output is for results. */
const reply = (question: string) =>
  Effect.promise(async () => {
    if (!process.stdin.isTTY) return ""
    const terminal = createInterface({ input: process.stdin, output: process.stderr })
    try {
      return (await terminal.question(question)).trim()
    } finally {
      terminal.close()
    }
  })

const ask = (question: string) => Effect.map(reply(`${question} [y/N] `), (text) => /^y(es)?$/i.test(text))

const answer = (question: string, byDefault: string) =>
  Effect.map(
    reply(byDefault === "" ? `${question}: ` : `${question} [${byDefault}]: `),
    (text) => text || byDefault
  )

/** The entry point of the service's process handles signals and exit codes, and reads the environment. */
const serve = (configFile: string | undefined) =>
  Effect.andThen(
    Effect.promise(() => {
      if (configFile !== undefined) process.env.CASTELLAN_CONFIG = resolve(configFile)
      return import("../node/Serve.js")
    }),
    Effect.never
  )

const become: Operator["Service"]["become"] = (program) =>
  Effect.andThen(
    Effect.sync(() => Process.run(program)),
    Effect.never
  )

// The reader of the output may leave, for example a pipe into head.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})

Effect.runPromise(
  Program.run(process.argv.slice(2)).pipe(
    Effect.provideService(Operator, {
      env: process.env,
      devConfig: DevFile.read(process.cwd())?.config,
      print: to(process.stdout),
      tell: to(process.stderr),
      ask,
      answer,
      serve,
      become
    }),
    Effect.provide(Logger.layer([JsonLog.make((line) => void process.stderr.write(line))])),
    Effect.match({
      onFailure: (why) => {
        process.stderr.write(`${why}\n`)
        process.exitCode = 1
      },
      onSuccess: () => {}
    })
  )
)
