import * as Effect from "effect/Effect"
import * as Program from "../../../src/hosts/cli/Program.js"
import { Operator } from "../../../src/hosts/cli/support/Operator.js"

export interface Heard {
  readonly stdout: string
  /** Output other than the result. */
  readonly stderr: string
}

/** Runs a command line in this process: same output as a separate process, in less time. */
export const heard = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
  /** The reply to a prompt; by default no terminal is attached. */
  answer = false,
  /** Replies to questions, by their text. */
  replies: Readonly<Record<string, string>> = {}
): Effect.Effect<Heard, string> =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const told: Array<string> = []
    const to = (list: Array<string>) => (text: string) => Effect.sync(() => void list.push(text))
    return Program.run(args).pipe(
      Effect.provideService(Operator, {
        env,
        devConfig: undefined,
        print: to(lines),
        tell: to(told),
        ask: () => Effect.succeed(answer),
        answer: (question, byDefault) => Effect.succeed(replies[question] ?? byDefault),
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

/** Command lines of words without spaces, over one environment. */
export const lines = (env: Readonly<Record<string, string>>) => {
  const ok = (line: string) => Effect.runPromise(run(line.split(" "), env))
  return {
    ok,
    json: async <A = unknown>(line: string): Promise<A> => JSON.parse(await ok(`${line} --json`)),
    refused: (line: string) => Effect.runPromise(Effect.flip(run(line.split(" "), env)))
  }
}
