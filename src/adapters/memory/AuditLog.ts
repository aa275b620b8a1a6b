import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AuditLog, type Entry, type Question } from "../../application/ports/AuditLog.js"

const fits = (entry: Entry, question: Question): boolean =>
  (question.accountId === undefined || entry.accountId === question.accountId) &&
  (question.signer === undefined || entry.signer === question.signer) &&
  (question.hash === undefined || entry.hash === question.hash) &&
  (question.requestId === undefined || entry.requestId === question.requestId) &&
  (question.from === undefined || entry.at >= question.from) &&
  (question.to === undefined || entry.at <= question.to) &&
  (question.before === undefined || entry.number < question.before)

/** Forgets with the process. */
export const make: Effect.Effect<Context.Tag.Service<typeof AuditLog>> = Effect.sync(() => {
  const entries: Array<Entry> = []
  return {
    record: (act) =>
      Effect.map(
        Clock.currentTimeMillis,
        (at) => void entries.push({ ...act, at, number: BigInt(entries.length + 1) })
      ),
    find: (question) =>
      Effect.sync(() =>
        entries
          .filter((entry) => fits(entry, question))
          .reverse()
          .slice(0, Math.min(Math.max(1, question.limit), 1_000))
      )
  }
})

export const layer: Layer.Layer<AuditLog> = Layer.effect(AuditLog, make)
