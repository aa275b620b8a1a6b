import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"

/** Something that could not start; `message` is for the operator. */
interface Refusal {
  readonly message: string
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const

const describe = (cause: Cause.Cause<Refusal>): string =>
  Option.match(Cause.failureOption(cause), {
    onNone: () => Cause.pretty(cause),
    onSome: ({ message }) => message
  })

/**
 * Runs a scoped program until it ends or a signal comes; then its scope closes and the process exits. Exit codes: 0
 * after a signal or a regular end, 1 when the program refused to start (its message is on stderr) or crashed. A second
 * signal does not wait for the scope: exit code 130.
 */
export const run = <E extends Refusal>(program: Effect.Effect<void, E, Scope.Scope>): void => {
  const fiber = Effect.runFork(Effect.scoped(program))
  let signalled = false
  for (const signal of signals)
    process.on(signal, () => {
      if (signalled) process.exit(130)
      signalled = true
      Effect.runFork(Fiber.interruptFork(fiber))
    })
  fiber.addObserver((exit) => {
    if (Exit.isFailure(exit) && !signalled) {
      process.exitCode = 1
      process.stderr.write(`${describe(exit.cause)}\n`)
    }
    // What is left may hold the process open: a keep-alive agent, a pipe of a child that has ended.
    process.exit()
  })
}
