import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Result } from "effect"
import * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import { AuditLogError, withheld } from "../../../src/application/ports/AuditLog.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import { type Signer, SignerError } from "../../../src/application/ports/Signers.js"
import * as Transaction from "../../../src/domain/evm/Transaction.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import * as Parties from "../../support/Parties.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

type Journal = Parameters<typeof NonceManager.make>[0]

const signer = Parties.signer(1)
const lane = { chainId: Make.chainId, signer: signer.address }
const prices = { maxFeePerGas: 100n, maxPriorityFeePerGas: 10n, legacy: false }
const raised = { maxFeePerGas: 120n, maxPriorityFeePerGas: 12n, legacy: false }

/** What a node tells is not asked for here. */
const node = Effect.runSync(Monitor.node("any"))

const payload = (change: Partial<NonceManager.Payload> = {}): NonceManager.Payload => ({
  access: Monitor.callers,
  ops: [],
  direct: null,
  chain: node.chain,
  chainId: Make.chainId,
  signer,
  to: Make.address(7),
  data: Hex.unsafe("0x1234"),
  value: 5n,
  gasLimit: 1_000n,
  prices,
  l1Fee: 3n,
  drainedTo: 0n,
  chainNonce: 0n,
  balance: 10n ** 18n,
  ...change
})

const world = (wrap: (journal: Journal) => Partial<Journal> = () => ({})) =>
  Effect.map(InMemory.makeJournal, (journals) => {
    const journal = Context.get(journals, TransactionJournal)
    const { acceptOps } = Context.get(journals, RequestJournal)
    return { acceptOps, journal, lanes: NonceManager.make({ ...journal, ...wrap(journal) }) }
  })

const away = new JournalError({ message: "away" })

const newest = ({ versions }: TransactionRecord) =>
  Result.getOrThrow(Transaction.parse(versions.at(-1)?.raw ?? Hex.empty))

describe("a transaction of a lane", () => {
  test("is signed under the next nonce, and stored before anybody has its bytes", function* () {
    const { journal, lanes } = yield* world()
    const [first, second] = [yield* lanes.sign(payload()), yield* lanes.sign(payload())]
    expect([first.nonce, second.nonce]).toEqual([0n, 1n])
    expect(newest(second)).toMatchObject({
      from: signer.address,
      transaction: {
        chainId: Make.chainId,
        nonce: 1n,
        to: Make.address(7),
        value: 5n,
        gasLimit: 1_000n,
        ...prices
      }
    })
    const stored = yield* journal.openOf(lane)
    expect(stored.map(({ versions }) => versions)).toEqual([first.versions, second.versions])
  })

  test("has no nonce below the one that the chain counts for its EOA", function* () {
    const { lanes } = yield* world()
    expect((yield* lanes.sign(payload({ chainNonce: 7n }))).nonce).toBe(7n)
    expect((yield* lanes.fill(payload({ chainNonce: 9n }))).nonce).toBe(9n)
  })

  test("that its key does not sign leaves its nonce to the next one", function* () {
    const handedBack: Array<bigint> = []
    const { lanes } = yield* world((journal) => ({
      unallocate: (of, nonce) => {
        handedBack.push(nonce)
        return journal.unallocate(of, nonce)
      }
    }))
    const refused = new SignerError({ reason: "refused", message: "not this one" })
    const refusing: Signer = { ...signer, sign: () => Effect.fail(refused) }
    expect(yield* Effect.flip(lanes.sign(payload({ signer: refusing })))).toEqual(refused)
    expect(handedBack).toEqual([0n])
    expect((yield* lanes.sign(payload())).nonce).toBe(0n)
  })

  test("is not signed when the EOA has not the wei for it beside those under way", function* () {
    const { journal, lanes } = yield* world()
    const cost = 1_000n * 100n + 3n + 5n
    yield* lanes.sign(payload({ balance: cost }))
    const failure = yield* Effect.flip(lanes.sign(payload({ balance: 2n * cost - 1n })))
    expect(failure).toMatchObject({ _tag: "LaneFunds", missing: 1n })
    expect(yield* journal.openOf(lane)).toHaveLength(1)
    expect((yield* lanes.sign(payload({ balance: 2n * cost }))).nonce).toBe(1n)
  })

  test("goes when the store said that it failed, and has its bytes, also after a while; else it does not", function* () {
    let failures = 3
    const fails: Partial<Journal> = { recordSigned: () => Effect.fail(away) }
    const saysSo = (journal: Journal): Partial<Journal> => ({
      recordSigned: (signed) => Effect.andThen(journal.recordSigned(signed), Effect.fail(away)),
      openOf: (of) => Effect.suspend(() => (--failures >= 0 ? Effect.fail(away) : journal.openOf(of)))
    })
    const { lanes } = yield* world(saysSo)
    const signing = yield* Effect.forkChild(lanes.sign(payload()))
    yield* Time.adjust("1 second")
    const record = yield* Fiber.join(signing)
    expect(yield* lanes.current(record)).toMatchObject({ versions: record.versions, state: "signed" })
    const without = yield* world(() => fails)
    expect(yield* Effect.flip(without.lanes.sign(payload()))).toEqual(away)
    expect(yield* without.journal.openOf(lane)).toEqual([])
  })

  test("is not signed, and its nonce is free, when the audit log takes no entry of the signature", function* () {
    const { lanes } = yield* world()
    const unrecorded = { ...signer, sign: () => Effect.die(new AuditLogError({ message: "away" })) }
    const failure = yield* Effect.flip(lanes.sign(payload({ signer: unrecorded })))
    expect(failure).toEqual(new JournalError({ message: "not signed: away" }))
    expect((yield* lanes.sign(payload())).nonce).toBe(0n)
  })

  test("that only uses a nonce is a transfer of nothing to the EOA itself", function* () {
    const { lanes } = yield* world()
    const { transaction } = newest(yield* lanes.fill(payload()))
    expect(transaction).toMatchObject({ to: signer.address, value: 0n, data: "0x", gasLimit: 21_000n })
  })
})

