import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as RemoteOps from "../../../../src/application/lanes/remote/RemoteOps.js"
import { JournalError } from "../../../../src/application/ports/journal/JournalError.js"
import type { FoundInclusion } from "../../../../src/application/ports/journal/RemoteSubmissions.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import * as Nonce from "../../../../src/domain/erc4337/Nonce.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"
import * as Log from "../../../support/Log.js"
import * as Landings from "../../../support/lanes/Landings.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import * as Ops from "../../../support/lanes/Ops.js"

const round = "1 second"
const hash = Make.word(0x0b)

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
    readonly answer?: "before" | "taken" | "refused"
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
      answer = "before",
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
    const outage = { left: 0 }
    const tell = (what: string) =>
      Effect.sync((): ReadonlyArray<string> => {
        told.push(what)
        return ["r"]
      })
    const remoteOpJournal = {
      recordInclusions: (_: unknown, __: unknown, [outcome]: ReadonlyArray<FoundInclusion>) =>
        outage.left-- > 0
          ? Effect.fail(new JournalError({ message: "away" }))
          : tell(`recorded${outcome?.final === true ? " for good" : ""}: ${outcome?.success}`),
      recordTaken: (_: unknown, __: unknown, hashes: ReadonlyArray<Hex.Bytes32>) =>
        Effect.sync(() => void taken.push(...hashes)),
      finaliseInclusions: () => tell("finalised"),
      revertInclusions: () => tell("reverted"),
      revokeRemote: () => tell("revoked")
    } as unknown as Parameters<typeof RemoteOps.make>[0]["remoteOpJournal"]
    const offers: Array<Hex.Bytes32> = []
    let looked = 0
    const client: typeof chain.client = {
      ...chain.client,
      block: (number) => {
        looked += 1
        return chain.client.block(number)
      }
    }
    const remoteOps = yield* RemoteOps.make({
      remoteOpJournal,
      wakeUps: {
        signal: ({ signer }) => Effect.sync(() => void woken.push(signer)),
        notify: (requestIds) => Effect.sync(() => void woken.push(...requestIds))
      },
      reopened: Effect.asVoid(tell("reopened"))
    })
    const space = { ...Make.space(1), entryPoint: Landings.entryPoint }
    const watch = Effect.gen(function* () {
      const entry = yield* remoteOps.watch({
        chain: client,
        profile: NetworkProfile.make({ chainId: Make.chainId, confirmations, settledDepth: 3 }),
        bundler: !handedOver
          ? null
          : {
              origin: "http://bundler",
              chainId: Effect.succeed(Make.chainId),
              entryPoints: Effect.succeed([Landings.entryPoint]),
              preVerificationGas: () => Effect.die(new Error("not asked for")),
              find: () => Effect.succeed(bundled ? { txHash: Landings.txHashOf(hash) } : null),
              send: (_, userOpHash) =>
                Effect.zipRight(
                  Effect.sync(() => void offers.push(userOpHash)),
                  hangs ? Effect.never : Effect.void
                )
            },
        offer: !handedOver
          ? null
          : {
              version: "v0.7",
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
          node: { rpc: Monitor.callers.rpc, trust: "caller" },
          since,
          signed: handedOver ? Hex.empty : null,
          isRefused: refused,
          includedIn: found === undefined ? null : Landings.txHashOf(found),
          landedAs: found ?? hash
        }
      })
      yield* remoteOps.offered(entry, answer)
      return entry
    })
    /** So many blocks come, and all of them are looked at. */
    const mine = (blocks: number) =>
      Effect.suspend(() => {
        chain.mine(blocks)
        return TestClock.adjust(round)
      })
    return { chain, looks: () => looked, mine, offers, outage, remoteOps, taken, told, watch, woken }
  })

const mineFirst = (chain: ReturnType<typeof Landings.makeChain>) => Effect.sync(() => chain.mine(5))

