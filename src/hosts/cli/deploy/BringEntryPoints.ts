import * as Effect from "effect/Effect"
import * as EntryPoints from "./EntryPoints.js"

/** For a development chain, which has none: npm brings the EntryPoints whose packages are not installed. */
export const bring = (tell: (line: string) => Effect.Effect<void>): Effect.Effect<void, string> =>
  Effect.gen(function* () {
    const absent = EntryPoints.absent()
    if (absent.length === 0) return
    yield* tell("the EntryPoints are in their authors' npm packages: npm puts them into .castellan, once")
    yield* Effect.tryPromise({
      try: () => EntryPoints.install(absent),
      catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
    })
  })
