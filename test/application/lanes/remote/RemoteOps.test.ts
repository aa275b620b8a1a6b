import { Deferred, type Duration, Effect } from "effect"
import { describe, expect, it } from "vitest"
import * as RemoteInclusions from "../../../../src/application/lanes/remote/RemoteInclusions.js"
import * as RemoteOps from "../../../../src/application/lanes/remote/RemoteOps.js"
import { BundlerRpcError } from "../../../../src/application/ports/chain/BundlerRpc.js"
import { JournalError } from "../../../../src/application/ports/journal/JournalError.js"
import type { FoundInclusion } from "../../../../src/application/ports/journal/RemoteSubmissions.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import * as EntryPoint from "../../../../src/domain/erc4337/EntryPoint.js"
import * as Nonce from "../../../../src/domain/erc4337/Nonce.js"
import * as Sponsorship from "../../../../src/domain/erc4337/paymaster/Sponsorship.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../../src/domain/signature/Conditions.js"
import * as Make from "../../../support/journal/Make.js"
import * as Log from "../../../support/Log.js"
import * as Landings from "../../../support/lanes/Landings.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import * as Ops from "../../../support/lanes/Ops.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

const round = "1 second"
const hash = Make.word(0x0b)

const refusal = (reason: BundlerRpcError["reason"], message = "AA00") =>
  new BundlerRpcError({ reason, origin: "http://bundler", message })

type Chain = ReturnType<typeof Landings.makeChain>

/**
 * An op at a bundler that neither has it nor answers, on a chain whose blocks are ten seconds apart. What the journal was
 * told of it.
 */
const world = (
  options: {
    readonly validUntil?: number
    readonly confirmations?: number
    readonly nonce?: bigint
    readonly found?: Hex.Bytes32
    /** What was found is of an op that the bundler has. */
    readonly handedOver?: boolean
    /** What it says when it is given the op; `before`: it was given it in another life of the process. */
    readonly answer?: "before" | BundlerRpcError
    /** The bundler says in which transaction the op is, and goes on to. */
    readonly bundled?: boolean
    readonly initCode?: Hex.Hex
    /** Block at which it was handed over. */
    readonly since?: bigint
    /** The bundler never answers when it is given the op. */
    readonly hangs?: boolean
    /** It had refused the op before the process was started. */
    readonly refused?: boolean
  } = {}
) =>
  Effect.gen(function* () {
    const {
      answer = "before" as const,
      bundled = false,
      confirmations = 1,
      found,
      handedOver = options.found === undefined,
      hangs = false,
      initCode = Hex.empty,
      nonce = 0n,
      refused = false,
      since = 0n,
      validUntil = 0
    } = options
    const chain = Landings.makeChain()
    const told: Array<string> = []
    const taken: Array<Hex.Bytes32> = []
    const woken: Array<string> = []
    /** The journal fails at what it is to record next, that often. */
    const outage = { left: 0, isFenced: false }
    const tell = (what: string) =>
      Effect.sync((): ReadonlyArray<string> => {
        told.push(what)
        return ["r"]
      })
    const remoteOpJournal = {
      recordInclusions: (_: unknown, __: unknown, [outcome]: ReadonlyArray<FoundInclusion>) =>
        outage.left-- > 0
          ? Effect.fail(
              new JournalError({ message: "away", ...(outage.isFenced && { isFenced: true as const }) })
            )
          : tell(`recorded${outcome?.final === true ? " for good" : ""}: ${outcome?.success}`),
      recordTaken: (_: unknown, __: unknown, hashes: ReadonlyArray<Hex.Bytes32>) =>
        Effect.sync(() => void taken.push(...hashes)),
      finaliseInclusions: () => tell("finalised"),
      revertInclusions: () => tell("reverted"),
      takeBack: () => tell("revoked")
    } as unknown as Parameters<typeof RemoteOps.make>[0]["remoteOpJournal"]
    const offers: Array<Hex.Bytes32> = []
    const remoteOps = yield* RemoteOps.make({
      remoteOpJournal,
      listener: {
        affected: ({ signer }, requestIds) => Effect.sync(() => void woken.push(...requestIds, signer)),
        reopened: Effect.asVoid(tell("reopened")),
        told: Effect.void
      }
    })
    const space = { ...Make.space(1), entryPoint: Landings.entryPoint }
    /** What came of the first offer. */
    const answers: Array<string> = []
    let isFirst = true
    const watch = Effect.gen(function* () {
      const held = {
        chain: chain.client,
        profile: NetworkProfile.make({ chainId: Make.chainId, confirmations, settledDepth: 3 }),
        bundler: !handedOver
          ? null
          : {
              origin: "http://bundler",
              chainId: Effect.succeed(Make.chainId),
              entryPoints: Effect.succeed([Landings.entryPoint]),
              preVerificationGas: () => Effect.die(new Error("not asked for")),
              find: () => Effect.succeed(bundled ? { txHash: Landings.txHashOf(hash) } : null),
              send: (_: unknown, userOpHash: Hex.Bytes32) =>
                Effect.suspend(() => {
                  const error = isFirst && answer !== "before" ? answer : null
                  isFirst = false
                  if (error !== null) return error
                  offers.push(userOpHash)
                  return hangs ? Effect.never : Effect.void
                })
            },
        offer: !handedOver
          ? null
          : {
              version: "v0.7" as const,
              entryPoint: Landings.entryPoint,
              op: { ...Ops.plain, sender: space.wallet, nonce, initCode }
            },
        validUntil,
        submission: {
          requestId: "r",
          index: 0,
          accountId: Make.alice,
          space,
          userOpHash: hash,
          node: { rpc: Monitor.callers.rpc, trust: "caller" as const },
          since,
          signed: handedOver ? Hex.empty : null,
          isRefused: refused,
          includedIn: found === undefined ? null : Landings.txHashOf(found),
          landedAs: found ?? hash
        }
      } satisfies RemoteInclusions.Held
      const { bundler, offer } = held
      if (answer === "before" || bundler === null || offer === null) return yield* remoteOps.resume(held)
      const given = yield* Deferred.make<RemoteInclusions.Entry>()
      yield* remoteOps.give({ ...held, bundler, offer }, (entry, refusal) => {
        answers.push(refusal === null ? "has it, perhaps" : `refused: ${refusal.message}`)
        return Deferred.succeed(given, entry)
      })
      return yield* Deferred.await(given)
    })
    /** Time passes; what the journal was told until then. */
    const pass = (duration: Duration.Input, ...expected: ReadonlyArray<string>) =>
      Effect.map(Time.adjust(duration), () => expect(told).toEqual(expected))
    /** So many blocks come, and all of them are looked at. */
    const come = (blocks: number) =>
      Effect.suspend(() => {
        chain.mine(blocks)
        return Time.adjust(round)
      })
    /** The same; what the journal was told until then. */
    const mine = (blocks: number, ...expected: ReadonlyArray<string>) =>
      Effect.map(come(blocks), () => expect(told).toEqual(expected))
    return { answers, chain, come, mine, offers, outage, pass, remoteOps, taken, told, watch, woken }
  })