describe("an op at a remote bundler", () => {
  it.scoped("of any nonce key is given up when the EntryPoint has used its sequence, and not before", () =>
    Effect.gen(function* () {
      const nonce = Nonce.make(16n, 2n)
      const { chain, mine, told, watch } = yield* world({ nonce })
      chain.say(nonce)
      yield* watch
      yield* mine(5)
      yield* TestClock.adjust("10 minutes")
      expect(told).toEqual([])
      chain.say(nonce + 1n)
      yield* mine(1)
      yield* TestClock.adjust("10 minutes")
      expect(told).toEqual(["revoked"])
    })
  )

  it.scoped("is not given up by the logs of a node that has not the block in which its nonce is used", () =>
    Effect.gen(function* () {
      const nonce = Nonce.make(16n, 2n)
      const { chain, mine, told, watch } = yield* world({ nonce })
      chain.say(nonce)
      yield* watch
      yield* mine(5)
      chain.fallBehindWithLogs(40)
      chain.land(hash, 1n)
      chain.say(nonce + 1n)
      yield* mine(30)
      yield* TestClock.adjust("10 minutes")
      expect(told).toEqual([])
      chain.fallBehindWithLogs(0)
      yield* TestClock.adjust("10 minutes")
      expect(told).toEqual(["recorded for good: true"])
    })
  )

  it.scoped("is recorded once it is in a block, and for good at settled depth", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world()
      yield* watch
      yield* mine(5)
      chain.land(hash, 1n)
      yield* TestClock.adjust(round)
      expect(told).toEqual(["recorded: true"])
      yield* mine(1)
      expect(told).toEqual(["recorded: true"])
      yield* mine(1)
      expect(told).toEqual(["recorded: true", "finalised"])
    })
  )

  for (const [when, options] of [
    ["is refused", { answer: "refused" }],
    ["was refused before the process started", { refused: true }]
  ] as const)
    it.scoped(`that ${when} is offered to nobody, watched, and given up when it can land no more`, () =>
      Effect.gen(function* () {
        const validUntil = 400
        const { chain, mine, offers, told, watch, woken } = yield* world({ ...options, validUntil })
        yield* watch
        yield* mine(10)
        yield* TestClock.adjust("10 minutes")
        expect({ offers, told }).toEqual({ offers: [], told: [] })
        yield* mine(60)
        yield* TestClock.adjust("1 minute")
        expect({ offers, told }).toEqual({ offers: [], told: ["revoked"] })
        expect(woken).toContain("r")
        expect((yield* chain.client.block("latest"))?.timestamp).toBeGreaterThan(validUntil)
      })
    )

  it.scoped("that is refused and lands all the same is recorded", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world({ answer: "refused", validUntil: 10_000 })
      yield* watch
      yield* mine(5)
      chain.land(hash, 1n)
      yield* TestClock.adjust(round)
      expect(told).toEqual(["recorded: true"])
    })
  )

  it.scoped(
    "that was just taken is looked for after a sixteenth of the interval, and whenever its age has doubled",
    () =>
      Effect.gen(function* () {
        for (const [millis, landsAfter] of [
          [63, 62],
          [125, 124],
          [250, 249],
          [500, 499]
        ] as const) {
          const { chain, told, watch } = yield* world({ answer: "taken" })
          yield* mineFirst(chain)
          yield* watch
          yield* TestClock.adjust(landsAfter)
          chain.land(hash, 1n)
          expect(told).toEqual([])
          yield* TestClock.adjust(millis - landsAfter)
          expect(told, `after ${millis} ms`).toEqual(["recorded: true"])
        }
      })
  )

  it.scoped("that a chain showed late is looked for at regular looks only, as the others there", () =>
    Effect.gen(function* () {
      const { chain, looks, mine, remoteOps, told, watch } = yield* world({ answer: "taken" })
      yield* mineFirst(chain)
      const first = yield* watch
      yield* TestClock.adjust(1_600)
      chain.land(hash, 1n)
      yield* TestClock.adjust("1 second")
      yield* mine(5)
      expect(told).toEqual(["recorded: true", "finalised"])
      expect(remoteOps.isWatched(first.submission)).toBe(false)
      yield* watch
      const before = looks()
      yield* TestClock.adjust(999)
      expect(looks() - before).toBeLessThanOrEqual(1)
    })
  )

  it.scoped("is not recorded before it has its confirmations", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world({ confirmations: 2 })
      yield* watch
      yield* mine(5)
      chain.land(hash, 1n)
      yield* TestClock.adjust(round)
      expect(told).toEqual([])
      yield* mine(1)
      expect(told).toEqual(["recorded: true"])
    })
  )

  it.scoped("is found in a block that was looked at before: a node behind a balancer showed it late", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world()
      yield* watch
      chain.land(hash, 1n, 22n)
      chain.hide(true)
      yield* mine(30)
      expect(told).toEqual([])
      chain.hide(false)
      yield* TestClock.adjust(round)
      expect(told).toEqual(["recorded for good: true"])
    })
  )

  it.scoped("is looked for from its first block on at the node that took the place of a silent one", () =>
    Effect.gen(function* () {
      const { chain, mine, remoteOps, told, watch } = yield* world()
      const { bundler, profile, submission } = yield* watch
      yield* mine(5)
      chain.fallSilent(true)
      const present = Landings.makeChain()
      present.mine(6)
      present.land(hash, 1n, 2n)
      yield* TestClock.adjust("1 minute")
      expect(told).toEqual([])
      yield* remoteOps.renew({ bundler, chain: present.client, profile, submission })
      yield* TestClock.adjust(round)
      expect(told).toEqual(["recorded for good: true"])
      expect(remoteOps.isWatched(submission)).toBe(false)
    })
  )

  it.scoped("is not taken for gone because one look did not show it", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world()
      yield* watch
      yield* mine(5)
      chain.land(hash, 1n)
      yield* TestClock.adjust(round)
      chain.hide(true)
      yield* mine(1)
      chain.hide(false)
      yield* mine(1)
      expect(told).toEqual(["recorded: true", "finalised"])
    })
  )

  it.scoped("is not taken for gone by a node that is 14 seconds behind", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world()
      yield* watch
      yield* mine(5)
      chain.land(hash, 1n)
      yield* TestClock.adjust(round)
      chain.fallBehind(2)
      yield* TestClock.adjust("14 seconds")
      expect(told).toEqual(["recorded: true"])
      chain.fallBehind(0)
      yield* TestClock.adjust("1 minute")
      yield* mine(2)
      expect(told).toEqual(["recorded: true", "finalised"])
    })
  )

  it.scoped("is taken for gone when no block and no receipt is to be seen for 15 seconds", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world()
      yield* watch
      yield* mine(5)
      chain.land(hash, 1n)
      yield* TestClock.adjust(round)
      chain.fallBehind(2)
      yield* TestClock.adjust("17 seconds")
      expect(told).toEqual(["recorded: true", "reverted", "reopened"])
    })
  )

  it.scoped("is not recorded from what a bundler said of a block that a reorganisation has replaced", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world({ confirmations: 3, bundled: true })
      const entry = yield* watch
      yield* mine(5)
      chain.land(hash, 1n)
      chain.refuseLogs(true)
      yield* TestClock.adjust("30 seconds")
      expect(entry.hint).toBe(Landings.txHashOf(hash))
      chain.undo()
      yield* mine(4)
      yield* TestClock.adjust("1 minute")
      expect(told).toEqual([])
      chain.land(hash, 1n)
      yield* mine(3)
      yield* TestClock.adjust("2 minutes")
      expect(told).toEqual(["recorded for good: true"])
    })
  )

  it.scoped("is on its way again when two looks in a row do not show it, and is recorded anew", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world()
      yield* watch
      yield* mine(5)
      chain.land(hash, 1n)
      yield* TestClock.adjust(round)
      chain.undo()
      yield* mine(1)
      yield* TestClock.adjust(round)
      expect(told).toEqual(["recorded: true", "reverted", "reopened"])
      chain.land(hash, 1n)
      yield* mine(2)
      expect(told).toEqual(["recorded: true", "reverted", "reopened", "recorded for good: true"])
    })
  )

  it.scoped("is told as taken once, when the bundler has said so, and not when nobody knows", () =>
    Effect.gen(function* () {
      const unknown = yield* world()
      yield* unknown.watch
      yield* unknown.mine(3)
      expect(unknown.taken).toEqual([])
      const { mine, taken, watch } = yield* world({ answer: "taken" })
      yield* watch
      yield* mine(1)
      yield* mine(2)
      expect(taken).toEqual([hash])
    })
  )

  it.scoped("is offered again, as it was signed, to a bundler that has lost it", () =>
    Effect.gen(function* () {
      const { mine, offers, taken, told, watch } = yield* world()
      yield* watch
      yield* mine(5)
      expect(offers).toEqual([])
      yield* TestClock.adjust("30 seconds")
      expect(offers.length).toBeGreaterThan(0)
      expect(taken).toEqual([hash])
      expect(new Set(offers)).toEqual(new Set([hash]))
      expect(told).toEqual([])
    })
  )

  it.scoped("comes back once its time is over at settled depth, and not a block before", () =>
    Effect.gen(function* () {
      const { mine, remoteOps, told, watch } = yield* world({ validUntil: 600 })
      const { submission } = yield* watch
      // The settled block is two below the latest: 600 seconds are block 60.
      yield* mine(62)
      yield* TestClock.adjust("2 minutes")
      expect(told).toEqual([])
      yield* mine(1)
      yield* TestClock.adjust("2 minutes")
      expect(told).toEqual(["revoked"])
      expect(remoteOps.isWatched(submission)).toBe(false)
    })
  )

  it.scoped("does not come back when a last look at all blocks finds it: it would be done twice", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world({ validUntil: 600 })
      yield* watch
      chain.land(hash, 1n, 5n)
      chain.hide(true)
      yield* mine(40)
      chain.hide(false)
      yield* mine(23)
      yield* TestClock.adjust("2 minutes")
      expect(told).toEqual(["recorded for good: true"])
    })
  )

  it.scoped("is not given up for a nonce that is used in a block which may still be taken back", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world()
      yield* watch
      yield* mine(20)
      chain.say(1n, 19n)
      yield* TestClock.adjust("3 minutes")
      expect(told).toEqual([])
      yield* mine(1)
      yield* TestClock.adjust("1 minute")
      expect(told).toEqual(["revoked"])
    })
  )

  it.scoped("is given up when its wallet has another configuration than its nonce names, for good", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world({ nonce: Nonce.make(1n << 128n, 0n) })
      chain.configure(1n, 0n)
      yield* watch
      yield* mine(20)
      chain.configure(2n, 19n)
      yield* TestClock.adjust("3 minutes")
      expect(told).toEqual([])
      yield* mine(1)
      yield* TestClock.adjust("1 minute")
      expect(told).toEqual(["revoked"])
    })
  )

  it.scoped("that deploys its wallet is given up when the wallet exists for good", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world({ initCode: Hex.unsafe("0x01") })
      yield* watch
      yield* mine(20)
      chain.configure(0n, 19n)
      yield* TestClock.adjust("3 minutes")
      expect(told).toEqual([])
      yield* mine(1)
      yield* TestClock.adjust("1 minute")
      expect(told).toEqual(["revoked"])
    })
  )

  it.scoped("is given up within a round of the end of its time, however long ago the last question was", () =>
    Effect.gen(function* () {
      const { mine, told, watch } = yield* world({ validUntil: 600 })
      yield* watch
      yield* mine(5)
      yield* TestClock.adjust("3 minutes")
      yield* mine(58)
      expect(told).toEqual(["revoked"])
    })
  )

  it.scoped("is offered to nobody once its time is over, though that is not settled yet", () =>
    Effect.gen(function* () {
      const { mine, offers, told, watch } = yield* world({ validUntil: 600 })
      yield* watch
      yield* mine(61)
      yield* TestClock.adjust("3 minutes")
      expect({ offers, told }).toEqual({ offers: [], told: [] })
    })
  )

  it.scoped("is not offered again before each block since it was handed over was looked at", () =>
    Effect.gen(function* () {
      const { mine, offers, watch } = yield* world()
      yield* watch
      yield* mine(1_024 * 20)
      yield* TestClock.adjust("15 seconds")
      expect(offers).toEqual([])
      yield* TestClock.adjust("15 seconds")
      expect(offers).not.toEqual([])
    })
  )

  it.scoped("is offered once at a time to a bundler that never answers", () =>
    Effect.gen(function* () {
      const { mine, offers, watch } = yield* world({ hangs: true })
      yield* watch
      yield* mine(5)
      yield* TestClock.adjust("3 minutes")
      expect(offers).toEqual([hash])
    })
  )

  it.scoped("does not come back when it landed before the block at which it was handed over", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world({ since: 30n })
      yield* watch
      chain.land(hash, 1n, 25n)
      chain.say(1n)
      yield* mine(40)
      yield* TestClock.adjust("1 minute")
      expect(told).toEqual(["recorded for good: true"])
    })
  )

  it.scoped(
    "is recorded at the next look when the journal was away at the first ones, however deep it is",
    () =>
      Effect.gen(function* () {
        const { chain, mine, outage, told, watch } = yield* world()
        outage.left = 2
        chain.land(hash, 1n, 2n)
        yield* watch
        yield* mine(60)
        expect(told).toEqual([])
        yield* TestClock.adjust(round)
        expect(told).toEqual(["recorded for good: true"])
      })
  )

  it.scoped("wakes its request and its lane when it is recorded and when a reorganisation took it back", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch, woken } = yield* world()
      yield* watch
      yield* mine(5)
      chain.land(hash, 1n)
      yield* TestClock.adjust(round)
      expect(woken).toEqual(["r", Make.space(1).authority])
      chain.undo()
      yield* mine(1)
      yield* TestClock.adjust(round)
      expect(told).toEqual(["recorded: true", "reverted", "reopened"])
      expect(woken).toEqual(["r", Make.space(1).authority, "r", Make.space(1).authority])
    })
  )

  it.scoped("is offered at once when a reorganisation took it back, however rarely it was before", () =>
    Effect.gen(function* () {
      const { chain, mine, offers, told, watch } = yield* world()
      yield* watch
      yield* mine(5)
      yield* TestClock.adjust("3 minutes")
      chain.land(hash, 1n)
      yield* TestClock.adjust(round)
      const before = offers.length
      chain.undo()
      yield* mine(1)
      yield* TestClock.adjust(round)
      expect(told).toEqual(["recorded: true", "reverted", "reopened"])
      yield* TestClock.adjust(round)
      expect(offers.length).toBe(before + 1)
    })
  )

  it.scoped("that a reorganisation took back is found in a block far below the one that it was in", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world()
      yield* watch
      yield* mine(40)
      chain.land(hash, 1n)
      yield* TestClock.adjust(round)
      chain.undo()
      chain.land(hash, 1n, 5n)
      chain.hide(true)
      yield* mine(1)
      yield* TestClock.adjust(round)
      chain.hide(false)
      yield* TestClock.adjust(round)
      expect(told).toEqual(["recorded: true", "reverted", "reopened", "recorded for good: true"])
    })
  )

  it.scoped("is the journal's once, however it became known: a landing tells that a bundler took it", () =>
    Effect.gen(function* () {
      const { chain, mine, taken, told, watch } = yield* world({ answer: "taken" })
      chain.land(hash, 1n, 1n)
      yield* watch
      yield* mine(1)
      expect(told).toEqual(["recorded: true"])
      expect(taken).toEqual([])
    })
  )

  it.scoped("stays watched when what was watched under the same hash before is forgotten", () =>
    Effect.gen(function* () {
      const { remoteOps, watch } = yield* world()
      const before = yield* watch
      const { submission } = yield* watch
      yield* remoteOps.forget(before)
      expect(remoteOps.isWatched(submission)).toBe(true)
    })
  )
})

