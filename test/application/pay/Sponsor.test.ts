import { describe, expect } from "@effect/vitest"
import { Effect, Result } from "effect"
import { keptMillis } from "../../../src/application/pay/Paymaster.js"
import * as Sponsor from "../../../src/application/pay/Sponsor.js"
import * as Sponsorships from "../../../src/application/pay/Sponsorships.js"
import type { Budgets } from "../../../src/application/ports/Budgets.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as Sponsorship from "../../../src/domain/erc4337/paymaster/Sponsorship.js"
import type { UserOperation } from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"
import * as Site from "./Site.js"

const { entryPoint, hashOf, now, part, paymaster, version } = Site
const caps = { maxFeePerGas: 100n, maxPriorityFeePerGas: 10n, transactionGas: 1_000_000n }
const seal = Hex.unsafe(`0x${"5e".repeat(65)}`)

/** A sponsor for requests that this EOA submits, with this budget of the day, and a paymaster with this deposit. */
const world = (
  options: {
    readonly bundler?: Address.Address
    readonly deposit?: bigint
    readonly dailyBudget?: bigint
    readonly accountId?: typeof Make.alice
    /** What is kept already; left out: nothing. */
    readonly budgets?: Budgets["Service"]
  } = {}
) =>
  Effect.gen(function* () {
    const { accountId = Make.alice, bundler = Make.lane.signer } = options
    const { dailyBudget = 10n ** 17n, deposit = 10n ** 18n } = options
    const { site } = yield* Site.make(deposit, { accountId, bundler })
    const { connection } = site
    const budgets = options.budgets ?? (yield* InMemory.makeBudgets)
    const watched: Array<Sponsorships.Watched> = []
    const signed: Array<Hex.Bytes32> = []
    const payer = yield* Sponsor.make(
      {
        budgets,
        sponsorships: { watch: (each) => Effect.sync(() => void watched.push(each)) },
        signer: Effect.succeed(Site.key(signed, seal)),
        dailyBudget
      },
      { ...site, connection: { ...connection, profile: { ...connection.profile, caps } } }
    )
    /** Why it is not paid for; null: it is. */
    const objection = (op: UserOperation) =>
      Effect.map(payer.reserve([part(op)]), (failed) => failed.get(0)?.code ?? null)
    /** Why its completed and reserved op gets no signature; null: it gets one. */
    const refusal = (op: UserOperation, userOpHash = hashOf(op)) =>
      Effect.map(Effect.result(payer.seal(op, userOpHash)), (sealed) =>
        Result.match(sealed, {
          onFailure: (error) => {
            if (error._tag === "PayerRefusal") return error.failure.code
            return error._tag === "SignerError" ? error.reason : error.code
          },
          onSuccess: () => null
        })
      )
    return { budgets, bundler, objection, payer, refusal, signed, watched }
  })

const terms = (over: Partial<Sponsorship.Terms> = {}) =>
  Sponsorship.paymasterData(version, {
    paymaster,
    limits: PaymasterData.noLimits,
    validUntil: now + Sponsor.lifeSeconds,
    validAfter: 0,
    unbound: false,
    ...over
  })

const good: UserOperation = { ...Site.op, paymasterAndData: terms() }

describe("the sponsor pays for an op", () => {
  test("up to the operator's caps on prices, and not a wei above one of them", function* () {
    const { objection } = yield* world()
    expect(yield* objection(good)).toBeNull()
    expect(yield* objection({ ...good, nonce: 2n, maxFeePerGas: 101n })).toBe("fees_above_cap")
    expect(yield* objection({ ...good, nonce: 3n, maxPriorityFeePerGas: 11n })).toBe("fees_above_cap")
  })

  test("up to the operator's bound on the gas of all its parts together", function* () {
    const { objection } = yield* world()
    for (const field of ["callGasLimit", "verificationGasLimit", "preVerificationGas"] as const)
      expect(yield* objection({ ...good, [field]: good[field] + 1n })).toBe("not_sponsored")
  })

  test("of its own paymaster only", function* () {
    const { objection } = yield* world()
    for (const paymasterAndData of [Hex.empty, terms({ paymaster: Make.address(0x5b) })])
      expect(yield* objection({ ...good, paymasterAndData })).toBe("not_sponsored")
  })

  test("for as long as it says itself, with a minute for a node that lags", function* () {
    const { objection } = yield* world()
    const until = (validUntil: number, nonce: bigint) =>
      objection({ ...good, nonce, paymasterAndData: terms({ validUntil }) })
    expect(yield* until(now + Sponsor.lifeSeconds + 60, 2n)).toBeNull()
    expect(yield* until(now + Sponsor.lifeSeconds + 61, 3n)).toBe("not_sponsored")
    expect(yield* until(0, 4n)).toBe("not_sponsored")
    expect(yield* until(now + 1, 5n)).toBeNull()
    expect(yield* until(now, 6n)).toBe("sponsorship_over")
  })

  test("from now on where the chain has rested: its next block has the time of the world", function* () {
    const { objection, payer } = yield* world()
    const later = now + 3_600
    yield* Time.setTime(later * 1_000)
    const drafted = yield* payer.draft({ ...good, paymasterAndData: Hex.empty })
    expect(Result.getOrThrow(Sponsorship.read(version, drafted.paymasterAndData)).validUntil).toBe(
      later + Sponsor.lifeSeconds
    )
    expect(yield* objection({ ...drafted, nonce: 2n })).toBeNull()
    expect(yield* objection({ ...good, nonce: 3n })).toBe("sponsorship_over")
  })

  test("that names no submitter with a remote bundler, and with none else", function* () {
    const unbound = { ...good, paymasterAndData: terms({ unbound: true }) }
    const own = yield* world()
    expect(yield* own.objection(unbound)).toBe("not_sponsored")
    const remote = yield* world({ bundler: Address.zero })
    expect(yield* remote.objection(good)).toBe("not_sponsored")
    expect(yield* remote.objection(unbound)).toBeNull()
  })

  test("out of the account's budget of the day, and out of the deposit", function* () {
    const most = 100n * 1_000_000n
    const { objection } = yield* world({ deposit: 2n * most - 1n })
    expect(yield* objection(good)).toBeNull()
    expect(yield* objection({ ...good, nonce: 2n })).toBe("insufficient_funds")
    const poor = yield* world({ dailyBudget: 2n * most - 1n })
    expect(yield* poor.objection(good)).toBeNull()
    expect(yield* poor.objection({ ...good, nonce: 2n })).toBe("sponsorship_exhausted")
  })

  test("out of a deposit that the ops of all accounts draw on", function* () {
    const deposit = 2n * 100n * 1_000_000n - 1n
    const alice = yield* world({ deposit })
    expect(yield* alice.objection(good)).toBeNull()
    const bob = yield* world({ deposit, accountId: Make.bob, budgets: alice.budgets })
    expect(yield* bob.objection({ ...good, nonce: 2n })).toBe("insufficient_funds")
  })

  test("and keeps with its money from which block on the op may land, and until when", function* () {
    const { budgets, objection } = yield* world()
    yield* objection(good)
    const note = Sponsorships.note({ entryPoint, since: 7n, validUntil: now + Sponsor.lifeSeconds })
    expect((yield* budgets.open(Make.chainId)).map((hold) => hold.note)).toEqual([note, note])
  })

  test("whose sponsorship has not ended", function* () {
    const { budgets, objection } = yield* world()
    yield* objection(good)
    yield* budgets.settle(Make.chainId, hashOf(good), 1n)
    expect(yield* objection(good)).toBe("not_sponsored")
  })
})

