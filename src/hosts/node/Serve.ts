import * as Effect from "effect/Effect"
import * as Config from "../config/Config.js"
import * as Inspections from "../Inspections.js"
import * as JsonLog from "../service/JsonLog.js"
import * as Process from "./Process.js"
import * as Service from "./Service.js"

/** The service as a process: configured by the file at CASTELLAN_CONFIG, stopped by a signal, logging JSON lines to stdout. */
Process.run(
  Effect.gen(function* () {
    const config = yield* Effect.fromResult(Config.load(process.env))
    const { url } = yield* Effect.catchTag(
      Service.start(config, { inspect: true }),
      "StartError",
      (refusal) =>
        Effect.flatMap(Inspections.explain(config, refusal.message), (message) => Effect.fail({ message }))
    )
    yield* Effect.annotateLogs(Effect.logInfo("listening"), { url, profile: config.profile })
    return yield* Effect.never
    // The log outlives the service's scope, so that messages of the shutdown are written.
  }).pipe(Effect.scoped, Effect.provide(JsonLog.layer))
)
