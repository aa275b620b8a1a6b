import { describe, expect } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as ChainFacts from "../../../../src/application/chain/ChainFacts.js"
import * as SubmissionRecords from "../../../../src/application/intake/submission/SubmissionRecords.js"
import * as WakeUps from "../../../../src/application/lanes/requests/WakeUps.js"
import { OpJournal } from "../../../../src/application/ports/journal/OpJournal.js"
import { RemoteOpJournal } from "../../../../src/application/ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../../src/application/ports/journal/TransactionJournal.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import * as Nonce from "../../../../src/domain/erc4337/Nonce.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as WalletCalls from "../../../../src/domain/wallet/WalletCalls.js"
import * as InMemory from "../../../support/journal/InMemory.js"
import * as Make from "../../../support/journal/Make.js"
import * as Landings from "../../../support/lanes/Landings.js"
import * as Ops from "../../../support/lanes/Ops.js"
import { test as bare, testOver } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

/** A request whose op somebody else's transaction has included, while its own transaction is signed. */
const waiting = Effect.gen(function* () {
  const requestJournal = yield* RequestJournal
  const journal = yield* TransactionJournal
  const wakeUps = yield* WakeUps.make(requestJournal)
  yield* requestJournal.acceptOps(Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })]))
  yield* journal.allocate(Make.allocation("r1", { ops: [0] }))
  yield* journal.recordSigned(Make.signed(0n))
  const remote = yield* RemoteOpJournal
  yield* remote.recordInclusions(Make.lane.signer, Make.chainId, [Make.landed(Make.word(1), 9n)], Make.node())
  const found = yield* Effect.forkChild(
    wakeUps.watching("r1", (watch) =>
      SubmissionRecords.minedOps({
        plan: { caller: { requestId: "r1" }, elements: [0] },
        componentOf: (index: number) => index,
        watch,
        ops: null
      } as unknown as SubmissionRecords.Reader)
    )
  )
  yield* Time.adjust("1 second")
  expect(found.pollUnsafe()).toBeUndefined()
  return { found, journal, wakeUps }
})

const test = testOver(InMemory.journal)

describe("a request whose op landed in somebody else's transaction", () => {
  test("is concluded without its own transaction once the nonce of that is known to be used", function* () {
    const { found, journal, wakeUps } = yield* waiting
    yield* wakeUps.notify(yield* journal.recordExternalUse(Make.lane, 0n, []))
    expect((yield* Fiber.join(found)).txHashes).toEqual([])
  })

  test("is concluded with the version of its own transaction that is mined, whichever that is", function* () {
    const { found, journal, wakeUps } = yield* waiting
    const txHash = Make.word(0x2000)
    yield* journal.recordSigned(Make.signed(0n, { txHash }))
    yield* wakeUps.notify(yield* journal.settle(Make.mined(0n, { success: false, txHash }), [], false))
    expect((yield* Fiber.join(found)).txHashes).toEqual([txHash])
  })
})

const op = Make.op({
  space: Make.space(1, { entryPoint: Landings.entryPoint }),
  nonceKey: 3n,
  sequence: 7n,
  userOpHash: Make.word(1)
})

/** What the wallet shall call. */
const call = { target: Make.address(7), value: 5n, data: Hex.unsafe("0x0102") }

