import * as Effect from "effect/Effect"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { Caller } from "../../request/Caller.js"
import { CurrentRequest } from "../../request/CurrentRequest.js"
import { type ElementFailure, refuseAll } from "../../request/Elements.js"
import type { Outcomes } from "./Submission.js"
import type { Part } from "./SubmissionPlan.js"

/** Most elements that are prepared, accepted and signed together. */
export const sliceSize = 256

/** Slices that are on their way at once: while one is mined, the next ones are prepared. */
const slicesAtOnce = 4

/** Most elements that a refusal names. */
const mostNamed = 32

/**
 * Brings a large request onto the chain, a slice of its elements at a time. It is accepted as a whole, before anything
 * of it is measured: when `check` has nothing against any element. From then on each slice is a submission of its own.
 */
export const run = <E1, E2, E3, R1, R2, R3>({
  accept,
  caller: { requestId },
  check,
  slices,
  submit
}: {
  readonly caller: Pick<Caller, "requestId">
  readonly slices: ReadonlyArray<ReadonlyArray<number>>
  /** Why some of these elements can not be executed. */
  readonly check: (
    elements: ReadonlyArray<number>
  ) => Effect.Effect<ReadonlyMap<number, ElementFailure>, E1, R1>
  readonly accept: Effect.Effect<unknown, E2, R2>
  readonly submit: (part: Part, elements: ReadonlyArray<number>) => Effect.Effect<Outcomes, E3, R3>
}) =>
  Effect.gen(function* () {
    const current = yield* CurrentRequest
    const requestJournal = yield* RequestJournal
    if (!current.accepted()) {
      const failures = new Map<number, ElementFailure>()
      for (const slice of slices)
        for (const [index, failure] of yield* check(slice)) failures.set(index, failure)
      const named = [...failures].sort(([one], [other]) => one - other).slice(0, mostNamed)
      if (named.length > 0) return yield* Effect.fail(refuseAll("operations", new Map(named), {}))
      yield* accept
    }
    const standing = current.resumed ? yield* Effect.orDie(requestJournal.request(requestId)) : null
    const parts = yield* Effect.forEach(
      slices,
      (slice, number) => submit({ holder: `${requestId} ${number}`, standing }, slice),
      { concurrency: slicesAtOnce }
    )
    yield* current.conclude
    return merged(parts)
  })

/** The outcomes of all slices. A transaction may be that of several; of its logs none are kept: they are too many. */
const merged = (parts: ReadonlyArray<Outcomes>): Outcomes => {
  const receipts = new Map(
    parts.flatMap((part) =>
      part.receipts.map((receipt) => [receipt.txHash, { ...receipt, logs: [] }] as const)
    )
  )
  return {
    landed: new Map(parts.flatMap(({ landed }) => [...landed])),
    failed: new Map(parts.flatMap(({ failed }) => [...failed])),
    scheduled: new Map(parts.flatMap(({ scheduled }) => [...scheduled])),
    receipts: [...receipts.values()].sort((one, other) => Number(one.blockNumber - other.blockNumber))
  }
}