describe("a replacement", () => {
  test("is the same transaction under the same nonce at higher prices", function* () {
    const { lanes } = yield* world()
    const record = yield* lanes.sign(payload())
    const replaced = yield* lanes.replace(record, signer, raised)
    expect(newest(replaced).transaction).toEqual({ ...newest(record).transaction, ...raised })
    expect(yield* lanes.current(record)).toMatchObject({ versions: replaced.versions })
    // What it may cost more is kept of the balance, too.
    const both = 2n * (1_000n * 100n + 8n) + 1_000n * 20n
    const failure = yield* Effect.flip(lanes.sign(payload({ balance: both - 1n })))
    expect(failure).toMatchObject({ _tag: "LaneFunds", missing: 1n })
  })

  test("at a lower price keeps as much of the balance: any version may be mined", function* () {
    const { lanes } = yield* world()
    const record = yield* lanes.sign(payload())
    yield* lanes.replace(record, signer, { ...prices, maxFeePerGas: 50n })
    const both = 2n * (1_000n * 100n + 8n)
    expect(yield* Effect.flip(lanes.sign(payload({ balance: both - 1n })))).toMatchObject({ missing: 1n })
    expect((yield* lanes.sign(payload({ balance: both }))).nonce).toBe(1n)
  })

  test("is not built on bytes of another key, nonce or chain, nor on none", function* () {
    const { lanes } = yield* world()
    const record = yield* lanes.sign(payload())
    const next = yield* lanes.sign(payload())
    const foreign = yield* lanes.sign(payload({ signer: Parties.signer(2) }))
    const elsewhere = yield* lanes.sign(payload({ chainId: 137n }))
    const [noKeys, noNonces] = ["not a transaction of this key", "of another nonce"]
    for (const [versions, why] of [
      [foreign.versions, noKeys],
      [[...record.versions, ...foreign.versions], noKeys],
      [[], noKeys],
      [next.versions, noNonces],
      [elsewhere.versions, noNonces]
    ] as const) {
      const failure = yield* Effect.flip(lanes.replace({ ...record, versions }, signer, raised))
      expect(failure).toMatchObject({ _tag: "LaneDamaged", message: `the stored bytes are ${why}` })
    }
    expect(yield* lanes.current(record)).toMatchObject({ versions: record.versions })
  })
})

