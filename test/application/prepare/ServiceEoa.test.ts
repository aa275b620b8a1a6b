import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import type { Connection } from "../../../src/application/chain/Connection.js"
import * as Losses from "../../../src/application/payers/Losses.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import * as ServiceSubmission from "../../../src/application/prepare/ServiceEoa.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import type { ForOps } from "../../../src/application/request/Settings.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import * as Ops from "../../support/lanes/Ops.js"
import * as Parties from "../../support/Parties.js"
import { test, testOver } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const version = "v0.7"
const sponsor = { paymaster: Make.address(0x5a), dailyBudget: 1n }
const profile = NetworkProfile.make({
  chainId: Make.chainId,
  factory: Make.address(0xfa),
  beacon: Make.address(0xbe),
  creationCode: Hex.unsafe("0xabcd"),
  implementationCodeHash: Make.word(1),
  sponsor
})
const settings: ForOps = { entryPoint: EntryPoint.canonical[version], useABI: [], cosigners: [] }

describe("the service's EOA works", () => {
  const refusal = (own: Partial<ForOps>, pinned = true) =>
    Effect.match(
      ServiceSubmission.assertSubmits(
        {
          profile: pinned ? profile : { ...profile, implementationCodeHash: null }
        } as unknown as Connection,
        { ...settings, ...own }
      ),
      { onFailure: ({ details }) => details[0]?.path, onSuccess: () => null }
    )

  test("only for wallets of the account's own profile, whatever the request calls them", function* () {
    const own = {
      factory: Make.address(0xfa),
      beaconAdminAddress: Make.address(0xbe),
      beaconAdminCreationCode: "0xABCD"
    }
    expect(yield* refusal({})).toBeNull()
    expect(yield* refusal(own)).toBeNull()
    const other = Make.address(0x0f)
    for (const [name, value] of [
      ["beaconAdminAddress", other],
      ["beaconAdminCreationCode", "0xabce"],
      ["aggregator", other]
    ] as const)
      expect(yield* refusal({ ...own, [name]: value })).toBe(`settings.${name}`)
  })

  test("only while the operator has pinned their implementation", function* () {
    expect(yield* refusal({}, false)).toBe("settings.rpc")
  })
})

describe("an op that the service's EOA submits", () => {
  const least = { maxFeePerGas: 100n, maxPriorityFeePerGas: 10n, legacy: false }
  const paying = (bytes: Hex.Hex) => ({ ...Ops.plain, ...least, paymasterAndData: bytes })
  const withGas = (op: typeof Ops.plain, missing = 0n) => ({
    ...op,
    preVerificationGas: Gas.preVerificationGas(op, { version, measuredGas: 2n ** 64n }) - missing
  })
  const objection = (op: typeof Ops.plain) =>
    ServiceSubmission.objection(profile, version, op, least)?.code ?? null
  const dataOf = (paymaster = sponsor.paymaster) =>
    PaymasterData.make(version, { paymaster, limits: PaymasterData.noLimits, data: Hex.empty })
  const good = withGas(paying(Hex.empty))

  it("pays at least the current gas price, and for all of its own data", () => {
    expect(objection(good)).toBeNull()
    for (const price of ["maxFeePerGas", "maxPriorityFeePerGas"] as const)
      expect(objection({ ...good, [price]: least[price] - 1n })).toBe("submission_unpaid")
    expect(objection(withGas(paying(Hex.empty), 1n))).toBe("submission_unpaid")
  })

  it("is paid by its wallet or the operator's own paymaster, which no other party can empty meanwhile", () => {
    expect(objection(withGas(paying(dataOf())))).toBeNull()
    expect(objection(withGas(paying(dataOf(Make.address(0x5b)))))).toBe("submission_unpaid")
    expect(objection(withGas(paying(Hex.unsafe("0x5a"))))).toBe("submission_unpaid")
  })
})

describe("the possible cost of an op to the service's EOA", () => {
  const prices = { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n, legacy: false }
  /** An op that costs a million wei in addition to its gas. */
  const risk = (index: number, { requestId }: Pick<Caller, "requestId"> = Parties.caller()) => ({
    requestId,
    index,
    op: Ops.plain,
    l1Fee: 1_000_000n
  })
  const siteOf = (of: NetworkProfile.NetworkProfile, account = Make.alice) => ({
    accountId: account,
    connection: { profile: of },
    version: "v0.7" as const
  })
  const site = siteOf(profile)
  const limited = (limits: { readonly dailyLoss?: bigint; readonly maxInFlight?: number }) => ({
    ...profile,
    serviceSubmission: { ...profile.serviceSubmission, ...limits }
  })
  const reserved = (
    of: NetworkProfile.NetworkProfile,
    indexes: ReadonlyArray<number>,
    caller = Parties.caller()
  ) =>
    Effect.map(
      ServiceSubmission.reserve(
        siteOf(of, caller.principal.accountId),
        indexes.map((index) => risk(index, caller)),
        prices
      ),
      (failed) => indexes.filter((_, place) => failed[place] !== null)
    )
  const held = (account = Make.alice) =>
    Effect.flatMap(Budgets, (budgets) =>
      Effect.map(
        budgets.figures({ accountId: account, chainId: Make.chainId, name: Losses.budget }, 0, "day"),
        (figures) => figures.held
      )
    )
  const test = testOver(InMemory.budgets)

  test("is bounded by the account's daily loss and its ops under way", function* () {
    expect(yield* reserved(limited({ dailyLoss: 2_500_000n }), [0, 1, 2])).toEqual([2])
    expect(yield* reserved(limited({ maxInFlight: 2 }), [3])).toEqual([3])
    // Another account has its own.
    expect(yield* reserved(limited({ maxInFlight: 2 }), [0, 1, 2], Parties.caller("s", Make.bob))).toEqual([
      2
    ])
  })

  test("is reserved before signing: without room the op waits", function* () {
    yield* reserved(profile, [0, 1])
    yield* ServiceSubmission.bind(site, risk(0))
    yield* Time.adjust("10 minutes")
    expect(Exit.isSuccess(yield* Effect.exit(ServiceSubmission.bind(site, risk(0))))).toBe(true)
    // An expired reservation is made again, where there is room.
    yield* ServiceSubmission.bind(site, risk(1))
    const full = siteOf(limited({ maxInFlight: 2 }))
    const late = yield* Effect.flip(ServiceSubmission.bind(full, risk(2)))
    expect(late.reason).toBe("unavailable")
  })

  test("is released, bound or not", function* () {
    yield* reserved(profile, [0, 1, 2])
    yield* ServiceSubmission.bind(site, risk(0))
    const all = yield* held()
    yield* ServiceSubmission.giveBack(site, [risk(0), risk(1)])
    expect(yield* held()).toBe(all / 3n)
  })
})
