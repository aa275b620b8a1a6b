import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { Submissions } from "../../../src/application/endpoints/Submissions.js"
import * as Troubles from "../../../src/application/observe/Troubles.js"
import * as Figures from "../../../src/application/operate/Figures.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import type { Settings } from "../../../src/application/ports/operator/Settings.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as TopUps from "../../../src/application/topups/TopUps.js"
import * as SetClock from "../../support/SetClock.js"
import type { LifeOptions, Runtime, Stack } from "../../support/stack/Stack.js"

/** Fees of the chain's profile: the most that a top-up's gas may cost. */
export const caps = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 10n, transactionGas: 2n ** 24n }

export const day = 86_400_000

/** Rounds of top-ups on a stack, by this payer; null: the treasury. */
export const of = (
  stack: Stack,
  rounds: (troubles: Troubles.Troubles) => Effect.Effect<void, unknown, Settings | TopUps.Requirements>,
  accountId: AccountId | null
) => {
  /** Rounds of a day that no test run crosses, 31 seconds apart. */
  const clock = () => {
    let ahead = day - (Date.now() % day)
    return {
      round: Effect.suspend(() => {
        ahead += TopUps.everyMillis + 1_000
        return SetClock.by(ahead)(rounds(Troubles.make()))
      }),
      nextDay: () => {
        ahead += day
      },
      at: () => Date.now() + ahead
    }
  }

  const lived = async <A>(options: LifeOptions, body: (life: Runtime) => Promise<A>): Promise<A> => {
    const life = stack.begin({ ...options, profile: { caps, ...options.profile } })
    try {
      await life.runPromise(Effect.flatMap(Submissions, ({ start }) => start))
      return await body(life)
    } finally {
      await life.dispose()
    }
  }

  const budgets = <A, E>(life: Runtime, ask: (budgets: Budgets["Service"]) => Effect.Effect<A, E>) =>
    life.runPromise(Effect.orDie(Effect.flatMap(Budgets, ask)))

  const openOf = (life: Runtime) => budgets(life, ({ open }) => open(BigInt(stack.anvil.chainId), "topUp"))

  return {
    clock,
    lived,
    openOf,
    balance: (address: string) => stack.provider.getBalance(address),
    /** Rounds until no top-up is open. */
    settled: (life: Runtime, round: ReturnType<typeof clock>["round"]) =>
      expect
        .poll(
          async () => {
            await life.runPromise(round)
            return openOf(life)
          },
          { timeout: 20_000 }
        )
        .toEqual([]),
    bookedOf: (life: Runtime, at: number) =>
      budgets(life, ({ figures }) =>
        figures({ accountId, chainId: BigInt(stack.anvil.chainId), name: "topUp" }, at, "day")
      ),
    /** Reasons for which targets are not raised, with their number. */
    blockedOf: async (life: Runtime) => {
      const payer = accountId === null ? "treasury" : "accounts"
      return ((await life.runPromise(Figures.read)).get("topup_blocked") ?? []).flatMap(
        ({ labels, value }) => (value === 0 || labels.payer !== payer ? [] : [[labels.reason, value]])
      )
    }
  }
}