const recorded = "recorded: true"
const forGood = "recorded for good: true"
const back = ["reverted", "reopened"]

describe("an op at a remote bundler", () => {
  test("of any nonce key is given up when the EntryPoint has used its sequence, and not before", function* () {
    const nonce = Nonce.make(16n, 2n)
    const { chain, mine, pass, watch } = yield* world({ nonce })
    chain.say(nonce)
    yield* watch
    yield* mine(5)
    yield* pass("10 minutes")
    chain.say(nonce + 1n)
    yield* mine(1)
    yield* pass("10 minutes", "revoked")
  })

  test("is not given up by the logs of a node that has not the block in which its nonce is used", function* () {
    const nonce = Nonce.make(16n, 2n)
    const { chain, mine, pass, watch } = yield* world({ nonce })
    yield* watch
    yield* mine(5)
    chain.fallBehindWithLogs(40)
    chain.land(hash, 1n)
    chain.say(nonce + 1n)
    yield* mine(30)
    yield* pass("10 minutes")
    chain.fallBehindWithLogs(0)
    yield* pass("10 minutes", forGood)
  })

  test("is recorded once it is in a block, and for good at settled depth", function* () {
    const { chain, mine, pass, watch, woken } = yield* world()
    yield* watch
    yield* mine(5)
    chain.land(hash, 1n)
    yield* pass(round, recorded)
    expect(woken).toEqual(["r", Make.space(1).authority])
    yield* mine(1, recorded)
    yield* mine(1, recorded, "finalised")
  })

  for (const [when, options] of [
    ["is refused", { answer: refusal("validation") }],
    ["was refused before the process started", { refused: true }]
  ] as const)
    test(`that ${when} is offered to nobody, watched, and given up when it can land no more`, function* () {
      const { come, mine, offers, pass, watch, woken } = yield* world({ ...options, validUntil: 400 })
      yield* watch
      yield* mine(10)
      yield* pass("10 minutes")
      yield* come(60)
      yield* pass("1 minute", "revoked")
      expect(offers).toEqual([])
      expect(woken).toContain("r")
    })

  test("that is refused, or of which the journal could not be told, is recorded when it lands", function* () {
    const refused = yield* world({ answer: refusal("validation"), validUntil: 10_000 })
    yield* refused.watch
    yield* refused.mine(5)
    refused.chain.land(hash, 1n)
    yield* refused.pass(round, recorded)
    const { chain, mine, outage, pass, watch } = yield* world()
    outage.left = 2
    chain.land(hash, 1n, 2n)
    yield* watch
    yield* mine(60)
    yield* pass(round, forGood)
  })

  test("is watched no more here once another process has its lane", function* () {
    const { chain, mine, outage, pass, remoteOps, watch } = yield* world()
    Object.assign(outage, { left: 1, isFenced: true })
    const { submission } = yield* watch
    yield* mine(5)
    chain.land(hash, 1n)
    yield* pass("1 minute")
    expect(remoteOps.isWatched(submission)).toBe(false)
  })

  test("is not recorded before it has its confirmations", function* () {
    const { chain, mine, pass, watch } = yield* world({ confirmations: 2 })
    yield* watch
    yield* mine(5)
    chain.land(hash, 1n)
    yield* pass(round)
    yield* mine(1, recorded)
  })

  test("is found in a block that was looked at before: a node behind a balancer showed it late", function* () {
    const { chain, mine, pass, watch } = yield* world()
    yield* watch
    chain.land(hash, 1n, 22n)
    chain.hide(true)
    yield* mine(30)
    chain.hide(false)
    yield* pass(round, forGood)
  })

  test("is looked for from its first block on at the node that took the place of a silent one", function* () {
    const { chain, mine, pass, remoteOps, watch } = yield* world()
    const entry = yield* watch
    yield* mine(5)
    chain.fallSilent(true)
    const present = Landings.makeChain()
    present.mine(6)
    present.land(hash, 1n, 2n)
    yield* pass("1 minute")
    yield* remoteOps.resume({ ...entry, chain: present.client })
    yield* pass(round, forGood)
    expect(remoteOps.isWatched(entry.submission)).toBe(false)
  })

  test("is taken for gone when two looks in a row, and no block and no receipt for 15 seconds, show it", function* () {
    const { chain, mine, pass, watch } = yield* world()
    yield* watch
    yield* mine(5)
    chain.land(hash, 1n)
    yield* pass(round, recorded)
    chain.hide(true)
    yield* mine(1, recorded)
    chain.hide(false)
    yield* mine(1, recorded, "finalised")
    const lagging = yield* world()
    yield* lagging.watch
    yield* lagging.mine(5)
    lagging.chain.land(hash, 1n)
    yield* lagging.pass(round, recorded)
    lagging.chain.fallBehind(2)
    yield* lagging.pass("14 seconds", recorded)
    lagging.chain.fallBehind(0)
    yield* lagging.pass("1 minute", recorded)
    lagging.chain.fallBehind(2)
    yield* lagging.pass("17 seconds", recorded, ...back)
  })

  test("is on its way again when two looks in a row do not show it, and is recorded anew", function* () {
    const { chain, come, mine, offers, pass, watch, woken } = yield* world()
    yield* watch
    yield* mine(5)
    yield* pass("3 minutes")
    chain.land(hash, 1n)
    yield* pass(round, recorded)
    const before = offers.length
    chain.undo()
    yield* come(1)
    yield* pass(round, recorded, ...back)
    expect(woken.slice(2)).toEqual(["r", Make.space(1).authority])
    // However rarely it was offered before.
    yield* pass(round, recorded, ...back)
    expect(offers.length).toBe(before + 1)
    chain.land(hash, 1n)
    yield* mine(2, recorded, ...back, forGood)
  })

  test("is not recorded from what a bundler said of a block that a reorganisation has replaced", function* () {
    for (const keepsReceipt of [false, true]) {
      const { chain, come, mine, pass, watch } = yield* world({ confirmations: 3, bundled: true })
      const entry = yield* watch
      yield* mine(5)
      chain.land(hash, 1n)
      chain.refuseLogs(true)
      yield* pass("30 seconds")
      expect(entry.hint).toBe(Landings.txHashOf(hash))
      chain.undo(keepsReceipt)
      yield* mine(4)
      yield* pass("1 minute")
      if (keepsReceipt) continue
      chain.land(hash, 1n)
      yield* come(3)
      yield* pass("2 minutes", forGood)
    }
  })

  test("is offered again, as it was signed, to a bundler that has lost it", function* () {
    const { mine, offers, pass, taken, watch } = yield* world()
    yield* watch
    yield* mine(5)
    expect(offers).toEqual([])
    yield* pass("30 seconds")
    expect(taken).toEqual([hash])
    expect([...new Set(offers)]).toEqual([hash])
    const silent = yield* world({ hangs: true })
    yield* silent.watch
    yield* silent.mine(5)
    yield* silent.pass("3 minutes")
    expect(silent.offers).toEqual([hash])
  })

  test("comes back once its time is over at settled depth, and not a block before", function* () {
    const { mine, offers, pass, remoteOps, watch } = yield* world({ validUntil: 600 })
    const { submission } = yield* watch
    // The settled block is two below the latest: 600 seconds are block 60.
    yield* mine(62)
    yield* pass("3 minutes")
    expect(offers).toEqual([])
    yield* mine(1, "revoked")
    expect(remoteOps.isWatched(submission)).toBe(false)
  })

  test("does not come back when a last look at all blocks finds it: it would be done twice", function* () {
    const { chain, come, mine, pass, watch } = yield* world({ validUntil: 600 })
    yield* watch
    chain.land(hash, 1n, 5n)
    chain.hide(true)
    yield* mine(40)
    chain.hide(false)
    yield* come(23)
    yield* pass("2 minutes", forGood)
  })

  for (const [what, options, change] of [
    ["its nonce is used", {}, (chain: Chain) => chain.say(1n, 19n)],
    [
      "its wallet has another configuration than its nonce names",
      { nonce: Nonce.make(1n << 128n, 0n) },
      (chain: Chain) => {
        chain.configure(1n, 0n)
        chain.configure(2n, 19n)
      }
    ],
    [
      "the wallet that it deploys exists",
      { initCode: Hex.unsafe("0x01") },
      (chain: Chain) => chain.configure(0n, 19n)
    ]
  ] as const)
    test(`is given up when ${what} in a block that nothing takes back, and not before`, function* () {
      const { chain, come, mine, pass, watch } = yield* world(options)
      change(chain)
      yield* watch
      yield* mine(20)
      yield* pass("3 minutes")
      yield* come(1)
      yield* pass("1 minute", "revoked")
    })

  test("is not offered again before each block since it was handed over was looked at", function* () {
    const { mine, offers, pass, watch } = yield* world()
    yield* watch
    yield* mine(1_024 * 20)
    yield* pass("15 seconds")
    expect(offers).toEqual([])
    yield* pass("15 seconds")
    expect(offers).not.toEqual([])
  })

  test("does not come back when it landed before the block at which it was handed over", function* () {
    const { chain, come, pass, watch } = yield* world({ since: 30n })
    yield* watch
    chain.land(hash, 1n, 25n)
    chain.say(1n)
    yield* come(40)
    yield* pass("1 minute", forGood)
  })

  test("that a reorganisation took back is found in a block far below the one that it was in", function* () {
    const { chain, come, mine, pass, watch } = yield* world()
    yield* watch
    yield* mine(40)
    chain.land(hash, 1n)
    yield* pass(round, recorded)
    chain.undo()
    chain.land(hash, 1n, 5n)
    chain.hide(true)
    yield* come(1)
    yield* pass(round, recorded, ...back)
    chain.hide(false)
    yield* pass(round, recorded, ...back, forGood)
  })

  test("stays watched when what was watched under the same hash before is forgotten", function* () {
    const { remoteOps, watch } = yield* world({ answer: refusal("unreachable") })
    const before = yield* watch
    const { submission } = yield* watch
    yield* remoteOps.forget(before)
    expect(remoteOps.isWatched(submission)).toBe(true)
  })
})

