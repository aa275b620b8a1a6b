import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Redacted } from "effect"
import * as ChainFacts from "../../../src/application/chain/ChainFacts.js"
import * as Payers from "../../../src/application/payers/Payers.js"
import { type PaymasterClient, PaymasterRpcError } from "../../../src/application/ports/chain/PaymasterRpc.js"
import type { NetworkProfile } from "../../../src/application/ports/NetworkProfile.js"
import { SignerError } from "../../../src/application/ports/Signers.js"
import * as Sponsorship from "../../../src/domain/erc4337/paymaster/Sponsorship.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Site from "./Site.js"

const { codes, cost, entryPoint, givenPart, hashOf, op, part, version } = Site
const [sponsor, named, other] = [Make.address(0x5a), Make.address(0x5b), Make.address(0x5c)]
const submitter = Make.address(0xe0)
const url = "http://service/secret"

const profile: Partial<NetworkProfile> = {
  sponsor: { paymaster: sponsor, dailyBudget: 2n * cost },
  paymasterServices: [
    { paymaster: Make.address(0x5d), url: Redacted.make("http://another") },
    { paymaster: named, url: Redacted.make(url) }
  ]
}

/** The payers of a process whose deposits are these wei each. */
const world = (deposit = 100n * cost, over: Partial<NetworkProfile> = {}) =>
  Effect.gen(function* () {
    const { site } = yield* Site.make(deposit)
    const connection = { ...site.connection, profile: { ...site.connection.profile, ...profile, ...over } }
    const asked: Array<string> = []
    const signed: Array<Hex.Bytes32> = []
    const budgets = yield* InMemory.makeBudgets
    const silent = new PaymasterRpcError({ reason: "unreachable", origin: "http://service", message: "down" })
    const key = Site.key(signed, Hex.unsafe(`0x${"5e".repeat(65)}`))
    const unused = Effect.fail(new SignerError({ reason: "notConfigured", message: "not this one" }))
    const payers = Payers.make({
      budgets,
      facts: ChainFacts.make(),
      services: {
        connect: (service) =>
          Effect.sync((): PaymasterClient => {
            asked.push(service)
            return { origin: service, stub: () => Effect.fail(silent), data: () => Effect.fail(silent) }
          })
      },
      system: { deployer: unused, serviceEoa: unused, sponsor: Effect.succeed(key), treasury: unused },
      follower: { watch: () => Effect.void, settle: () => Effect.void }
    })
    const held = Effect.map(budgets.open(Make.chainId), (holds) => holds.map(({ id, name }) => [id, name]))
    const of = (paymaster: Address.Address | undefined, trust: "caller" | "operator" = "operator") =>
      payers.of(site.accountId, { ...connection, trust }, { entryPoint, version, paymaster, submitter })
    return { asked, budgets, held, of, signed }
  })

const drafted = (paymaster: Address.Address) =>
  Effect.flatMap(world(), ({ of }) => Effect.flatMap(of(paymaster), (payer) => payer.draft(op)))

describe("the payer of a request's ops", () => {
  test("is each wallet when it names no paymaster", function* () {
    const { held, of } = yield* world()
    const payer = yield* of(undefined)
    expect(payer.paymaster).toBeNull()
    expect(yield* payer.draft(op)).toBe(op)
    expect(codes(yield* payer.reserve([part(op)]))).toEqual([])
    expect(yield* held).toEqual([])
  })

  test("is the operator's own paymaster, within its budget, for the EOA that submits", function* () {
    const { of, signed } = yield* world()
    const payer = yield* of(sponsor)
    const first = yield* Effect.flatMap(payer.draft(op), payer.complete)
    const ops = [first, { ...first, nonce: 2n }, { ...first, nonce: 3n }].map((each, index) =>
      part(each, index)
    )
    expect(codes(yield* payer.reserve(ops))).toEqual([[2, "sponsorship_exhausted"]])
    yield* payer.seal(part(first), hashOf(first))
    expect(signed).toEqual([
      Sponsorship.digest({ chainId: Make.chainId, paymaster: sponsor }, hashOf(first), submitter)
    ])
  })

  test("is the operator's own paymaster for any EOA when an external bundler submits", function* () {
    const { of, signed } = yield* world(100n * cost, { remoteBundler: Redacted.make("http://bundler") })
    const payer = yield* of(sponsor)
    const completed = yield* Effect.flatMap(payer.draft(op), payer.complete)
    yield* payer.reserve([part(completed)])
    yield* payer.seal(part(completed), hashOf(completed))
    expect(signed).toEqual([
      Sponsorship.digest({ chainId: Make.chainId, paymaster: sponsor }, hashOf(completed), Address.zero)
    ])
  })

  test("is never the operator's own paymaster on a caller's node's word", function* () {
    const { of } = yield* world()
    expect(Exit.isFailure(yield* Effect.exit(of(sponsor, "caller")))).toBe(true)
  })

  test("is a paymaster of the profile, whose service signs", function* () {
    const { asked, of } = yield* world()
    const payer = yield* of(named, "caller")
    expect(yield* Effect.flip(payer.draft(op))).toMatchObject({ code: "paymaster_unavailable" })
    expect(asked).toEqual([url])
    expect(payer).toMatchObject({ paymaster: named, tail: 0 })
  })

  test("is any other paymaster, which gets no data", function* () {
    const { asked, of } = yield* world()
    const payer = yield* of(other, "caller")
    expect(yield* payer.draft(op)).toMatchObject({ paymasterAndData: `${other}${"0".repeat(64)}` })
    expect([payer.paymaster, payer.tail, asked]).toEqual([other, 0, []])
    const without = yield* world(100n * cost, { sponsor: null })
    expect(yield* without.of(sponsor, "caller")).toMatchObject({ paymaster: sponsor, tail: 0 })
  })
})