describe("what a lane signs", () => {
  /** Runs while the key is asked; the caller gives up before it answers. What the journal has then. */
  const abandoned = (
    run: (
      lanes: NonceManager.NonceManager,
      record: TransactionRecord,
      slow: Signer
    ) => Effect.Effect<unknown, unknown>
  ) =>
    Effect.gen(function* () {
      const { journal, lanes } = yield* world()
      const record = yield* lanes.sign(payload())
      const [asked, answer] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow: Signer = {
        ...signer,
        sign: (digest) =>
          Deferred.succeed(asked, undefined).pipe(
            Effect.andThen(Deferred.await(answer)),
            Effect.andThen(signer.sign(digest))
          )
      }
      const signing = yield* Effect.forkChild(run(lanes, record, slow))
      yield* Deferred.await(asked)
      yield* Effect.sync(() => signing.interruptUnsafe())
      yield* Effect.yieldNow
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.await(signing)
      return (yield* journal.openOf(lane)).map(({ nonce, versions }) => [nonce, versions.length])
    })

  test("is stored although its caller gives up: a nonce without bytes would hold up the lane", function* () {
    const both = [
      [0n, 1],
      [1n, 1]
    ]
    expect(yield* abandoned((lanes, _, slow) => lanes.sign(payload({ signer: slow })))).toEqual(both)
    expect(yield* abandoned((lanes, _, slow) => lanes.fill(payload({ signer: slow })))).toEqual(both)
    expect(yield* abandoned((lanes, record, slow) => lanes.replace(record, slow, raised))).toEqual([[0n, 2]])
  })

  test("is told to the audit log as what stays in the process until the journal has its bytes", function* () {
    const seen: Array<boolean> = []
    const watching: Signer = {
      ...signer,
      sign: (digest) =>
        Effect.tap(signer.sign(digest), () => Effect.map(withheld, (isWithheld) => seen.push(isWithheld)))
    }
    const { lanes } = yield* world()
    const record = yield* lanes.sign(payload({ signer: watching }))
    yield* lanes.replace(record, watching, raised)
    expect(seen).toEqual([true, true])
  })
})

it("what a replacement has to be above is the highest of each price, of type 0 when a version is", () => {
  const version = (raw: string, maxFeePerGas: bigint, maxPriorityFeePerGas: bigint) => ({
    txHash: Make.word(1),
    raw: Hex.unsafe(raw),
    maxFeePerGas,
    maxPriorityFeePerGas
  })
  const highest = { maxFeePerGas: 9n, maxPriorityFeePerGas: 4n }
  const versions = [version("0x02", 9n, 1n), version("0x02", 5n, 4n)]
  expect(NonceManager.standing(versions)).toEqual({ highest, legacy: false })
  expect(NonceManager.standing([...versions, version("0xf8", 1n, 1n)])).toEqual({ highest, legacy: true })
})

describe("work of a lane", () => {
  test("does not run beside other work of it, and beside that of another one", function* () {
    const { lanes } = yield* world()
    const seen: Array<string> = []
    const work = (name: string) =>
      Effect.gen(function* () {
        seen.push(`${name} begins`)
        yield* Effect.sleep("1 second")
        seen.push(`${name} ends`)
      })
    const other = { ...lane, chainId: 137n }
    const all = yield* Effect.forkChild(
      Effect.all(
        [
          lanes.exclusive(lane, work("a")),
          lanes.exclusive(lane, work("b")),
          lanes.exclusive(other, work("c"))
        ],
        { concurrency: "unbounded" }
      )
    )
    yield* Time.adjust("2 seconds")
    yield* Fiber.join(all)
    expect(seen.slice(0, 2)).toEqual(["a begins", "c begins"])
    expect(seen.indexOf("b begins")).toBeGreaterThan(seen.indexOf("a ends"))
  })

  test("is admitted beside transactions of its route, and beside none of another one", function* () {
    const { acceptOps, lanes } = yield* world()
    yield* acceptOps(Make.acceptance("direct", [], { lane }))
    const { nonce } = yield* lanes.sign(payload({ direct: "direct" }))
    expect(yield* lanes.admits(lane, "direct", 0n)).toBe(true)
    expect(yield* lanes.admits(lane, Make.entryPoint, 0n)).toBe(false)
    expect(yield* lanes.admits(lane, Make.entryPoint, nonce + 1n)).toBe(true)
    const space = { ...Make.space(1), authority: lane.signer }
    const op = Make.op({ space, userOpHash: Make.word(9) })
    yield* acceptOps(Make.acceptance("ops", [op], { lane }))
    const ops = [{ requestId: "ops", index: 0, userOpHash: Make.word(9), entryPoint: Make.entryPoint }]
    expect(yield* Effect.flip(lanes.sign(payload({ ops })))).toMatchObject({ _tag: "OtherRoute" })
    expect((yield* lanes.sign(payload({ ops, drainedTo: nonce + 1n }))).nonce).toBe(nonce + 1n)
  })
})
