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

/** An op at a bundler that neither has it nor answers, on a chain with ten-second blocks; with the journal's records. */
const world = (
  options: {
    readonly validUntil?: number
    readonly confirmations?: number
    readonly nonce?: bigint
    readonly found?: Hex.Bytes32
    /** The found inclusion belongs to an op that the bundler has. */
    readonly handedOver?: boolean
    /** The bundler's reply to the first offer; `before`: an earlier process made it. */
    readonly answer?: "before" | BundlerRpcError
    /** The bundler always names the op's transaction. */
    readonly bundled?: boolean
    readonly initCode?: Hex.Hex
    /** Block of the hand-over. */
    readonly since?: bigint
    /** The bundler never replies to an offer. */
    readonly hangs?: boolean
    /** It refused the op before the process started. */
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
    /** Number of next journal writes that fail. */
    const outage = { left: 0, isFenced: false }
    const tell = (what: string) =>
      Effect.sync((): ReadonlyArray<string> => {
        told.push(what)
        return ["r"]
      })
    const unlessAway = (what: string) =>
      Effect.suspend(() =>
        outage.left-- > 0
          ? Effect.fail(
              new JournalError({ message: "away", ...(outage.isFenced && { isFenced: true as const }) })
            )
          : tell(what)
      )
    const remoteOpJournal = {
      recordInclusions: (_: unknown, __: unknown, [outcome]: ReadonlyArray<FoundInclusion>) =>
        unlessAway(`recorded${outcome?.final === true ? " finally" : ""}: ${outcome?.success}`),
      recordTaken: (_: unknown, __: unknown, hashes: ReadonlyArray<Hex.Bytes32>) =>
        Effect.sync(() => void taken.push(...hashes)),
      finaliseInclusions: () => tell("finalised"),
      revertInclusions: () => unlessAway("reverted"),
      takeBack: () => tell("revoked")
    } as unknown as Parameters<typeof RemoteOps.make>[0]["remoteOpJournal"]
    const offers: Array<Hex.Bytes32> = []
    const remoteOps = yield* RemoteOps.make({
      remoteOpJournal,
      listener: {
        affected: ({ signer }, requestIds) => Effect.sync(() => void woken.push(...requestIds, signer)),
        reopened: Effect.asVoid(tell("reopened")),
        notifyEvents: Effect.void
      }
    })
    const space = { ...Make.space(1), entryPoint: Landings.entryPoint }
    /** Results of the first offer. */
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
      const given = yield* Deferred.make<RemoteInclusions.AwaitedOp>()
      yield* remoteOps.give({ ...held, bundler, offer }, (entry, refusal) => {
        answers.push(refusal === null ? "has it, perhaps" : `refused: ${refusal.message}`)
        return Deferred.succeed(given, entry)
      })
      return yield* Deferred.await(given)
    })
    /** Advances time; compares the journal's records until then. */
    const pass = (duration: Duration.Input, ...expected: ReadonlyArray<string>) =>
      Effect.map(Time.adjust(duration), () => expect(told).toEqual(expected))
    /** Adds this many blocks, and waits until all are read. */
    const come = (blocks: number) =>
      Effect.suspend(() => {
        chain.mine(blocks)
        return Time.adjust(round)
      })
    /** Likewise; compares the journal's records until then. */
    const mine = (blocks: number, ...expected: ReadonlyArray<string>) =>
      Effect.map(come(blocks), () => expect(told).toEqual(expected))
    return { answers, chain, come, mine, offers, outage, pass, remoteOps, taken, told, watch, woken }
  })

const recorded = "recorded: true"
const forGood = "recorded finally: true"
const back = ["reverted", "reopened"]