/** A request that was accepted at about block 100 of a chain that has 9,000 by now, and its submission. */
const longAgo = Effect.gen(function* () {
  const chain = Landings.makeChain()
  chain.mine(9_000)
  yield* Time.setTime(1_000_000)
  const requestJournal = yield* RequestJournal
  yield* requestJournal.acceptOps(Make.acceptance("r1", [op]))
  const wakeUps = yield* WakeUps.make(requestJournal)
  const node = { ...chain.client, code: () => Effect.succeed(Hex.empty) }
  const reader = (watch: WakeUps.Watch | null) =>
    ({
      plan: {
        caller: { requestId: "r1", principal: { accountId: Make.alice } },
        access: Make.access(),
        context: {
          chainId: Make.chainId,
          connection: {
            chain: node,
            profile: NetworkProfile.make({ chainId: Make.chainId, settledDepth: 3 })
          },
          entryPoint: Landings.entryPoint,
          formula: { initCode: "0x00" }
        },
        elements: [0],
        callOf: () => call,
        submitter: { address: Make.lane.signer }
      },
      componentOf: (index: number) => index,
      watch,
      ops: null
    }) as unknown as SubmissionRecords.Reader
  const facts = Effect.provideService(ChainFacts.ChainFacts, ChainFacts.make())
  const ask = Effect.suspend(() => facts(SubmissionRecords.ask(reader(null), [0])))
  const resume = Effect.suspend(() =>
    wakeUps.watching("r1", (watch) =>
      facts(SubmissionRecords.resume(reader(watch), { rest: Effect.void, work: Effect.void }))
    )
  )
  const follow = Effect.suspend(() =>
    wakeUps.watching("r1", (watch) => SubmissionRecords.follow(reader(watch), [0], false))
  )
  const remoteOpJournal = yield* RemoteOpJournal
  /** The ops that are watched where they landed, until that is for good. */
  const watched = Effect.map(remoteOpJournal.remoteSubmissions, (all) => all.map((each) => each.userOpHash))
  const opJournal = yield* OpJournal
  const state = Effect.map(opJournal.ofRequest("r1"), ({ ops }) => ops.map((each) => each.state))
  return { ask, chain, follow, resume, state, watched }
})

/** Its op was signed, and another transaction has the nonce of the one that was to carry it. */
const displaced = Effect.gen(function* () {
  const journal = yield* TransactionJournal
  yield* journal.allocate(Make.allocation("r1", { ops: [0] }))
  yield* journal.recordSigned(Make.signed(0n))
  yield* journal.recordExternalUse(Make.lane, 0n, [])
})

const used = Nonce.make(3n, 8n)
const isDone = { landed: new Map([[0, expect.objectContaining({ userOpHash: Make.word(1) })]]) }

describe("an op that was signed and whose nonce is used", () => {
  test("is done where it has landed, however long ago: it does not go again under another nonce", function* () {
    const { ask, chain, state } = yield* longAgo
    yield* displaced
    chain.land(Make.word(1), 1n, 100n)
    chain.say(used)
    expect(yield* ask).toMatchObject({ ...isDone, held: new Map(), isUndecided: false })
    expect(yield* state).toEqual(["settled"])
  })

  bare("is watched where it has landed until that block is at settled depth", function* () {
    for (const [block, isWatched] of [
      [8_998n, false],
      [8_999n, true]
    ] as const) {
      const found = Effect.gen(function* () {
        const { ask, chain, watched } = yield* longAgo
        yield* displaced
        chain.land(Make.word(1), 1n, block)
        chain.say(used)
        expect(yield* ask).toMatchObject(isDone)
        return yield* watched
      })
      const resumed = Effect.gen(function* () {
        const { chain, resume, watched } = yield* longAgo
        chain.land(Make.word(1), 1n, block)
        expect(yield* resume).toMatchObject(isDone)
        return yield* watched
      })
      for (const each of [found, resumed])
        expect(yield* Effect.provide(each, InMemory.journal)).toEqual(isWatched ? [Make.word(1)] : [])
    }
  })

  test("is given up where nothing of it has landed: its nonce is another op's for good", function* () {
    const { ask, chain, state } = yield* longAgo
    yield* displaced
    chain.say(used)
    expect(yield* ask).toMatchObject({ landed: new Map(), held: new Map(), isUndecided: false })
    expect(yield* state).toEqual(["abandoned"])
  })

  bare(
    "is done where an op that the journal does not know makes the same call under its nonce",
    function* () {
      const given = { landed: new Map(), held: new Map(), isUndecided: false }
      for (const [target, isShown, said, state] of [
        [call.target, true, { held: new Map(), isUndecided: false }, "settled"],
        [Make.address(8), true, given, "abandoned"],
        [call.target, false, { _tag: "delayed" }, "accepted"]
      ] as const)
        yield* Effect.gen(function* () {
          const { ask, chain, state: states } = yield* longAgo
          yield* displaced
          const other = {
            ...Ops.plain,
            sender: op.space.wallet,
            nonce: Nonce.make(3n, 7n),
            callData: WalletCalls.execute(target, call.value, call.data)
          }
          const userOpHash = chain.landOp(other, Make.chainId, 8_000n, isShown)
          chain.say(used)
          const asked = yield* ask
          expect(asked).toMatchObject(said)
          if (state === "settled")
            expect(asked).toMatchObject({ landed: new Map([[0, expect.objectContaining({ userOpHash })]]) })
          expect(yield* states).toEqual([state])
        }).pipe(Effect.provide(InMemory.journal))
    }
  )

  test("keeps its nonce while that is not used, or nobody tells", function* () {
    const { ask, chain, state } = yield* longAgo
    yield* displaced
    chain.say(Nonce.make(3n, 7n))
    const held = new Map([[0, expect.objectContaining({ nonceKey: 3n, sequence: 7n })]])
    expect(yield* ask).toMatchObject({ landed: new Map(), held, isUndecided: false })
    chain.say(used)
    chain.fallSilent(true)
    expect(yield* ask).toMatchObject({ _tag: "delayed" })
    expect(yield* state).toEqual(["accepted"])
  })
})

