import * as Effect from "effect/Effect"
import * as Statement from "effect/sql/Statement"
import * as Config from "../../../src/hosts/config/Config.js"
import * as Process from "../../../src/hosts/node/Process.js"
import * as Service from "../../../src/hosts/node/Service.js"
import * as JsonLog from "../../../src/hosts/service/JsonLog.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Killing from "./Killing.js"

/** The service as a process, like `src/hosts/node/main.ts`, that ends by SIGKILL where its environment says. */
const spot: Killing.Spot | Killing.StatementSpot | null = JSON.parse(process.env[Killing.variable] ?? "null")
const isOfJournal = spot !== null && "step" in spot
Process.run(
  Effect.gen(function* () {
    const config = yield* Effect.fromResult(Config.load(process.env))
    const { url } = yield* Service.start(
      config,
      isOfJournal ? { journal: Journals.mapped(Killing.wrap(spot)) } : {}
    )
    yield* Effect.annotateLogs(Effect.logInfo("listening"), { url, profile: config.profile })
    return yield* Effect.never
  }).pipe(
    Effect.provideService(
      Statement.CurrentTransformer,
      spot === null || isOfJournal ? undefined : Killing.atStatement(spot)
    ),
    Effect.provide(JsonLog.layer)
  )
)
