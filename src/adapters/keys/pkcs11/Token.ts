import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { KeyProviderError } from "../../../application/ports/KeyProvider.js"
import type { Handle, Library } from "./Library.js"
import * as Module from "./Module.js"
import * as TokenFailure from "./TokenFailure.js"

export interface Options {
  /** Path of the library. */
  readonly module: string
  /** Label of the token. */
  readonly token: string
  readonly pin: Redacted.Redacted<string>
  /** Most concurrent signing sessions. Each occupies a thread of Node's pool, which has four. Default 3. */
  readonly sessions?: number | undefined
}

/** A logged-in connection to the token; valid until it is lost. */
export interface Connection {
  readonly slot: Handle
  /** Idle sessions. */
  readonly free: Array<Handle>
  /** True once a call has succeeded on it. */
  proven: boolean
}

/** A session of a connection, for one user at a time. */
export interface Session {
  readonly call: Library["call"]
  readonly handle: Handle
  readonly connection: Connection
}

export type Problem = TokenFailure.Refusal | KeyProviderError

export interface Token {
  /** Logs in, unless already logged in. */
  readonly connect: Effect.Effect<void, KeyProviderError>
  /** Uses a session, uninterruptibly: a session is busy until its call returns. */
  readonly use: <A>(
    body: (session: Session) => Effect.Effect<A, Problem>
  ) => Effect.Effect<A, KeyProviderError>
  /** Likewise with a separate read-write session. */
  readonly write: <A>(
    body: (session: Session) => Effect.Effect<A, Problem>
  ) => Effect.Effect<A, KeyProviderError>
}

const serialSession = 0x4
const readWriteSession = 0x2
const user = 1

/** States of a user's logged-in session: read-only and read-write. */
const loggedIn: ReadonlySet<number> = new Set([1, 3])

/** Labels are 32 bytes, padded with blanks or, against the standard, with zeros. */
const padding = /[ \0]+$/

/** Time-out of closing sessions, in ms. */
const patience = 2_000

/** Token flags about the user's PIN. */
const flags = { finalTry: 0x20000, locked: 0x40000 }

/** PINs refused in this process, by library and token. */
const refusedPins = new Map<string, { readonly pin: Redacted.Redacted<string>; readonly name: string }>()

const placeOf = ({ module, token }: Options): string => JSON.stringify([module, token])

const notAgain = (name: string): KeyProviderError =>
  TokenFailure.make("refused", `${name} (the PIN is not tried again)`)

/**
 * Reason not to try the PIN. Tokens lock after a few wrong ones, so a wrong PIN is never repeated. The last attempt is left
 * to a person; otherwise a supervisor's restarts could use it up.
 */
const objectionTo = (options: Options, tokenFlags: number): KeyProviderError | null => {
  const before = refusedPins.get(placeOf(options))
  if (before !== undefined && Equal.equals(before.pin, options.pin)) return notAgain(before.name)
  if ((tokenFlags & flags.locked) !== 0) return TokenFailure.make("refused", "CKR_PIN_LOCKED")
  if ((tokenFlags & flags.finalTry) !== 0)
    return TokenFailure.make("refused", "CKF_USER_PIN_FINAL_TRY: log in to the token by its own tools first")
  return null
}

const named = (name: string) => (refusal: TokenFailure.Refusal) => refusal.name === name

const lost = new TokenFailure.Refusal({ name: "CKR_TOKEN_NOT_PRESENT" })

/**
 * Fails when the session no longer sees the token's objects: after a logout or a token loss, libraries silently find
 * nothing.
 */
export const present = Effect.fnUntraced(function* ({ call, connection, handle }: Session) {
  yield* call("C_GetTokenInfo", connection.slot)
  const { state } = yield* call("C_GetSessionInfo", handle)
  if (!loggedIn.has(state)) return yield* lost
})