describe("an op whose landing was found", () => {
  const version = Make.word(0x0c)

  test("is watched under the hash that landed, and for good at settled depth", function* () {
    const { chain, mine, offers, pass, remoteOps, watch } = yield* world({ found: version })
    yield* mine(5)
    chain.land(version, 1n)
    const { submission } = yield* watch
    yield* pass(round)
    yield* mine(2, "finalised")
    expect([remoteOps.isWatched(submission), offers]).toEqual([false, []])
  })

  test("is its request's again when two looks in a row do not show it, and watched no more", function* () {
    const { chain, mine, offers, pass, remoteOps, watch } = yield* world({ found: version })
    yield* mine(5)
    chain.land(version, 1n)
    const { submission } = yield* watch
    yield* mine(1)
    chain.undo()
    yield* mine(1)
    yield* pass("10 minutes", ...back)
    expect([remoteOps.isWatched(submission), offers]).toEqual([false, []])
  })

  test("that a bundler has is watched under its own hash once a reorganisation took the other version", function* () {
    const { chain, mine, pass, watch } = yield* world({ found: version, handedOver: true })
    yield* mine(5)
    chain.land(version, 1n)
    yield* watch
    yield* mine(1)
    chain.undo()
    yield* mine(1)
    yield* pass(round, ...back)
    chain.land(hash, 1n)
    yield* pass(round, ...back, recorded)
    yield* mine(1, ...back, recorded)
    yield* pass("20 seconds", ...back, recorded)
    yield* mine(1, ...back, recorded, "finalised")
  })

  test("is its request's again when its transaction was mined anew, and the op is not in it", function* () {
    const { chain, come, mine, pass, watch } = yield* world({ found: version })
    yield* mine(5)
    chain.land(version, 1n)
    chain.strip()
    yield* watch
    yield* come(10)
    yield* pass("20 seconds", ...back)
  })
})

