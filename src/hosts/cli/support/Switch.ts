import * as Clock from "effect/Clock"
import type * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Pause } from "../../../application/ports/TenantStore.js"
import { help, json, type Operator, report } from "./Operator.js"
import * as OperatorContext from "./OperatorContext.js"
import * as Table from "./Table.js"

interface Kind {
  readonly kind: Exclude<Pause["kind"], "account">
  readonly operand: Argument.Argument<string>
  readonly what: string
  /** The paused work in the help text, for example "on a chain". */
  readonly anyWhat: string
  readonly example: string
  /** Subject in the store's form. */
  readonly subjectOf: (text: string) => Effect.Effect<string, string>
  /** Fails with the existing names when the subject does not exist. */
  readonly exists: (
    subject: string,
    context: OperatorContext.OperatorContext
  ) => Effect.Effect<void, string, Operator | Scope.Scope>
}

/** Commands that pause and resume one kind of kill switch. */
export const commands = ({ anyWhat, example, exists, kind, operand, subjectOf, what }: Kind) => {
  /** A paused subject can be resumed even when it no longer exists. */
  const found = (text: string) =>
    Effect.gen(function* () {
      const subject = yield* subjectOf(text)
      const context = yield* OperatorContext.open
      const since = OperatorContext.pausedSince(context.content, kind, subject)
      if (since === null) yield* exists(subject, context)
      return { context, subject }
    })
  return [
    Command.make("pause", { text: operand, ...OperatorContext.logged, json }).pipe(
      help(
        `Refuses new writes ${anyWhat} with 422 writes_paused. Work accepted before is still settled.`,
        example
      ),
      report(function* ({ text, ...logged }) {
        const { context, subject } = yield* found(text)
        const since = yield* Clock.currentTimeMillis
        yield* OperatorContext.record(context, "pause", `${kind} ${subject}`, logged)
        yield* context.store.pause({ kind, subject, since })
        return { text: `writes ${what} ${subject} are paused`, json: { kind, subject, paused: true } }
      })
    ),
    Command.make("resume", { text: operand, ...OperatorContext.logged, json }).pipe(
      help("Undoes pause.", example),
      report(function* ({ text, ...logged }) {
        const { context, subject } = yield* found(text)
        yield* OperatorContext.record(context, "resume", `${kind} ${subject}`, logged)
        yield* context.store.resume(kind, subject)
        return { text: `writes ${what} ${subject} are resumed`, json: { kind, subject, paused: false } }
      })
    ),
    Command.make("paused", { json }).pipe(
      help("Lists what is paused, and since when.", ""),
      report(function* () {
        const { content } = yield* OperatorContext.open
        const pauses = content.pauses.filter((pause) => pause.kind === kind)
        return {
          text:
            pauses.length === 0
              ? "nothing is paused"
              : Table.align(pauses.map(({ since, subject }) => [subject, Table.time(since)])),
          json: pauses.map(({ since, subject }) => ({ subject, since: Table.time(since) }))
        }
      })
    )
  ] as const
}