describe("a request that goes on after a restart", () => {
  test("has an op done that landed long ago, of whose signature its journal, an older backup, does not know", function* () {
    const { chain, resume, state } = yield* longAgo
    chain.land(Make.word(1), 1n, 100n)
    expect(yield* resume).toMatchObject({ _tag: "resumed", ...isDone })
    expect(yield* state).toEqual(["settled"])
  })

  test("has an element done of which an earlier version landed long ago", function* () {
    const { chain, resume, state } = yield* longAgo
    yield* displaced
    const requestJournal = yield* RequestJournal
    // Under the same nonce, and not signed yet.
    yield* requestJournal.acceptOps(Make.acceptance("r1", [{ ...op, userOpHash: Make.word(2) }]))
    chain.land(Make.word(1), 1n, 100n)
    expect(yield* resume).toMatchObject({ _tag: "resumed", ...isDone })
    // Their nonce is used: nothing of the later version can land.
    expect(yield* state).toEqual(["settled"])
  })

  test("has an op given up that nobody has signed, and that is nowhere on the chain", function* () {
    const { resume, state } = yield* longAgo
    expect(yield* resume).toMatchObject({ _tag: "resumed", landed: new Map() })
    expect(yield* state).toEqual(["abandoned"])
  })
})

describe("an op that came back from a transaction that reverted", () => {
  const returned = (company: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const { follow } = yield* longAgo
      const requestJournal = yield* RequestJournal
      for (const [place, requestId] of company.entries())
        yield* requestJournal.acceptOps(
          Make.acceptance(requestId, [
            {
              ...op,
              space: { ...op.space, wallet: Make.address(place + 1) },
              userOpHash: Make.word(place + 2)
            }
          ])
        )
      const journal = yield* TransactionJournal
      const ops = ["r1", ...company].map((requestId) => ({ requestId, index: 0 }))
      yield* journal.allocate({ ...Make.allocation("r1"), ops })
      yield* journal.recordSigned(Make.signed(0n))
      yield* journal.settle(Make.mined(0n, { success: false }), [], true)
      return (yield* follow).returned.get(0)
    }).pipe(Effect.provide(InMemory.journal))

  bare("is to blame for it where it was alone in it, and not where it had company", function* () {
    expect(yield* returned([])).toBe("own")
    expect(yield* returned(["r2"])).toBe("shared")
  })
})