describe("ops at remote bundlers", () => {
  for (const [what, fails] of [
    ["a look at ops at remote bundlers failed", (chain: Chain, now: boolean) => chain.fallSilent(now)],
    ["the node does not tell what became of ops", (chain: Chain, now: boolean) => chain.refuseLogs(now)]
  ] as const)
    test(`tell seven times of an hour in which ${what}`, function* () {
      const lines = yield* Log.listen
      const { chain, mine, pass, watch } = yield* world()
      yield* watch
      yield* mine(5)
      fails(chain, true)
      yield* pass("1 hour")
      fails(chain, false)
      yield* mine(1)
      expect(Log.told(lines, what)).toEqual(Log.ofAnHour("WARN"))
    })

  test("tell seven times of an hour in which the journal takes nothing", function* () {
    const lines = yield* Log.listen
    const { chain, come, mine, outage, pass, watch } = yield* world()
    yield* watch
    yield* mine(5)
    outage.left = Number.POSITIVE_INFINITY
    chain.land(hash, 1n)
    yield* pass("1 hour")
    outage.left = 0
    yield* come(1)
    expect(Log.told(lines, "a look at an op at a remote bundler failed")).toEqual(Log.ofAnHour("WARN"))
  })
})

describe("an op that a bundler is given", () => {
  test("is refused where the bundler says so for good, or for now and the op has no end", function* () {
    for (const [answer, validUntil, told] of [
      [refusal("validation"), 77, "refused: AA00"],
      [refusal("validation", "AA24 signature error"), 77, "refused: AA24 signature error"],
      [refusal("validation", "AA100"), 77, "refused: AA100"],
      [refusal("validation", "AA25 invalid account nonce"), 0, "refused: AA25 invalid account nonce"],
      [refusal("validation", "AA25 invalid account nonce"), 77, "has it, perhaps"],
      [refusal("validation", "AA10 sender already constructed"), 77, "has it, perhaps"],
      [refusal("throttled"), 77, "has it, perhaps"],
      [refusal("rateLimited"), 77, "has it, perhaps"],
      [refusal("unreachable"), 77, "has it, perhaps"],
      [refusal("notAnRpc"), 0, "has it, perhaps"],
      [refusal("other"), 0, "has it, perhaps"]
    ] as const) {
      const one = yield* world({ answer, validUntil })
      const { isRefused } = yield* one.watch
      expect([one.answers, isRefused]).toEqual([[told], told.startsWith("refused")])
    }
  })

  test("is given again soon where nobody knows", function* () {
    const { chain, offers, watch } = yield* world({ answer: refusal("unreachable"), validUntil: 10_000 })
    yield* watch
    chain.mine(1)
    yield* Time.adjust("2 seconds")
    expect(new Set(offers)).toEqual(new Set([hash]))
  })
})

it("the last second at which an op may land is the earlier one of its signature's and its sponsor's, and no bound is later than any", () => {
  for (const version of EntryPoint.versions)
    for (const [own, sponsors, last] of [
      [70, 80, 70],
      [80, 70, 70],
      [0, 70, 70],
      [70, 0, 70],
      [0, 0, 0]
    ] as const) {
      const signature = Conditions.encodeSignature(
        { ...Conditions.none, validUntil: own },
        Hex.unsafe("0x01")
      )
      const sponsored = {
        ...Ops.plain,
        signature: Sponsorship.append(signature, Sponsorship.dummy),
        paymasterAndData: Sponsorship.paymasterData(version, {
          paymaster: Make.address(0x5a),
          validUntil: sponsors,
          validAfter: 0,
          limits: { verificationGasLimit: 1n, postOpGasLimit: 1n },
          unbound: true
        })
      }
      expect(RemoteInclusions.validUntilOf(version, sponsored), `${version} ${own} ${sponsors}`).toBe(last)
      expect(RemoteInclusions.validUntilOf(version, { ...Ops.plain, signature })).toBe(own)
    }
})
