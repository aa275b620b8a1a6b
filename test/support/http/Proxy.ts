import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as CountingProxy from "../../../tools/CountingProxy.js"

export interface Proxy extends CountingProxy.CountingProxy {
  readonly stop: () => Promise<void>
}

/** Starts a counting proxy in front of a node, for tests without Effect. */
export const startProxy = async (target: string): Promise<Proxy> => {
  const scope = await Effect.runPromise(Scope.make())
  const proxy = await Effect.runPromise(Scope.provide(CountingProxy.start(target), scope))
  return { ...proxy, stop: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}
