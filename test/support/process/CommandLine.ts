import * as Effect from "effect/Effect"
import * as Program from "../../../src/hosts/cli/Program.js"
import { Operator } from "../../../src/hosts/cli/support/Operator.js"

export interface Heard {
  readonly stdout: string
  /** What was said beside the result. */
  readonly stderr: string
}

/** What a command line says in this process: the same as in one of its own, in less time. */
export const heard = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
  /** What a person says when asked; nobody is there without. */
  answer = false
): Effect.Effect<Heard, string> =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const told: Array<string> = []
    const to = (list: Array<string>) => (text: string) => Effect.sync(() => void list.push(text))
    return Program.run(args).pipe(
      Effect.provideService(Operator, {
        env,
        print: to(lines),
        tell: to(told),
        ask: () => Effect.succeed(answer),
        serve: () => Effect.die(new Error("a test runs no process of the service in its own")),
        become: () => Effect.die(new Error("a test runs no process of the service in its own"))
      }),
      Effect.map(() => ({ stdout: lines.join("\n"), stderr: told.join("\n") }))
    )
  })

export const run = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>
): Effect.Effect<string, string> => Effect.map(heard(args, env), ({ stdout }) => stdout)