/** A token of a library. It connects on first use, and again after a loss. */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Token, KeyProviderError, Scope.Scope> {
  const { pin, sessions = 3, token: label } = options
  const module = yield* Module.open(options.module)
  const { call } = module
  const permits = yield* Semaphore.make(sessions)
  const door = yield* Semaphore.make(1)
  let current: Connection | null = null
  let restart = false
  let closed = false

  const find = Effect.gen(function* () {
    const matching: Array<{ readonly slot: Handle; readonly flags: number }> = []
    for (const slot of yield* call("C_GetSlotList", true)) {
      const info = yield* Effect.option(call("C_GetTokenInfo", slot))
      if (info._tag === "Some" && info.value.label.replace(padding, "") === label)
        matching.push({ slot, flags: info.value.flags })
    }
    const [first, second] = matching
    if (first === undefined)
      return yield* TokenFailure.make("unavailable", `there is no token ${JSON.stringify(label)}`)
    if (second !== undefined)
      return yield* TokenFailure.make("refused", `several tokens are called ${JSON.stringify(label)}`)
    return first
  })

  const login = (session: Handle) =>
    call("C_Login", session, user, Redacted.value(pin)).pipe(
      Effect.catchIf(named("CKR_USER_ALREADY_LOGGED_IN"), () => Effect.void),
      Effect.catchIf(TokenFailure.isOfPin, ({ name }) => {
        refusedPins.set(placeOf(options), { pin, name })
        return notAgain(name)
      })
    )

  const close = (session: Handle) => Effect.ignore(call("C_CloseSession", session))

  const fresh = Effect.gen(function* () {
    if (closed) return yield* lost
    if (restart) yield* module.restart
    const { flags, slot } = yield* find
    const objection = objectionTo(options, flags)
    if (objection !== null) return yield* objection
    const session = yield* call("C_OpenSession", slot, serialSession)
    yield* Effect.onError(login(session), () => close(session))
    const connection: Connection = { slot, free: [session], proven: false }
    return connection
  }).pipe(
    Effect.tapError((problem) =>
      Effect.sync(() => {
        restart = problem._tag === "Pkcs11Refusal" || problem.reason === "unavailable"
      })
    )
  )

  const connected = door.withPermits(1)(
    Effect.suspend(() =>
      current === null
        ? Effect.tap(fresh, (connection) =>
            Effect.sync(() => {
              current = connection
              module.connected(true)
            })
          )
        : Effect.succeed(current)
    )
  )

  /** Discards the connection; users close their own sessions after use. */
  const drop = (connection: Connection) =>
    Effect.suspend(() => {
      if (current !== connection) return Effect.void
      current = null
      module.connected(false)
      // A connection that never worked: the library itself must restart.
      restart = !connection.proven
      return Effect.forEach(connection.free.splice(0), close, { discard: true })
    })

  const settle = (connection: Connection, session: Handle, exit: Exit.Exit<unknown, Problem>) =>
    Effect.gen(function* () {
      const error = Option.getOrNull(Exit.findErrorOption(exit))
      const refusal = error?._tag === "Pkcs11Refusal" ? error : null
      if (refusal !== null && TokenFailure.isLoss(refusal)) yield* drop(connection)
      else connection.proven = true
      const reusable = Exit.isSuccess(exit) || error?._tag === "KeyProviderError"
      if (reusable && current === connection) connection.free.push(session)
      else yield* close(session)
    })

  const over = <A>(
    open: (connection: Connection) => Effect.Effect<Handle, TokenFailure.Refusal>,
    body: (session: Session) => Effect.Effect<A, Problem>
  ) =>
    Effect.gen(function* () {
      const connection = yield* connected
      const handle = yield* Effect.tapError(open(connection), (refusal) =>
        TokenFailure.isLoss(refusal) ? drop(connection) : Effect.void
      )
      return yield* Effect.onExit(body({ call, handle, connection }), (exit) =>
        settle(connection, handle, exit)
      )
    }).pipe(Effect.mapError(toError), Effect.uninterruptible, permits.withPermits(1))

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      return current === null ? Effect.void : drop(current)
    }).pipe(Effect.timeout(patience), Effect.ignore)
  )

  return {
    connect: Effect.asVoid(Effect.mapError(connected, toError)).pipe(Effect.uninterruptible),
    use: (body) =>
      over(({ free, slot }) => {
        const session = free.pop()
        return session === undefined ? call("C_OpenSession", slot, serialSession) : Effect.succeed(session)
      }, body),
    write: (body) => over(({ slot }) => call("C_OpenSession", slot, serialSession | readWriteSession), body)
  }
})

const toError = (problem: Problem): KeyProviderError =>
  problem._tag === "Pkcs11Refusal" ? TokenFailure.from(problem) : problem
