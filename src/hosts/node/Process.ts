import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as NpmShell from "./NpmShell.js"

/** A program that could not start; `message` is for the operator. */
interface Refusal {
  readonly message: string
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const

/** One Ctrl-C arrives several times, from the terminal and from each runner in between. */
const echoMillis = 1_000

const describe = (cause: Cause.Cause<Refusal>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => Cause.pretty(cause),
    onSome: ({ message }) => message
  })

/**
 * Runs a scoped program until it ends or a signal arrives; then the scope closes and the process exits. Exit codes: 0 after
 * a signal or a regular end, 1 when the program refused to start (with its message on stderr) or crashed. A later second
 * signal does not wait for the scope: exit code 130.
 */
export const run = <E extends Refusal>(program: Effect.Effect<void, E, Scope.Scope>): void => {
  const fiber = Effect.runFork(Effect.scoped(program))
  let stopping: number | null = null
  const stop = () => {
    stopping = performance.now()
    Effect.runFork(Effect.sync(() => fiber.interruptUnsafe()))
  }
  const crash = (text: string) => {
    process.exitCode = 1
    process.stderr.write(`${text}\n`)
  }
  for (const signal of signals)
    process.on(signal, () => {
      if (stopping === null) stop()
      else if (performance.now() - stopping > echoMillis) process.exit(130)
    })
  NpmShell.onEnd(NpmShell.castellan, () => {
    if (stopping === null) stop()
  })
  process.on("uncaughtException", (error) => {
    crash(error.stack ?? error.message)
    if (stopping === null) stop()
  })
  // The reader of the output may leave; the process continues.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})
  fiber.addObserver((exit) => {
    if (Exit.isFailure(exit) && stopping === null) crash(describe(exit.cause))
    // A keep-alive agent or a pipe of an ended child may hold the process open.
    process.exit()
  })
}
