import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type ElementFailure, elementFailure } from "../../../src/application/failures/Elements.js"
import * as Money from "../../../src/application/intake/Money.js"
import * as Losses from "../../../src/application/payers/Losses.js"
import * as Payer from "../../../src/application/payers/Payer.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import type { PreparedOp } from "../../../src/application/ports/journal/Records.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import type { OpCall } from "../../../src/application/prepare/Call.js"
import type { Offer } from "../../../src/application/prepare/Offer.js"
import type { Shared } from "../../../src/application/prepare/OpContext.js"
import * as Preparation from "../../../src/application/prepare/Preparation.js"
import type { Snapshot } from "../../../src/application/prepare/Snapshot.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import * as Ops from "../../support/lanes/Ops.js"
import { testOver } from "../../support/Test.js"

const overshoot = Result.getOrThrow(Percent.from(50))
const gwei = 10n ** 9n
const profile = NetworkProfile.make({ chainId: Make.chainId })

/** Requests with these numbers of elements; their second and third elements each depend on the element before. */
const requests = (...sizes: ReadonlyArray<number>): ReadonlyArray<Offer> =>
  sizes.map((size, request) => ({
    requestId: `r${request}`,
    calls: Array.from({ length: size }, (_, index) => ({
      requestId: `r${request}`,
      index,
      kind: "op",
      dependsOn: index === 1 || index === 2 ? index - 1 : null
    })) as unknown as ReadonlyArray<OpCall>
  })) as unknown as ReadonlyArray<Offer>

const preparedOf = ({ calls, requestId }: Offer): Preparation.Prepared => ({
  ...Preparation.nothing,
  ops: calls.map(
    ({ index }) =>
      ({ requestId, index, kind: "op", unsigned: Ops.plain, userOpHash: null, l1Fee: 0n }) as PreparedOp
  )
})

/** A payer without money for these elements, and the calls that it gets. */
const world = (without: ReadonlyArray<string>, key: "signer" | "service" = "signer") => {
  const asked: Array<ReadonlyArray<string>> = []
  const released: Array<string> = []
  const payer: Payer.Payer = {
    ...Payer.wallet,
    reserve: (parts) =>
      Effect.sync(() => {
        asked.push(parts.map(Payer.holdId))
        return parts.map((part) =>
          without.includes(Payer.holdId(part)) ? elementFailure("sponsorship_exhausted") : null
        )
      }),
    release: (held) => Effect.sync(() => void released.push(...held.map(Payer.holdId)))
  }
  const context = {
    kind: "ops",
    accountId: Make.alice,
    access: Make.access(key === "service" ? { key: "serviceEoa" } : {}),
    buffers: { transaction: overshoot },
    connection: { profile: { ...profile, serviceSubmission: { dailyLoss: 10n ** 20n, maxInFlight: 2 } } },
    payer,
    submitter: Make.lane.signer,
    version: "v0.7"
  } as unknown as Shared
  const hold = (offers: ReadonlyArray<Offer>, balance: bigint | null = null) =>
    Effect.map(
      Money.hold(context, offers, {
        batches: offers.map((offer) => Result.succeed(preparedOf(offer))),
        snapshot: {
          balance,
          gasBound: 30_000_000n,
          prices: { maxFeePerGas: gwei, maxPriorityFeePerGas: gwei, legacy: false }
        } as Snapshot
      }),
      (batches) =>
        batches.map((batch) => {
          const { failed, ops } = Result.getOrThrow(batch as Result.Result<Preparation.Prepared, never>)
          const codes = [...failed].map(([index, { code }]: readonly [number, ElementFailure]) => [
            index,
            code
          ])
          return { codes, ops: ops.map(({ index }) => index) }
        })
    )
  return { asked, hold, released }
}

describe("a reservation of money", () => {
  const test = testOver(InMemory.budgets)

  test("takes one call for all requests of a run", function* () {
    const { asked, hold, released } = world([])
    expect(yield* hold(requests(1, 2))).toEqual([
      { codes: [], ops: [0] },
      { codes: [], ops: [0, 1] }
    ])
    expect(asked).toEqual([["r0/0", "r1/0", "r1/1"]])
    expect(released).toEqual([])
  })

  test("fails elements without funds and their dependants, and releases the dependants' reservations", function* () {
    const { hold, released } = world(["r1/1"])
    expect(yield* hold(requests(1, 4))).toEqual([
      { codes: [], ops: [0] },
      {
        codes: [
          [1, "sponsorship_exhausted"],
          [2, "dependency_failed"]
        ],
        ops: [0, 3]
      }
    ])
    expect(released).toEqual(["r1/2"])
  })

  test("needs enough EOA balance for ops that go together, whatever else is in flight", function* () {
    const { asked, hold } = world([])
    const codes = (balance: bigint) =>
      Effect.map(hold(requests(3, 1), balance), (made) =>
        made.map((each) => each.codes.map(([, code]) => code))
      )
    const poor = "insufficient_funds"
    expect(yield* codes(0n)).toEqual([[poor, poor, poor], [poor]])
    expect(asked).toEqual([[]])
    expect(yield* codes(30_000_000n * gwei)).toEqual([[], []])
    // One op needs less than three.
    let balance = 30_000_000n * gwei
    while ((yield* codes(balance))[0]?.length === 0) balance -= gwei * 100_000n
    expect(yield* codes(balance)).toEqual([[poor, poor, poor], []])
  })

  test("includes the possible loss of the service's EOA, which is released if the payer lacks funds", function* () {
    const budgets = yield* Budgets
    const { hold, released } = world(["r0/0"], "service")
    expect(yield* hold(requests(1, 1, 1, 1))).toEqual([
      { codes: [[0, "sponsorship_exhausted"]], ops: [] },
      { codes: [], ops: [0] },
      { codes: [], ops: [0] },
      { codes: [[0, "submission_limit"]], ops: [] }
    ])
    expect(released).toEqual(["r3/0"])
    expect((yield* budgets.open(Make.chainId)).map(({ id }) => id)).toEqual(
      [1, 2].map((request) => `${Losses.budget}:r${request}:0`)
    )
  })
})
