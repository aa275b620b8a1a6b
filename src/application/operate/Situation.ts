import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { Health } from "../observe/Health.js"
import * as Metrics from "../observe/Metrics.js"
import { signatures } from "../observe/Observed.js"
import * as HoldFollower from "../payers/HoldFollower.js"
import { Budgets } from "../ports/Budgets.js"
import { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import { RequestHistory } from "../ports/operator/RequestHistory.js"
import { Webhooks } from "../ports/Webhooks.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import * as Wait from "../runtime/Wait.js"
import * as Figures from "./Figures.js"
import * as Incidents from "./Incidents.js"
import * as Series from "./Series.js"

/** The operator's view: the facts of the last reading, their incidents, and the last day's figures. */
export interface Situation {
  readonly facts: Incidents.Facts
  readonly incidents: ReadonlyArray<Incidents.Standing>
  /** End of the last incident that stopped work, Unix milliseconds; null: none since the start. */
  readonly endedAt: number | null
}

export interface Observer {
  readonly situation: () => Situation
  readonly series: Series.Series
}

/** Time between two readings. */
const interval = "4 seconds"

/** Readings whose failures count: about a minute. */
const recentPolls = 15

/** Time limit for the stores; a late answer leaves the previous facts, milliseconds. */
const patienceMillis = 5_000

const mostHeld = 100

const sum = (figures: ReadonlyArray<Figures.Figure> = []): number =>
  figures.reduce((total, { value }) => total + value, 0)

type Stored = Pick<Incidents.Facts, "budgets" | "failingWebhooks" | "held" | "transactions" | "waiting">

const empty: Stored = { waiting: [], transactions: [], budgets: [], held: [], failingWebhooks: [] }

/** Daily budgets in use and failing webhooks. Each read costs more with more open holds and endpoints. */
const slow = Effect.gen(function* () {
  const budgets = yield* Budgets
  const now = yield* Clock.currentTimeMillis
  const chains = (yield* Health).chains()
  const spending = yield* Effect.forEach(chains, ({ profile: { chainId, sponsor } }) =>
    sponsor === null
      ? Effect.succeed([])
      : Effect.gen(function* () {
          const owners = yield* budgets.owners(chainId, HoldFollower.budget, now)
          return yield* Effect.forEach(owners, (accountId) => {
            const budget = { accountId, chainId, name: HoldFollower.budget }
            return Effect.map(budgets.figures(budget, now, "day"), ({ booked, held }) => ({
              ...budget,
              spent: booked + held,
              limit: sponsor.dailyBudget
            }))
          })
        })
  )
  return {
    budgets: spending.flat(),
    failingWebhooks: (yield* (yield* Webhooks).list(null)).filter(({ state }) => state === "failing")
  }
})

/** Lifetime of the result of `slow`. */
const slowTtl = "30 seconds"

const read = Effect.gen(function* () {
  const history = yield* RequestHistory
  const now = yield* Clock.currentTimeMillis
  const waiting = yield* history.waiting
  const bumpAfter = Math.min(
    ...(yield* Health).chains().map(({ profile: { bumpAfterMillis } }) => bumpAfterMillis)
  )
  // No transaction waits longer than the oldest request.
  const mayStall = waiting.some(({ oldestAt }) => oldestAt !== null && now - oldestAt > bumpAfter)
  return {
    waiting,
    transactions: mayStall ? yield* (yield* TransactionJournal).open : [],
    held: yield* history.find({ state: "held", limit: mostHeld })
  }
})

/** Failures since the start of the process: of the database, and of each signer. */
const failuresIn = (figures: Figures.Figures) => ({
  database: sum(figures.get("journal_errors_total")),
  signers: new Map(
    (figures.get("signature_errors_total") ?? []).map(({ labels, value }) => [labels.signer ?? "", value])
  )
})

const note = ({ chainId, kind }: Incidents.Incident, value: 0 | 1) =>
  Metrics.note(Metrics.incident, { kind, chain: chainId?.toString() ?? "" }, value)

const logged = ({ chainId, kind, subject }: Incidents.Incident) => ({
  incident: kind,
  ...(chainId !== null && { chainId: chainId.toString() }),
  ...(subject !== "" && { subject })
})

/** Reads repeatedly until the scope closes. `isWritable`: whether the database takes a write. */
export const observe = (
  isWritable: Effect.Effect<boolean>
): Effect.Effect<
  Observer,
  never,
  Budgets | Health | RequestHistory | Scope.Scope | TransactionJournal | Webhooks
> =>
  Effect.gen(function* () {
    const health = yield* Health
    const series = yield* Series.make
    let stored = empty
    const occasionally = yield* Effect.cachedWithTTL(
      Effect.orElseSucceed(slow, () => stored),
      slowTtl
    )
    let recent = [failuresIn(yield* Figures.read)]
    let situation: Situation = {
      facts: {
        ...empty,
        now: yield* Clock.currentTimeMillis,
        chains: health.chains(),
        database: { isWritable: true, errors: 0 },
        failingSigners: new Map(),
        isClockDoubted: false,
        isRateLimitStoreAway: false
      },
      incidents: [],
      endedAt: null
    }
    let sampledAt = yield* MonotonicTime.millis
    const poll = Effect.gen(function* () {
      stored = yield* Wait.within(
        Effect.orElseSucceed(
          Effect.zipWith(read, occasionally, (now, { budgets, failingWebhooks }) => ({
            ...now,
            budgets,
            failingWebhooks
          })),
          () => stored
        ),
        patienceMillis,
        () => Effect.succeed(stored)
      )
      const now = yield* Clock.currentTimeMillis
      const figures = yield* Figures.read
      const latest = failuresIn(figures)
      const [first = latest] = recent
      recent = [...recent, latest].slice(-recentPolls)
      const failing = new Map(
        [...latest.signers].flatMap(([signer, count]) => {
          const fresh = count - (first.signers.get(signer) ?? 0)
          return fresh > 0 ? [[signer, fresh] as const] : []
        })
      )
      for (const { signer, since } of signatures())
        if (now - since > Incidents.slowSignature) failing.set(signer, failing.get(signer) ?? 0)
      const facts: Incidents.Facts = {
        ...stored,
        now,
        chains: health.chains(),
        database: { isWritable: yield* isWritable, errors: latest.database - first.database },
        failingSigners: failing,
        isClockDoubted: sum(figures.get("clock_doubted")) > 0,
        isRateLimitStoreAway: sum(figures.get("rate_limit_store_away")) > 0
      }
      const before = situation.incidents
      const incidents = Incidents.date(Incidents.of(facts), before, now)
      const ended = Incidents.begun(before, incidents)
      situation = {
        facts,
        incidents,
        endedAt: ended.some(({ level }) => level === "stops") ? now : situation.endedAt
      }
      for (const each of ended) {
        yield* note(each, 0)
        yield* Effect.annotateLogs(Effect.logInfo("incident ended"), {
          ...logged(each),
          seconds: Math.round((now - each.since) / 1_000)
        })
      }
      for (const each of incidents) yield* note(each, 1)
      for (const { accountId, chainId, limit, spent } of stored.budgets) {
        const labels = { chain: chainId.toString(), account: accountId ?? "" }
        yield* Metrics.note(Metrics.budgetSpent, labels, Number(spent))
        yield* Metrics.note(Metrics.budgetLimit, labels, Number(limit))
      }
      for (const each of Incidents.begun(incidents, before))
        yield* Effect.annotateLogs(
          each.level === "stops" ? Effect.logError("incident") : Effect.logWarning("incident"),
          logged(each)
        )
      const at = yield* MonotonicTime.millis
      if (at - sampledAt >= 60_000) {
        sampledAt = at
        yield* series.sample
      }
    })
    yield* poll.pipe(
      Effect.catchCause((cause) => Effect.logError("look at the situation failed; retrying", cause)),
      Effect.repeat(Schedule.spaced(interval)),
      Effect.forkScoped
    )
    return { situation: () => situation, series }
  })
