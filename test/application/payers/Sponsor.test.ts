import { describe, expect } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as ChainFacts from "../../../src/application/chain/ChainFacts.js"
import * as HoldFollower from "../../../src/application/payers/HoldFollower.js"
import { heldMillis, type Part } from "../../../src/application/payers/Payer.js"
import * as Sponsor from "../../../src/application/payers/Sponsor.js"
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
    /** Budgets that exist already; default: empty. */
    readonly budgets?: Budgets["Service"]
  } = {}
) =>
  Effect.gen(function* () {
    const { accountId = Make.alice, bundler = Make.lane.signer } = options
    const { dailyBudget = 10n ** 17n, deposit = 10n ** 18n } = options
    const { reads, site } = yield* Site.make(deposit, { accountId, bundler })
    const { connection } = site
    const budgets = options.budgets ?? (yield* InMemory.makeBudgets)
    const watched: Array<HoldFollower.Watched> = []
    const signed: Array<Hex.Bytes32> = []
    const facts = ChainFacts.make()
    const payer = Sponsor.make(
      {
        budgets,
        facts,
        follower: {
          watch: (each) => Effect.sync(() => void watched.push(each)),
          settle: () => Effect.void
        },
        signer: Effect.succeed(Site.key(signed, seal)),
        dailyBudget
      },
      { ...site, connection: { ...connection, profile: { ...connection.profile, caps } } }
    )
    /** Code of the refusal to pay; null: it pays. */
    const objection = (op: UserOperation) =>
      Effect.map(payer.reserve([part(op, Number(op.nonce))]), ([failure]) => failure?.code ?? null)
    /** Code of the refusal to sign; null: it signs. */
    const refusal = (of: Part, userOpHash = hashOf(of.op)) =>
      Effect.map(Effect.result(payer.seal(of, userOpHash)), (sealed) =>
        Result.match(sealed, {
          onFailure: (error) => {
            if (error._tag === "PayerRefusal") return error.failure.code
            return error._tag === "SignerError" ? error.reason : error.code
          },
          onSuccess: () => null
        })
      )
    return { budgets, bundler, connection, facts, objection, payer, reads, refusal, signed, watched }
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
  test("up to the operator's price caps, and not a wei above", function* () {
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

  test("with its own paymaster only", function* () {
    const { objection } = yield* world()
    for (const paymasterAndData of [Hex.empty, terms({ paymaster: Make.address(0x5b) })])
      expect(yield* objection({ ...good, paymasterAndData })).toBe("not_sponsored")
  })

  test("for its own duration, with a minute for a lagging node", function* () {
    const { objection } = yield* world()
    const until = (validUntil: number, nonce: bigint) =>
      objection({ ...good, nonce, paymasterAndData: terms({ validUntil }) })
    expect(yield* until(now + Sponsor.lifeSeconds + 60, 2n)).toBeNull()
    expect(yield* until(now + Sponsor.lifeSeconds + 61, 3n)).toBe("not_sponsored")
    expect(yield* until(0, 4n)).toBe("not_sponsored")
    expect(yield* until(now + 1, 5n)).toBeNull()
    expect(yield* until(now, 6n)).toBe("sponsorship_over")
  })

  test("a sponsor judges by the block that the request has read", function* () {
    const { connection, facts, payer, reads } = yield* world()
    yield* facts.block(connection.chain, "now")
    yield* payer.draft(Site.op)
    expect(reads.blocks).toBe(1)
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

  test("without a submitter with a remote bundler, and with no other", function* () {
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

  test("with the first block and the deadline of the op stored in its hold", function* () {
    const { budgets, payer } = yield* world()
    yield* payer.reserve([part(good)])
    yield* payer.seal(part(good), hashOf(good))
    const validUntil = now + Sponsor.lifeSeconds
    const note = HoldFollower.note({ userOpHash: hashOf(good), entryPoint, since: 7n, validUntil })
    expect((yield* budgets.open(Make.chainId)).map((hold) => hold.notes)).toEqual([[note], [note]])
  })

  test("not yet landed: its cost is booked once", function* () {
    const { budgets, payer } = yield* world()
    const codes = Effect.map(payer.reserve([part(good)]), Site.codes)
    expect(yield* codes).toEqual([])
    yield* budgets.settle(Make.chainId, "r/0", 0n)
    expect(yield* codes).toEqual([])
    yield* budgets.settle(Make.chainId, "r/0", 1n)
    expect(yield* codes).toEqual([[0, "not_sponsored"]])
  })
})

describe("the sponsor signs an op", () => {
  const reserved = Effect.gen(function* () {
    const it = yield* world()
    yield* it.payer.reserve([part(good)])
    return it
  })

  test("with held funds, for the EOA that submits, and follows it", function* () {
    const { budgets, bundler, payer, signed, watched } = yield* reserved
    expect(watched).toEqual([])
    expect(yield* payer.seal(part(good), hashOf(good))).toBe(seal)
    expect(watched).toMatchObject([{ accountId: Make.alice, profile: { chainId: Make.chainId } }])
    expect(signed).toEqual([Sponsorship.digest({ chainId: Make.chainId, paymaster }, hashOf(good), bundler)])
    yield* payer.release([part(good)])
    expect((yield* budgets.open(Make.chainId)).map(({ bound }) => bound)).toEqual([true, true])
  })

  test("again at a higher price, out of one hold, with all of its versions noted", function* () {
    const { budgets, payer, refusal } = yield* world()
    const cheap = part({ ...good, maxFeePerGas: 50n })
    yield* payer.reserve([cheap])
    expect([yield* refusal(cheap), yield* refusal(part(good))]).toEqual([null, null])
    const holds = yield* budgets.open(Make.chainId)
    expect(holds.map(({ notes, wei }) => [notes.length, wei])).toEqual([
      [2, Site.cost],
      [2, Site.cost]
    ])
  })

  test("issued by the service when it comes back unchanged", function* () {
    yield* Time.setTime(now * 1_000)
    const { payer, refusal, signed } = yield* world()
    yield* payer.handOut(good, hashOf(good))
    const given = Site.givenPart(good)
    expect(Site.codes(yield* payer.reserve([given]))).toEqual([])
    expect(yield* refusal(given)).toBeNull()
    const changed = { ...good, callGasLimit: good.callGasLimit - 1n }
    for (const other of [Site.givenPart(changed), { ...given, op: changed }]) {
      expect(Site.codes(yield* payer.reserve([other]))).toEqual([[0, "not_sponsored"]])
      expect(yield* refusal(other, hashOf(good))).toBe("not_sponsored")
    }
    expect(signed).toHaveLength(1)
  })

  test("with released or expired funds, if they can be held again", function* () {
    const released = yield* reserved
    yield* released.payer.release([part(good)])
    expect(yield* released.refusal(part(good))).toBeNull()
    expect((yield* released.budgets.open(Make.chainId)).map(({ bound }) => bound)).toEqual([true, true])
    const late = yield* world({ dailyBudget: Site.cost })
    yield* late.payer.reserve([part(good)])
    yield* Time.adjust(heldMillis + 1)
    yield* late.payer.reserve([part(good, 1)])
    expect(yield* late.refusal(part(good))).toBe("sponsorship_exhausted")
    expect(late.signed).toEqual([])
  })

  test("not above the operator's bounds, whatever was reserved", function* () {
    const { payer, refusal, signed } = yield* world()
    const dear = part({ ...good, maxFeePerGas: 101n })
    yield* payer.reserve([dear])
    expect(yield* refusal(dear)).toBe("fees_above_cap")
    expect(signed).toEqual([])
  })
})
