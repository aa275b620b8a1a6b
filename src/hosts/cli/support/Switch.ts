import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Pause } from "../../../application/ports/TenantStore.js"
import type * as Command from "./Command.js"
import * as OperatorContext from "./OperatorContext.js"
import * as Table from "./Table.js"

interface Kind {
  readonly kind: Exclude<Pause["kind"], "account">
  readonly operand: string
  readonly what: string
  /** The subject as the store has it. */
  readonly subjectOf: (text: string, book: OperatorContext.Book) => Effect.Effect<string, string>
}

/** The commands that throw and turn back one kind of kill switch. */
export const commands = ({ kind, operand, subjectOf, what }: Kind): ReadonlyArray<Command.Command> => {
  const switched = (text: string, env: Command.Given["env"]) =>
    Effect.gen(function* () {
      const book = yield* OperatorContext.open(env)
      return { book, subject: yield* subjectOf(text, book) }
    })
  return [
    {
      name: "pause",
      operands: [operand],
      about: `Refuses new writes ${what} with 422 writes_paused. What was accepted before settles.`,
      run: ({ env, operands: [text = ""] }) =>
        Effect.gen(function* () {
          const { book, subject } = yield* switched(text, env)
          const since = yield* Clock.currentTimeMillis
          yield* Effect.mapError(book.store.pause({ kind, subject, since }), OperatorContext.told)
          return { text: `writes ${what} ${subject} are paused`, json: { kind, subject, paused: true } }
        })
    },
    {
      name: "resume",
      operands: [operand],
      about: "Undoes pause.",
      run: ({ env, operands: [text = ""] }) =>
        Effect.gen(function* () {
          const { book, subject } = yield* switched(text, env)
          yield* Effect.mapError(book.store.resume(kind, subject), OperatorContext.told)
          return { text: `writes ${what} ${subject} go on`, json: { kind, subject, paused: false } }
        })
    },
    {
      name: "paused",
      operands: [],
      about: "What is paused, and since when.",
      run: ({ env }) =>
        Effect.map(OperatorContext.open(env), ({ content }) => {
          const pauses = content.pauses.filter((pause) => pause.kind === kind)
          return {
            text:
              pauses.length === 0
                ? "nothing is paused"
                : Table.aligned(pauses.map(({ since, subject }) => [subject, Table.time(since)])),
            json: pauses.map(({ since, subject }) => ({ subject, since: Table.time(since) }))
          }
        })
    }
  ]
}
