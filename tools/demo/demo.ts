import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as DevStack from "../../src/hosts/cli/dev/DevStack.js"
import * as Provider from "../../src/hosts/cli/support/Provider.js"
import * as Process from "../../src/hosts/node/Process.js"
import * as CountingProxy from "../CountingProxy.js"
import { startNode } from "../PreparedChain.js"
import * as Client from "./Client.js"
import * as Report from "./Report.js"
import * as Story from "./Story.js"

const usage = `npm run demo -- [--dev path/to/dev.json]

Runs the story of five wallets over HTTP and checks every step on the chain. Starts a development stack,
or uses the running stack of the file.`

class DemoError extends Data.TaggedError("DemoError")<{ readonly message: string }> {}

const failing = (cause: unknown) =>
  new DemoError({ message: cause instanceof Error ? cause.message : String(cause) })

const devFile = (args: ReadonlyArray<string>) =>
  Effect.try({
    try: () => parseArgs({ args: [...args], options: { dev: { type: "string" } } }).values.dev ?? null,
    catch: (cause) => new DemoError({ message: `${failing(cause).message}\n\n${usage}` })
  })

interface Setting {
  readonly info: DevStack.DevInfo
  readonly chainUrl: string
  readonly proxy: CountingProxy.CountingProxy
}

/** A new stack on free ports, whose service reaches the chain through the proxy. */
const ownStack = Effect.gen(function* () {
  const opened: Array<Omit<Setting, "info">> = []
  const info = yield* DevStack.start({
    startNode,
    port: 0,
    rpcPort: 0,
    chainId: 31337,
    blockTime: null,
    nodeUrl: (chainUrl) =>
      Effect.map(CountingProxy.start(chainUrl), (proxy) => {
        opened.push({ chainUrl, proxy })
        return proxy.url
      })
  })
  const [rest] = opened
  return rest === undefined ? yield* new DemoError({ message: "the stack has no chain" }) : { info, ...rest }
})

/** A running stack; requests name the proxy as their node. */
const runningStack = (file: string) =>
  Effect.gen(function* () {
    const info = yield* Effect.try({
      try: (): DevStack.DevInfo => JSON.parse(readFileSync(file, "utf8")),
      catch: failing
    })
    const proxy = yield* CountingProxy.start(info.rpc)
    const settings = { ...info.settings, rpc: proxy.url }
    return { info: { ...info, settings }, chainUrl: info.rpc, proxy }
  })

Process.run(
  Effect.gen(function* () {
    const began = performance.now()
    const report = Report.make((line) => void process.stdout.write(`${line}\n`))
    const file = yield* devFile(process.argv.slice(2))
    const { chainUrl, info, proxy } = yield* file === null ? ownStack : runningStack(file)
    report.note(`service at ${info.baseUrl}, chain ${info.chainId} at ${chainUrl}`)
    const provider = yield* Provider.connect(chainUrl, info.chainId)
    yield* Effect.tryPromise({
      try: () => Story.run({ info, call: Client.make(info), provider, proxy, report }),
      catch: failing
    })
    const seconds = ((performance.now() - began) / 1_000).toFixed(1)
    const verdict = `${report.passed()} checks passed, ${report.failed()} failed, in ${seconds} s`
    process.stdout.write(`\n${verdict}\n`)
    if (report.failed() > 0)
      return yield* new DemoError({ message: "the demo did not hold what it promises" })
  }).pipe(Effect.provideService(References.MinimumLogLevel, "Warn"))
)