describe("an op whose landing was found", () => {
  const version = Make.word(0x0c)

  it.scoped("is watched under the hash that landed, and for good at settled depth", () =>
    Effect.gen(function* () {
      const { chain, mine, offers, remoteOps, told, watch } = yield* world({ found: version })
      yield* mine(5)
      chain.land(version, 1n)
      const { submission } = yield* watch
      yield* TestClock.adjust(round)
      expect(told).toEqual([])
      yield* mine(2)
      expect(told).toEqual(["finalised"])
      expect(remoteOps.isWatched(submission)).toBe(false)
      expect(offers).toEqual([])
    })
  )

  it.scoped("is its request's again when two looks in a row do not show it, and watched no more", () =>
    Effect.gen(function* () {
      const { chain, mine, offers, remoteOps, told, watch } = yield* world({ found: version })
      yield* mine(5)
      chain.land(version, 1n)
      const { submission } = yield* watch
      yield* mine(1)
      chain.undo()
      yield* mine(1)
      expect(told).toEqual([])
      yield* TestClock.adjust(round)
      expect(told).toEqual(["reverted", "reopened"])
      expect(remoteOps.isWatched(submission)).toBe(false)
      yield* TestClock.adjust("10 minutes")
      expect(told).toEqual(["reverted", "reopened"])
      expect(offers).toEqual([])
    })
  )

  it.scoped(
    "that a bundler has is watched under its own hash once a reorganisation took the other version",
    () =>
      Effect.gen(function* () {
        const { chain, mine, told, watch } = yield* world({ found: version, handedOver: true })
        yield* mine(5)
        chain.land(version, 1n)
        yield* watch
        yield* mine(1)
        chain.undo()
        yield* mine(1)
        yield* TestClock.adjust(round)
        expect(told).toEqual(["reverted", "reopened"])
        chain.land(hash, 1n)
        yield* TestClock.adjust(round)
        expect(told).toEqual(["reverted", "reopened", "recorded: true"])
        yield* mine(1)
        yield* TestClock.adjust("20 seconds")
        yield* mine(1)
        expect(told).toEqual(["reverted", "reopened", "recorded: true", "finalised"])
      })
  )

  it.scoped("is its request's again when its transaction was mined anew, and the op is not in it", () =>
    Effect.gen(function* () {
      const { chain, mine, told, watch } = yield* world({ found: version })
      yield* mine(5)
      chain.land(version, 1n)
      chain.strip()
      yield* watch
      yield* mine(10)
      yield* TestClock.adjust("20 seconds")
      expect(told).toEqual(["reverted", "reopened"])
    })
  )
})