describe("an op at a remote bundler", () => {
  test("is abandoned once the EntryPoint has used its sequence, for any nonce key, and not earlier", function* () {
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

  test("is not abandoned by the logs of a node that lacks the block where its nonce was used", function* () {
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

  test("is recorded once it is in a block, and finalised at settled depth", function* () {
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
    test(`is not offered again, stays watched, and is abandoned once it can no longer land, if it ${when}`, function* () {
      const { come, mine, offers, pass, watch, woken } = yield* world({ ...options, validUntil: 400 })
      yield* watch
      yield* mine(10)
      yield* pass("10 minutes")
      yield* come(60)
      yield* pass("1 minute", "revoked")
      expect(offers).toEqual([])
      expect(woken).toContain("r")
    })

  test("is recorded when it lands after a refusal, or after failed journal writes", function* () {
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

  test("is no longer watched here once another process has its lane", function* () {
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

  test("is found in a block already read, which a node behind a balancer showed late", function* () {
    const { chain, mine, pass, watch } = yield* world()
    yield* watch
    chain.land(hash, 1n, 22n)
    chain.hide(true)
    yield* mine(30)
    chain.hide(false)
    yield* pass(round, forGood)
  })

  test("is searched for from its first block on at the node that replaced a silent node", function* () {
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

  test("counts as gone only after two polls in a row, and 15 seconds without block and receipt", function* () {
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

  test("is in flight again when two polls in a row miss it, and is recorded again", function* () {
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
    // However long its offer delay had become.
    yield* pass(round, recorded, ...back)
    expect(offers.length).toBe(before + 1)
    chain.land(hash, 1n)
    yield* mine(2, recorded, ...back, forGood)
  })

  test("is not recorded from a bundler's report of a replaced block", function* () {
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

  test("is offered again, as signed, to a bundler that lost it", function* () {
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

  test("returns once its time is over at settled depth, and not a block earlier", function* () {
    const { mine, offers, pass, remoteOps, watch } = yield* world({ validUntil: 600 })
    const { submission } = yield* watch
    // The settled block is two below the latest: 600 seconds are block 60.
    yield* mine(62)
    yield* pass("3 minutes")
    expect(offers).toEqual([])
    yield* mine(1, "revoked")
    expect(remoteOps.isWatched(submission)).toBe(false)
  })

  test("does not return when a final read of all blocks finds it, since it would run twice", function* () {
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
      "its wallet's configuration differs from its nonce's",
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
    test(`is abandoned when ${what} at settled depth, and not earlier`, function* () {
      const { chain, come, mine, pass, watch } = yield* world(options)
      change(chain)
      yield* watch
      yield* mine(20)
      yield* pass("3 minutes")
      yield* come(1)
      yield* pass("1 minute", "revoked")
    })

  test("is not offered again before every block since its hand-over was read", function* () {
    const { mine, offers, pass, watch } = yield* world()
    yield* watch
    yield* mine(1_024 * 20)
    yield* pass("15 seconds")
    expect(offers).toEqual([])
    yield* pass("15 seconds")
    expect(offers).not.toEqual([])
  })

  test("does not return when it landed before the block of its hand-over", function* () {
    const { chain, come, pass, watch } = yield* world({ since: 30n })
    yield* watch
    chain.land(hash, 1n, 25n)
    chain.say(1n)
    yield* come(40)
    yield* pass("1 minute", forGood)
  })

  test("is found in a far lower block after a reorganisation undid it", function* () {
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

  test("stays watched when an earlier watch under the same hash is forgotten", function* () {
    const { remoteOps, watch } = yield* world({ answer: refusal("unreachable") })
    const before = yield* watch
    const { submission } = yield* watch
    yield* remoteOps.forget(before)
    expect(remoteOps.isWatched(submission)).toBe(true)
  })
})

describe("an op whose inclusion was found", () => {
  const version = Make.word(0x0c)

  test("is watched under the landed hash, and finalised at settled depth", function* () {
    const { chain, mine, offers, pass, remoteOps, watch } = yield* world({ found: version })
    yield* mine(5)
    chain.land(version, 1n)
    const { submission } = yield* watch
    yield* pass(round)
    yield* mine(2, "finalised")
    expect([remoteOps.isWatched(submission), offers]).toEqual([false, []])
  })

  test("returns to its request when two polls in a row miss it, and is no longer watched", function* () {
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

  for (const handedOver of [false, true])
    test(`returns to its request after a journal outage, ${handedOver ? "at" : "without"} a bundler`, function* () {
      const { chain, mine, outage, pass, watch } = yield* world({ found: version, handedOver })
      yield* mine(5)
      chain.land(version, 1n)
      yield* watch
      yield* mine(1)
      chain.undo()
      outage.left = 2
      yield* mine(1)
      yield* pass("1 minute", ...back)
    })

  test("is watched under its own hash again if a reorganisation removed the other version and a bundler has it", function* () {
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

  test("returns to its request when its transaction was mined again without the op", function* () {
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
    ["poll of remote ops failed", (chain: Chain, now: boolean) => chain.fallSilent(now)],
    ["node does not report outcomes of remote ops", (chain: Chain, now: boolean) => chain.refuseLogs(now)]
  ] as const)
    test(`warn seven times in an hour in which ${what}`, function* () {
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

  test("warn seven times in an hour in which the journal fails", function* () {
    const lines = yield* Log.listen
    const { chain, come, mine, outage, pass, watch } = yield* world()
    yield* watch
    yield* mine(5)
    outage.left = Number.POSITIVE_INFINITY
    chain.land(hash, 1n)
    yield* pass("1 hour")
    outage.left = 0
    yield* come(1)
    expect(Log.told(lines, "poll of a remote op failed")).toEqual(Log.ofAnHour("WARN"))
  })
})

describe("an op given to a bundler", () => {
  test("is refused if the bundler refuses it permanently, or for now without an end of validity", function* () {
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

  test("is given again soon if the outcome is unknown", function* () {
    const { chain, offers, watch } = yield* world({ answer: refusal("unreachable"), validUntil: 10_000 })
    yield* watch
    chain.mine(1)
    yield* Time.adjust("2 seconds")
    expect(new Set(offers)).toEqual(new Set([hash]))
  })
})

it("an op may land until the earlier end of its signature and its sponsor's, and a missing end is the latest", () => {
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
