import * as Effect from "effect/Effect"
import * as Config from "../Config.js"
import * as Process from "./Process.js"
import * as Service from "./Service.js"

/** The service as a process: configured by the file that CASTELLAN_CONFIG names, stopped by a signal. */
Process.run(
  Effect.gen(function* () {
    const config = yield* Config.load(process.env)
    const { url } = yield* Service.start(config)
    process.stdout.write(`castellan (${config.profile}) listens at ${url}\n`)
    return yield* Effect.never
  })
)
