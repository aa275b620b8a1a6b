import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { Submissions } from "../endpoints/Submissions.js"
import type { Engine } from "../lanes/Engine.js"
import * as Troubles from "../observe/Troubles.js"
import * as HoldFollower from "../payers/HoldFollower.js"
import { Budgets, type BudgetsError } from "../ports/Budgets.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import { ClockTrust } from "../ports/clock/ClockTrust.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import { Networks } from "../ports/Networks.js"
import type { Settings } from "../ports/operator/Settings.js"
import * as ServiceEoa from "../prepare/ServiceEoa.js"
import { Lifetime } from "../runtime/Lifetime.js"
import * as AccountTopUps from "../topups/AccountTopUps.js"
import * as TopUps from "../topups/TopUps.js"

/** Background work: accepted work of all lanes of this process, unused holds of money, and old records. */

/** Follows the sponsored ops that stopped processes left. */
const followSponsored = (
  troubles: Troubles.Troubles
): Effect.Effect<void, BudgetsError, ChainRpc | Engine | Networks> =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    const follower = yield* HoldFollower.HoldFollower
    const rpcs = yield* ChainRpc
    const networks = yield* Networks
    for (const chainId of yield* networks.chainIds)
      for (const accountId of yield* HoldFollower.accountsOf(budgets, chainId)) {
        const profile = yield* networks.profile(accountId, chainId)
        const chain =
          profile === null || profile.rpc === null
            ? null
            : yield* Effect.orElseSucceed(rpcs.connect(Redacted.value(profile.rpc), "operator"), () => null)
        const trouble = {
          what: "held amounts not followed; set networks[].rpc",
          place: chainId.toString(),
          subject: accountId
        }
        yield* Effect.annotateLogs(
          profile === null || chain === null ? troubles.failed(trouble) : troubles.passed(trouble),
          { chainId: chainId.toString(), accountId }
        )
        if (profile !== null && chain !== null) yield* follower.watch({ accountId, chain, profile })
      }
  })

/** Releases what the service's EOA holds for requests that ended without it. */
const giveBackEnded: Effect.Effect<void, BudgetsError | JournalError, Budgets | Networks | RequestJournal> =
  Effect.gen(function* () {
    const networks = yield* Networks
    for (const chainId of yield* networks.chainIds) yield* ServiceEoa.giveBackEnded(chainId)
  })

const dayMillis = 86_400_000
/** Retention of bodies, answers and idempotency keys (decisions, 9). */
const keepMillis = 30 * dayMillis

const forget = Effect.gen(function* () {
  const { mayDelete } = yield* ClockTrust
  // The clock is checked at the start, and may be confirmed at any time.
  yield* Effect.repeat(mayDelete, { schedule: Schedule.spaced("10 seconds"), until: (may) => may })
  const requestJournal = yield* RequestJournal
  yield* requestJournal.forget((yield* Clock.currentTimeMillis) - keepMillis)
})

/** A start only waits for the number of open requests, which bounds later acceptance. */
export const start: Effect.Effect<void, never, RequestJournal | Settings | TopUps.Requirements> = Effect.gen(
  function* () {
    const { scope } = yield* Lifetime
    const submissions = yield* Submissions
    const troubles = Troubles.make()
    const repeat = <E, R>(
      subject: string,
      effect: Effect.Effect<unknown, E, R>,
      pause: "1 hour" | "1 minute" | "30 seconds"
    ) =>
      Effect.forkIn(
        Effect.forever(
          Effect.andThen(
            troubles.tolerate({ what: "upkeep failed; retrying", place: "", subject, isDelay: true }, effect),
            Effect.sleep(pause)
          )
        ),
        scope
      )
    yield* submissions.start
    yield* repeat("sponsored ops", followSponsored(troubles), "1 minute")
    yield* repeat("budgets", giveBackEnded, "1 minute")
    yield* repeat("top-ups", TopUps.round(troubles), "30 seconds")
    yield* repeat("top-ups of accounts", AccountTopUps.round(troubles), "30 seconds")
    yield* repeat("forgetting", forget, "1 hour")
  }
)
