import { realpathSync } from "node:fs"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
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

/** What is loaded of one file, and who uses it. */
interface Loaded {
  readonly lock: Semaphore.Semaphore
  readonly users: Set<symbol>
  readonly connected: Set<symbol>
  library: Library.Library | null
  /** False where somebody else in the process has initialized it: then it is theirs to finalize. */
  ours: boolean
}

const osLocking = { flags: 0x2 }

/** How long the last user waits for calls under way, milliseconds. */
const patience = 5_000

const modules = new Map<string, Loaded>()

/** One library may be reached by several paths, and is one all the same. */
const real = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

const loadedOf = (path: string): Loaded => {
  const known = modules.get(path)
  if (known !== undefined) return known
  const fresh = {
    lock: Semaphore.makeUnsafe(1),
    users: new Set<symbol>(),
    connected: new Set<symbol>(),
    library: null,
    ours: false
  }
  modules.set(path, fresh)
  return fresh
}

/** True when this call has initialized the library. */
const initialize = (library: Library.Library) =>
  library.call("C_Initialize", osLocking).pipe(
    Effect.as(true),
    Effect.catchIf(
      ({ name }) => name === "CKR_CRYPTOKI_ALREADY_INITIALIZED",
      () => Effect.succeed(false)
    )
  )

const load = (path: string) =>
  Effect.gen(function* () {
    const library = yield* Effect.sync(Library.start)
    const ours = yield* Effect.onError(
      Effect.andThen(library.call("load", path), initialize(library)),
      () => library.close
    )
    return { library, ours }
  })

/** A call that does not come back keeps the thread, and leaves the library as it is. */
const unload = (library: Library.Library, ours: boolean) =>
  Effect.gen(function* () {
    yield* library.idle
    if (ours) yield* Effect.ignore(library.call("C_Finalize"))
    yield* library.close
  }).pipe(Effect.timeout(patience), Effect.ignore)

/** The library of this path, initialized by its first user in the process and finalized after its last. */
export const open = (path: string): Effect.Effect<Module, KeyProviderError, Scope.Scope> => {
  const me = Symbol(path)
  const loaded = loadedOf(real(path))
  const { connected, lock, users } = loaded
  const enter = lock.withPermits(1)(
    Effect.gen(function* () {
      const { library, ours } =
        loaded.library === null ? yield* load(path) : { ...loaded, library: loaded.library }
      loaded.library = library
      loaded.ours = ours
      users.add(me)
      return library
    })
  )
  const leave = lock.withPermits(1)(
    Effect.suspend(() => {
      users.delete(me)
      connected.delete(me)
      const { library, ours } = loaded
      if (users.size > 0 || library === null) return Effect.void
      loaded.library = null
      return unload(library, ours)
    })
  )
  return Effect.acquireRelease(Effect.mapError(enter, Failure.from), () => leave).pipe(
    Effect.map(
      (library): Module => ({
        call: library.call,
        connected: (yes) => (yes ? void connected.add(me) : void connected.delete(me)),
        restart: Effect.suspend(() => {
          const others = [...connected].some((user) => user !== me)
          if (others || library.running() > 0 || !loaded.ours) return Effect.void
          // Where only the second failed the last time there is nothing to finalize.
          return Effect.andThen(
            Effect.ignore(library.call("C_Finalize")),
            Effect.ignore(library.call("C_Initialize", osLocking))
          )
        })
      })
    )
  )
}
