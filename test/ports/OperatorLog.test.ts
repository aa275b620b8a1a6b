import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlOperatorLog from "../../src/adapters/sql/operator/OperatorLog.js"
import * as SqlRefusals from "../../src/adapters/sql/operator/Refusals.js"
import { OperatorLog } from "../../src/application/ports/operator/OperatorLog.js"
import { type Refusal, Refusals } from "../../src/application/ports/operator/Refusals.js"
import * as Layers from "../support/journal/Layers.js"
import * as Make from "../support/journal/Make.js"
import * as Time from "../support/Time.js"

const clients = Layers.clients()

const refusal = (requestId: string, at: number): Refusal => ({
  requestId,
  accountId: Make.alice,
  endpoint: "/execute",
  chainId: 8_453n,
  code: "insufficient_funds",
  message: "the wallet's funds do not cover gas and value",
  answer: '{"error":"insufficient funds"}',
  at
})

describe.each(Object.entries(clients))("operators' acts and refusals in %s", (_, client) => {
  it.effect("acts are kept with operator, reason and time, the newest first", () =>
    Effect.gen(function* () {
      const log = yield* OperatorLog
      yield* Time.setTime(1_000)
      yield* log.record({ operator: "ann", act: "pause", subject: "chain 1", reason: "the node lies" })
      yield* Time.setTime(2_000)
      yield* log.record({ operator: "bo", act: "resume", subject: "chain 1", reason: "it does not" })
      const all = yield* log.find({ limit: 10 })
      expect(all.map(({ number: _, ...entry }) => entry)).toEqual([
        { operator: "bo", act: "resume", subject: "chain 1", reason: "it does not", at: 2_000 },
        { operator: "ann", act: "pause", subject: "chain 1", reason: "the node lies", at: 1_000 }
      ])
      const [newest] = all
      expect((yield* log.find({ limit: 10, before: newest?.number ?? 0n })).map(({ at }) => at)).toEqual([
        1_000
      ])
    }).pipe(
      Effect.provide(
        Layer.unwrap(
          Effect.map(client, (sql) => Layer.orDie(Layer.provide(SqlOperatorLog.layer, Layer.fresh(sql))))
        )
      )
    )
  )

  it.effect("a refusal is found immediately, and in the list, before and after it is stored", () =>
    Effect.gen(function* () {
      const { find, latest, note } = yield* Refusals
      const [one, two] = [refusal("one", 1), refusal("two", 2)]
      note(one)
      note(two)
      // Its id exists already: the first entry stays.
      note({ ...one, message: "again" })
      expect([yield* find("one"), yield* latest(10)]).toEqual([one, [two, one]])
      yield* Time.adjust("1 second")
      // The store writes them asynchronously.
      const listed = Effect.andThen(Time.settle, latest(10))
      expect(yield* Effect.repeat(listed, { until: (list) => list.length === 2 })).toEqual([two, one])
      expect(yield* latest(1)).toEqual([two])
      expect([yield* find("one"), yield* find("three")]).toEqual([one, null])
    }).pipe(
      Effect.provide(
        Layer.unwrap(
          Effect.map(client, (sql) => Layer.orDie(Layer.provide(SqlRefusals.layer, Layer.fresh(sql))))
        )
      )
    )
  )
})