describe("encoded ops", () => {
  const plain = {
    ...op,
    paymasterAndData: Hex.unsafe(`${other}${"0".repeat(64)}`),
    sender: Make.address(0xb2)
  }
  const own = { ...op, sender: Make.address(0xb3) }

  test("are measured unchanged, with room for the signature of the sealing paymaster", function* () {
    const { of } = yield* world()
    const sponsored = { ...(yield* drafted(sponsor)), signature: Hex.unsafe("0x11") }
    const payer = yield* of(undefined)
    expect(payer.paymaster).toBeNull()
    expect(yield* payer.draft(sponsored)).toEqual({
      ...sponsored,
      signature: Hex.concat(Hex.unsafe("0x11"), Sponsorship.dummy)
    })
    for (const each of [plain, own]) expect(yield* payer.draft(each)).toBe(each)
  })

  test("are paid by the payer that each names, and fail by their own index", function* () {
    const { budgets, held, of } = yield* world(2n * cost)
    const sponsored = yield* drafted(sponsor)
    for (const nonce of [sponsored.nonce, 2n, 3n])
      yield* budgets.handOut(Make.alice, Make.chainId, hashOf({ ...sponsored, nonce }), Site.now + 600)
    const ops = [
      own,
      plain,
      { ...plain, nonce: 2n },
      sponsored,
      { ...plain, nonce: 3n },
      { ...sponsored, nonce: 2n },
      { ...sponsored, nonce: 3n }
    ]
    const payer = yield* of(undefined)
    const failed = yield* payer.reserve(ops.map((each, index) => givenPart(each, index)))
    expect(codes(failed).sort()).toEqual([
      [4, "insufficient_funds"],
      [6, "sponsorship_exhausted"]
    ])
    const deposit = (paymaster: string) => `deposit:${entryPoint}:${paymaster}`
    expect((yield* held).map(([, name]) => name)).toEqual([
      deposit(other),
      deposit(other),
      "sponsor",
      deposit(sponsor),
      "sponsor",
      deposit(sponsor)
    ])
    yield* payer.release([own, plain, sponsored].map((each) => givenPart(each)))
    expect((yield* held).map(([, name]) => name)).toEqual([deposit(other), "sponsor", deposit(sponsor)])
    yield* payer.release(ops.map((each) => givenPart(each)))
    expect(yield* held).toEqual([])
  })

  test("are sealed by the paymaster they name, or not at all where it seals nothing", function* () {
    const { budgets, of, signed } = yield* world()
    const sponsored = yield* drafted(sponsor)
    yield* budgets.handOut(Make.alice, Make.chainId, hashOf(sponsored), Site.now + 600)
    const payer = yield* of(undefined)
    yield* payer.reserve([sponsored, plain, own].map((each, index) => givenPart(each, index)))
    expect(yield* payer.seal(givenPart(own), hashOf(own))).toBe("0x")
    expect(yield* payer.seal(givenPart(plain), hashOf(plain))).toBe("0x")
    expect(signed).toEqual([])
    expect(Hex.size(yield* payer.seal(givenPart(sponsored), hashOf(sponsored)))).toBe(65)
    expect(signed).toHaveLength(1)
  })
})
