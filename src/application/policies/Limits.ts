import * as Effect from "effect/Effect"
import * as Policy from "../../domain/policy/Policy.js"
import type { ElementFailure } from "../failures/Elements.js"
import * as Metrics from "../observe/Metrics.js"
import type { Budgets, Lack, Reservation, Window } from "../ports/Budgets.js"
import type { AccountId } from "../ports/Tenants.js"
import * as Judgement from "./Judgement.js"
import * as Rulebook from "./Rulebook.js"

/** Reservations in the budgets of limits, and refusals for want of room in them. `Rules` holds them, `Signing` books them. */

/** An observed policy counts without bound, so that its refusals can be logged. */
export interface Entry extends Reservation {
  readonly bound: Rulebook.Bound
  readonly of: Policy.Limit
}

/** Only slices of one request count here, and all are opened within the longest window. */
const windowOf = (per: Exclude<Policy.Limit["per"], "op">): Window => (per === "request" ? "30d" : per)

/** An element's reservations in its policies' limits, under one id. */
export const entriesOf = (
  {
    context: { accountId, chainId },
    requestId
  }: Pick<Judgement.Asker, "requestId"> & {
    readonly context: { readonly accountId: AccountId; readonly chainId: bigint | null }
  },
  { bound, spending, wallet }: Judgement.Element,
  id: string,
  expiresAt: number
): ReadonlyArray<Entry> =>
  bound.flatMap((each) =>
    (each.policy.limits ?? []).flatMap((limit): ReadonlyArray<Entry> => {
      const wei = Policy.amountOf(limit, spending) ?? 0n
      if (limit.per === "op" || !Policy.isOn(limit, chainId) || wei === 0n) return []
      const pot = Rulebook.potOf(accountId, each, limit, wallet)
      return [
        {
          ...pot,
          name: limit.per === "request" ? `${pot.name} ${requestId}` : pot.name,
          bound: each,
          of: limit,
          id,
          wei,
          books: limit.asset === "fees" ? "cost" : "held",
          limit: each.policy.mode === "observe" ? null : limit.max,
          maxOpen: null,
          window: windowOf(limit.per),
          expiresAt
        }
      ]
    })
  )

/** Logs the refusal of an observed policy; `index`: absent for a signature. */
export const logRefusal = (
  { requestId, index }: { readonly requestId: string; readonly index?: number },
  { message: reason }: ElementFailure
): Effect.Effect<void> =>
  index === undefined
    ? Effect.annotateLogs(Effect.logInfo("observed policy would refuse signature"), { requestId, reason })
    : Effect.annotateLogs(Effect.logInfo("observed policy would refuse element"), {
        requestId,
        index,
        reason
      })

/** Logs the refusals of observed limits that have counted these elements, in their order. */
export const logObserved = (
  { figures }: Pick<Budgets["Service"], "figures">,
  counted: ReadonlyArray<Parameters<typeof logRefusal>[0] & { readonly entries: ReadonlyArray<Entry> }>,
  now: number
): Effect.Effect<void> =>
  Effect.gen(function* () {
    /** Sums of budgets up to the element in question, by their names. */
    const counts = new Map<string, bigint>()
    for (const { entries, ...element } of counted.toReversed())
      for (const entry of entries) {
        const { bound, name, of, wei, window } = entry
        // Limits of one request are judged before.
        if (entry.limit !== null || of.per === "request") continue
        const read = Effect.map(figures(entry, now, window), ({ booked, held }) => booked + held)
        const before = (counts.get(name) ?? (yield* read)) - wei
        counts.set(name, before)
        const left = of.max - before
        if (left >= wei) continue
        const objection = Judgement.ofLimit(of, left > 0n ? left : 0n, wei)
        yield* logRefusal(element, Judgement.refusalOf(bound, objection))
      }
  }).pipe((effect) => Effect.ignoreCause(effect, { log: "Debug" }))

/** The refusal for want of room; null: there is room. */
export const lackOf = (
  entries: ReadonlyArray<Entry>,
  lack: Lack | null | undefined
): ElementFailure | null => {
  const entry = entries.find(({ name }) => name === lack?.budget)
  return entry === undefined || entry.limit === null || lack == null
    ? null
    : Judgement.refusalOf(entry.bound, Judgement.ofLimit(entry.of, lack.available, entry.wei))
}

export const countRefusal = (failure: ElementFailure) =>
  Effect.as(
    Metrics.count(Metrics.policyRefusals, {
      reason: failure.figures.limit === undefined ? "rule" : "limit"
    }),
    failure
  )
