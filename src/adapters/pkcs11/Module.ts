import { realpathSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as RcMap from "effect/RcMap"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { KeyProviderError } from "../../application/ports/KeyProvider.js"
import * as Failure from "./Failure.js"
import * as Library from "./Library.js"

/** A loaded library as one of its users sees it. All users in the process share what is loaded. */
export interface Module {
  readonly call: Library.Library["call"]
  /** Says whether this user has sessions. */
  readonly connected: (yes: boolean) => void
  /**
   * Finalizes and initializes the library, which some need to see a token that was away. Only while no other user has
   * sessions and no call is under way: it would take them away. What it can not do now it leaves.
   */
  readonly restart: Effect.Effect<void>
}

/** What is loaded of one file. */
interface Loaded {
  readonly library: Library.Library
  /** False where somebody else in the process has initialized it: then it is theirs to finalize. */
  readonly ours: boolean
  /** The users that have sessions. */
  readonly connected: Set<symbol>
}

const osLocking = { flags: 0x2 }

/** How long the last user waits for calls under way, milliseconds. */
const patience = 5_000

/** One library may be reached by several paths, and is one all the same. */
const real = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

const doors = new Map<string, Semaphore.Semaphore>()

/** Who comes while the last user's leaving is under way loads the library after it. */
const inTurn = (path: string) => {
  const door = doors.get(path) ?? Semaphore.makeUnsafe(1)
  doors.set(path, door)
  return door.withPermits(1)
}

const load = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Loaded, Failure.Refusal> {
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

/** A call that does not come back keeps the thread, and leaves the library as it is. */
const unload = Effect.fnUntraced(
  function* ({ library, ours }: Loaded) {
    yield* library.idle
    if (ours) yield* Effect.ignore(library.call("C_Finalize"))
    yield* library.close
  },
  Effect.timeout(patience),
  (effect) => Effect.ignore(effect)
)

/** Each is initialized by its first user in the process and finalized after its last. */
const modules = Effect.runSync(
  RcMap.make({
    lookup: (path: string) =>
      Effect.acquireRelease(inTurn(path)(load(path)), (loaded) => inTurn(path)(unload(loaded)))
  }).pipe(Scope.provide(Scope.makeUnsafe()))
)

/** The library of this path, as long as the scope lives. */
export const open = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<Module, KeyProviderError, Scope.Scope> {
  const me = Symbol(path)
  const { connected, library, ours } = yield* Effect.mapError(RcMap.get(modules, real(path)), Failure.from)
  yield* Effect.addFinalizer(() => Effect.sync(() => connected.delete(me)))
  return {
    call: library.call,
    connected: (yes) => (yes ? void connected.add(me) : void connected.delete(me)),
    restart: Effect.suspend(() => {
      const others = [...connected].some((user) => user !== me)
      if (others || library.running() > 0 || !ours) return Effect.void
      // Where only the second failed the last time there is nothing to finalize.
      return Effect.andThen(
        Effect.ignore(library.call("C_Finalize")),
        Effect.ignore(library.call("C_Initialize", osLocking))
      )
    })
  }
})