describe("ops at remote bundlers", () => {
  const kinds = [
    {
      what: "a look at ops at remote bundlers failed",
      fails: (chain: ReturnType<typeof Landings.makeChain>) => chain.fallSilent(true),
      heals: (chain: ReturnType<typeof Landings.makeChain>) => chain.fallSilent(false)
    },
    {
      what: "the node does not tell what became of ops",
      fails: (chain: ReturnType<typeof Landings.makeChain>) => chain.refuseLogs(true),
      heals: (chain: ReturnType<typeof Landings.makeChain>) => chain.refuseLogs(false)
    }
  ]
  it.scoped.each(kinds)("tell seven times of an hour in which $what", ({ fails, heals, what }) => {
    const log = Log.make()
    return Effect.gen(function* () {
      const { chain, mine, watch } = yield* world()
      yield* watch
      yield* mine(5)
      fails(chain)
      yield* TestClock.adjust("1 hour")
      heals(chain)
      yield* mine(1)
      expect(Log.told(log.lines, what)).toEqual(Log.ofAnHour("WARN"))
    }).pipe(Effect.provide(log.layer))
  })

  it.scoped("tell seven times of an hour in which the journal takes nothing", () => {
    const log = Log.make()
    return Effect.gen(function* () {
      const { chain, mine, outage, watch } = yield* world()
      yield* watch
      yield* mine(5)
      outage.left = Number.POSITIVE_INFINITY
      chain.land(hash, 1n)
      yield* TestClock.adjust("1 hour")
      outage.left = 0
      yield* mine(1)
      expect(Log.told(log.lines, "a look at an op at a remote bundler failed")).toEqual(Log.ofAnHour("WARN"))
    }).pipe(Effect.provide(log.layer))
  })
})
