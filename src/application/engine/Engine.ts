import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Bundler } from "../ports/Bundler.js"
import { Journal } from "../ports/Journal.js"
import * as ChainFacts from "./ChainFacts.js"
import * as Lanes from "./Lanes.js"
import * as Releases from "./Releases.js"
import * as SelfBundler from "./SelfBundler.js"
import * as Watcher from "./Watcher.js"

/** What all writes of a process share. */
export class Engine extends Context.Tag("castellan/Engine")<
  Engine,
  {
    readonly facts: ChainFacts.ChainFacts
    readonly lanes: Lanes.Lanes
    readonly watcher: Watcher.Watcher
    readonly releases: Releases.Releases
    /** Tells everybody who waits for a sent transaction what is known of it, and to look again later. */
    readonly stopWaiting: Effect.Effect<void>
    /** Lives as long as the process: accepted work runs there, whether its caller still waits or not. */
    readonly scope: Scope.Scope
  }
>() {}

/** The engine with its self-bundler: everything that the writing use cases need beside the adapters. */
export const layer: Layer.Layer<Engine | Bundler, never, Journal> = Layer.scopedContext(
  Effect.gen(function* () {
    const journal = yield* Journal
    const scope = yield* Scope.Scope
    const watcher = yield* Watcher.make
    const releases = yield* Releases.make
    const lanes = Lanes.make(journal)
    const facts = ChainFacts.make()
    const stopping = yield* Deferred.make<void>()
    const stopWaiting = Effect.asVoid(Deferred.succeed(stopping, undefined))
    return Context.make(Engine, { facts, lanes, watcher, releases, scope, stopWaiting }).pipe(
      Context.add(Bundler, SelfBundler.make({ journal, lanes, watcher, releases, stopping }))
    )
  })
)
