import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Troubles from "../observe/Troubles.js"
import * as Sponsorships from "../pay/Sponsorships.js"
import { Budgets } from "../ports/Budgets.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import { ClockTrust } from "../ports/clock/ClockTrust.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import { Networks } from "../ports/Networks.js"
import * as ServiceEoa from "../prepare/ServiceEoa.js"
import { Lifetime } from "../runtime/Lifetime.js"
import { Submissions } from "../usecases/operations/Submissions.js"

/** Follows sponsored ops that a process left when it stopped to their end. */
const followSponsored = (troubles: Troubles.Troubles) =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    const sponsorships = yield* Sponsorships.Sponsorships
    const rpcs = yield* ChainRpc
    const networks = yield* Networks
    for (const chainId of yield* networks.chainIds)
      for (const accountId of yield* Sponsorships.accountsOf(budgets, chainId)) {
        const profile = yield* networks.profile(accountId, chainId)
        const chain =
          profile === null || profile.rpc === null
            ? null
            : yield* Effect.orElseSucceed(rpcs.connect(Redacted.value(profile.rpc), "operator"), () => null)
        const trouble = {
          what: "sponsored operations can not be followed: the operator has no node there",
          place: chainId.toString(),
          subject: accountId
        }
        yield* Effect.annotateLogs(
          profile === null || chain === null ? troubles.failed(trouble) : troubles.passed(trouble),
          { chainId: chainId.toString(), accountId }
        )
        if (profile !== null && chain !== null) yield* sponsorships.watch({ accountId, chain, profile })
      }
  })

/** Gives back what the service's EOA might have lost by requests that have come to their end without it. */
const giveBackEnded = Effect.gen(function* () {
  const networks = yield* Networks
  for (const chainId of yield* networks.chainIds) yield* ServiceEoa.giveBackEnded(chainId)
})

const dayMillis = 86_400_000
/** How long bodies, answers and idempotency keys are kept (decision 9). */
const keepMillis = 30 * dayMillis

const forget = Effect.gen(function* () {
  const { mayDelete } = yield* ClockTrust
  // It is held against the chains' time at the start, and may be confirmed at any time.
  yield* Effect.repeat(mayDelete, { schedule: Schedule.spaced("10 seconds"), until: (may) => may })
  const requestJournal = yield* RequestJournal
  yield* requestJournal.forget((yield* Clock.currentTimeMillis) - keepMillis)
})

/**
 * What a process does beside its callers' requests, again and again: it looks after accepted work, follows sponsored ops, gives
 * back what budgets held for requests that are over, and deletes what is old. What fails keeps nothing else from being done.
 */
export const start = Effect.gen(function* () {
  const { scope } = yield* Lifetime
  const troubles = Troubles.make()
  const repeat = <E, R>(part: string, effect: Effect.Effect<unknown, E, R>, pause: Duration.Input) => {
    const trouble = {
      what: "a sweep of the journal failed and is repeated",
      place: "",
      subject: part,
      isDelay: true
    }
    return Effect.forkIn(Effect.repeat(troubles.tolerate(trouble, effect), Schedule.spaced(pause)), scope)
  }
  yield* (yield* Submissions).start
  yield* repeat("sponsored ops", followSponsored(troubles), "1 minute")
  yield* repeat("budgets", giveBackEnded, "1 minute")
  yield* repeat("forgetting", forget, "1 hour")
})