describe("the sponsor signs an op", () => {
  const reserved = Effect.gen(function* () {
    const it = yield* world()
    yield* it.payer.complete(good)
    yield* it.payer.reserve([part(good)])
    return it
  })

  test("that was completed for the request and is reserved, for the EOA that submits, and follows it", function* () {
    const { bundler, payer, signed, watched } = yield* reserved
    expect(watched).toEqual([])
    expect(yield* payer.seal(good, hashOf(good))).toBe(seal)
    expect(watched).toMatchObject([{ accountId: Make.alice, profile: { chainId: Make.chainId } }])
    expect(signed).toEqual([Sponsorship.digest({ chainId: Make.chainId, paymaster }, hashOf(good), bundler)])
  })

  test("once: what is kept for it is spent", function* () {
    const { refusal, signed } = yield* reserved
    expect([yield* refusal(good), yield* refusal(good)]).toEqual([null, "not_sponsored"])
    expect(signed).toHaveLength(1)
  })

  test("that is the last of those that claim its nonce", function* () {
    const { payer, refusal, signed } = yield* reserved
    const later = { ...good, callGasLimit: good.callGasLimit - 1n }
    yield* payer.complete(later)
    yield* payer.reserve([part(later)])
    expect([yield* refusal(good), yield* refusal(later)]).toEqual(["not_sponsored", null])
    expect(signed).toHaveLength(1)
  })

  test("not when any byte of it has changed since, under whatever hash it comes", function* () {
    const { refusal, signed } = yield* reserved
    const changed = { ...good, callGasLimit: good.callGasLimit - 1n }
    expect(yield* refusal(changed)).toBe("not_sponsored")
    expect(yield* refusal(changed, hashOf(good))).toBe("not_sponsored")
    expect(signed).toEqual([])
  })

  test("not when it was never built here, though its terms are right and it is reserved", function* () {
    const { payer, refusal, signed } = yield* world()
    yield* payer.reserve([part(good)])
    expect(yield* refusal(good)).toBe("not_sponsored")
    expect(signed).toEqual([])
  })

  test("that was handed out, when it comes back the same", function* () {
    yield* Time.setTime(now * 1_000)
    const { payer, refusal } = yield* world()
    yield* payer.handOut(good, hashOf(good))
    yield* payer.reserve([part(good)])
    expect(yield* refusal(good)).toBeNull()
  })

  test("not without money that is kept for it", function* () {
    const never = yield* world()
    yield* never.payer.complete(good)
    expect(yield* never.refusal(good)).toBe("not_sponsored")
    const released = yield* reserved
    yield* released.payer.release([{ op: good }])
    expect(yield* released.refusal(good)).toBe("not_sponsored")
    const ended = yield* reserved
    yield* ended.payer.end
    expect(yield* ended.refusal(good)).toBe("not_sponsored")
    expect(yield* ended.budgets.open(Make.chainId)).toEqual([])
    const late = yield* reserved
    yield* Time.adjust(keptMillis + 1)
    expect(yield* late.refusal(good)).toBe("sponsorship_over")
    expect([...never.signed, ...released.signed, ...ended.signed, ...late.signed]).toEqual([])
  })

  test("not above the operator's bounds, whatever was reserved", function* () {
    const { payer, refusal, signed } = yield* world()
    const dear = { ...good, maxFeePerGas: 101n }
    yield* payer.complete(dear)
    yield* payer.reserve([part(dear)])
    expect(yield* refusal(dear)).toBe("fees_above_cap")
    expect(signed).toEqual([])
  })
})
