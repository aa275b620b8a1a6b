import { realpathSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as RcMap from "effect/RcMap"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { KeyProviderError } from "../../../application/ports/KeyProvider.js"
import * as Library from "./Library.js"
import * as TokenFailure from "./TokenFailure.js"

/** A loaded library from one user's view. All users in the process share the loaded library. */
export interface Module {
  readonly call: Library.Library["call"]
  /** Records whether this user has sessions. */
  readonly connected: (yes: boolean) => void
  /**
   * Finalizes and initializes the library, which some libraries need to see a token that returned. It would end other
   * users' sessions, so it does nothing while they have any or a call is running.
   */
  readonly restart: Effect.Effect<void>
}

/** The shared state of one library file. */
interface Loaded {
  readonly library: Library.Library
  /** False when other code in the process initialized the library, and must finalize it. */
  readonly ours: boolean
  /** Users with sessions. */
  readonly connected: Set<symbol>
}

const osLocking = { flags: 0x2 }

/** Time-out of the last user for running calls, in ms. */
const patience = 5_000

/** Resolves links: several paths may lead to one library. */
const real = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

const doors = new Map<string, Semaphore.Semaphore>()

/** A user that arrives while the last one is unloading the library loads it afterwards. */
const inTurn = (path: string) => {
  const door = doors.get(path) ?? Semaphore.makeUnsafe(1)
  doors.set(path, door)
  return door.withPermits(1)
}

const load = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Loaded, TokenFailure.Refusal> {
  const library = yield* Effect.sync(Library.start)
  const initialized = Effect.andThen(library.call("load", path), library.call("C_Initialize", osLocking))
  const ours = yield* initialized.pipe(
    Effect.as(true),
    Effect.catchIf(
      ({ name }) => name === "CKR_CRYPTOKI_ALREADY_INITIALIZED",
      () => Effect.succeed(false)
    ),
    Effect.onError(() => library.close)
  )
  return { library, ours, connected: new Set() }
})

/** A call that never returns keeps the thread and leaves the library initialized. */
const unload = Effect.fnUntraced(
  function* ({ library, ours }: Loaded) {
    yield* library.idle
    if (ours) yield* Effect.ignore(library.call("C_Finalize"))
    yield* library.close
  },
  Effect.timeout(patience),
  (effect) => Effect.ignore(effect)
)

/** Its first user in the process initializes a library; its last finalizes it. */
const modules = Effect.runSync(
  RcMap.make({
    lookup: (path: string) =>
      Effect.acquireRelease(inTurn(path)(load(path)), (loaded) => inTurn(path)(unload(loaded)))
  }).pipe(Scope.provide(Scope.makeUnsafe()))
)

/** The library at this path, as long as the scope lives. */
export const open = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<Module, KeyProviderError, Scope.Scope> {
  const me = Symbol(path)
  const { connected, library, ours } = yield* Effect.mapError(
    RcMap.get(modules, real(path)),
    TokenFailure.from
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => connected.delete(me)))
  return {
    call: library.call,
    connected: (yes) => (yes ? void connected.add(me) : void connected.delete(me)),
    restart: Effect.suspend(() => {
      const others = [...connected].some((user) => user !== me)
      if (others || library.running() > 0 || !ours) return Effect.void
      // When only C_Initialize failed the last time, there is nothing to finalize.
      return Effect.andThen(
        Effect.ignore(library.call("C_Finalize")),
        Effect.ignore(library.call("C_Initialize", osLocking))
      )
    })
  }
})
