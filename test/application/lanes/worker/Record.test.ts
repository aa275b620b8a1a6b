import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Result } from "effect"
import * as Record from "../../../../src/application/lanes/worker/Record.js"
import { AuditLogError, withheld } from "../../../../src/application/ports/AuditLog.js"
import { JournalError } from "../../../../src/application/ports/journal/JournalError.js"
import { TransactionJournal } from "../../../../src/application/ports/journal/TransactionJournal.js"
import type { TransactionRecord } from "../../../../src/application/ports/journal/Transactions.js"
import { type Signer, SignerError } from "../../../../src/application/ports/Signers.js"
import * as Transaction from "../../../../src/domain/evm/Transaction.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../../support/journal/InMemory.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import * as Parties from "../../../support/Parties.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

type Journal = TransactionJournal["Service"]

const signer = Parties.signer(1)
const lane = { chainId: Make.chainId, signer: signer.address }
const prices = { maxFeePerGas: 100n, maxPriorityFeePerGas: 10n, legacy: false }
const raised = { maxFeePerGas: 120n, maxPriorityFeePerGas: 12n, legacy: false }
/** Maximum cost of one transaction of `payload`. */
const cost = 1_000n * 100n + 3n + 5n

const payload = (change: Partial<Record.Payload> = {}): Record.Payload => ({
  access: Monitor.callers,
  signer,
  to: Make.address(7),
  data: Hex.unsafe("0x1234"),
  value: 5n,
  gasLimit: 1_000n,
  prices,
  l1Fee: 3n,
  chainNonce: 0n,
  balance: 10n ** 18n,
  ops: [],
  direct: null,
  ...change
})

const world = (wrap: (journal: Journal) => Partial<Journal> = () => ({})) =>
  Effect.map(InMemory.makeJournal, (journals) => {
    const stored = Context.get(journals, TransactionJournal)
    const journal: Journal = { ...stored, ...wrap(stored) }
    const record = (change: Partial<Record.Payload> = {}, chainId = Make.chainId) =>
      Record.record(journal, chainId, payload(change))
    return {
      journal: stored,
      record,
      recorded: (...change: Parameters<typeof record>) =>
        Effect.map(record(...change), (result) => {
          if (result._tag !== "recorded") throw new Error(result._tag)
          return result.record
        }),
      fill: (change: Partial<Record.Filler> = {}) => Record.fill(journal, Make.chainId, payload(change)),
      replace: (of: TransactionRecord, by: Signer, higher: Record.Payload["prices"]) =>
        Record.replace(journal, of, by, higher)
    }
  })

const newest = ({ versions }: Pick<TransactionRecord, "versions">) =>
  Result.getOrThrow(Transaction.parse(versions.at(-1)?.raw ?? Hex.empty))

const away = new JournalError({ message: "away" })
const fenced = new JournalError({ message: "another process owns the lane", isFenced: true })

describe("a transaction of a lane", () => {
  test("takes the lane's next nonce, and the journal has its bytes", function* () {
    const { journal, recorded } = yield* world()
    const [first, second] = [yield* recorded(), yield* recorded()]
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

  test("takes no nonce below the chain's", function* () {
    const { fill, recorded } = yield* world()
    expect((yield* recorded({ chainNonce: 7n })).nonce).toBe(7n)
    expect((yield* fill({ chainNonce: 9n }))?.nonce).toBe(9n)
  })

  test("leaves its nonce to the next one when the key refuses it", function* () {
    const { record, recorded } = yield* world()
    const refused = new SignerError({ reason: "refused", message: "not this one" })
    expect(yield* Effect.flip(record({ signer: { ...signer, sign: () => Effect.fail(refused) } }))).toBe(
      refused
    )
    expect((yield* recorded()).nonce).toBe(0n)
  })

  test("leaves its nonce to the next one when the audit log refuses the signature's entry", function* () {
    const { record, recorded } = yield* world()
    const unnoted = { ...signer, sign: () => Effect.die(new AuditLogError({ message: "away" })) }
    const failure = yield* Effect.flip(record({ signer: unnoted }))
    expect(failure).toEqual(new JournalError({ message: "not signed: away" }))
    expect((yield* recorded()).nonce).toBe(0n)
  })

  test("is not recorded when the balance does not cover it in addition to transactions in flight", function* () {
    const { journal, record, recorded } = yield* world()
    yield* recorded({ balance: cost })
    expect(yield* record({ balance: 2n * cost - 1n })).toEqual({ _tag: "insufficientFunds", reserved: cost })
    expect(yield* journal.openOf(lane)).toHaveLength(1)
    expect((yield* recorded({ balance: 2n * cost })).nonce).toBe(1n)
  })

  test("counts as recorded when the commit's reply is lost and the journal has its bytes", function* () {
    let failures = 3
    const { journal, recorded } = yield* world((stored) => ({
      record: (recording) => Effect.andThen(stored.record(recording), Effect.fail(away)),
      openOf: (of) => Effect.suspend(() => (--failures >= 0 ? Effect.fail(away) : stored.openOf(of)))
    }))
    const signing = yield* Effect.forkChild(recorded())
    yield* Time.adjust("1 second")
    const { versions } = yield* Fiber.join(signing)
    expect(yield* journal.openOf(lane)).toMatchObject([{ versions, state: "signed" }])
  })

  test("fails when the commit failed and the journal has other bytes or none", function* () {
    const { journal, record } = yield* world(() => ({ record: () => Effect.fail(away) }))
    expect(yield* Effect.flip(record())).toBe(away)
    expect(yield* journal.openOf(lane)).toEqual([])
  })

  test("fails without reading the journal when another process owns the lane", function* () {
    const { record } = yield* world(() => ({
      record: () => Effect.fail(fenced),
      openOf: () => Effect.die(new Error("asked"))
    }))
    expect(yield* Effect.flip(record())).toBe(fenced)
  })

  test("transfers nothing to the EOA itself when it only fills a nonce", function* () {
    const { fill } = yield* world()
    const filled = yield* fill({ balance: 21_000n * 100n })
    expect(newest(filled ?? { versions: [] }).transaction).toMatchObject({
      to: signer.address,
      value: 0n,
      data: "0x",
      gasLimit: 21_000n
    })
    const missing = 21_000n * 100n
    const failure = yield* Effect.flip(fill({ balance: 21_000n * 100n }))
    expect(failure).toMatchObject({ _tag: "LaneFunds", missing })
  })
})

describe("a replacement", () => {
  test("is the same transaction under the same nonce at higher prices", function* () {
    const { journal, record, recorded, replace } = yield* world()
    const first = yield* recorded()
    const replaced = yield* replace(first, signer, raised)
    expect(newest(replaced ?? first).transaction).toEqual({ ...newest(first).transaction, ...raised })
    expect(yield* journal.openOf(lane)).toMatchObject([{ versions: replaced?.versions }])
    const reserved = cost + 1_000n * 20n
    expect(yield* record({ balance: reserved + cost - 1n })).toMatchObject({ reserved })
  })

  test("at lower prices reserves no less, since any version may be mined", function* () {
    const { record, recorded, replace } = yield* world()
    yield* replace(yield* recorded(), signer, { ...prices, maxFeePerGas: 50n })
    expect(yield* record({ balance: 2n * cost - 1n })).toMatchObject({ reserved: cost })
    expect((yield* recorded({ balance: 2n * cost })).nonce).toBe(1n)
  })

  test("is not built on bytes of another key, nonce or chain, nor on none", function* () {
    const { journal, recorded, replace } = yield* world()
    const [first, next] = [yield* recorded(), yield* recorded()]
    const foreign = yield* recorded({ signer: Parties.signer(2) })
    const elsewhere = yield* recorded({}, 137n)
    const [otherKey, otherNonce] = ["not a transaction of this key", "of another nonce"]
    for (const [versions, why] of [
      [foreign.versions, otherKey],
      [[...first.versions, ...foreign.versions], otherKey],
      [[], otherKey],
      [next.versions, otherNonce],
      [elsewhere.versions, otherNonce]
    ] as const) {
      const failure = yield* Effect.flip(replace({ ...first, versions }, signer, raised))
      expect(failure).toMatchObject({ _tag: "LaneDamaged", message: `the stored bytes are ${why}` })
    }
    expect(yield* journal.openOf(lane)).toMatchObject([{ versions: first.versions }, {}])
  })

  it("exceeds the highest of each price, and is of type 0 when a version is", () => {
    const version = (raw: string, maxFeePerGas: bigint, maxPriorityFeePerGas: bigint) => ({
      txHash: Make.word(1),
      raw: Hex.unsafe(raw),
      maxFeePerGas,
      maxPriorityFeePerGas
    })
    const highest = { maxFeePerGas: 9n, maxPriorityFeePerGas: 4n }
    const versions = [version("0x02", 9n, 1n), version("0x02", 5n, 4n)]
    expect(Record.highestOf(versions)).toEqual({ highest, legacy: false })
    expect(Record.highestOf([...versions, version("0xf8", 1n, 1n)])).toEqual({ highest, legacy: true })
  })
})

describe("signed bytes", () => {
  /** Interrupts `run` while the key signs; returns the journal's versions of each nonce afterwards. */
  const interrupted = (
    run: (
      lanes: Effect.Success<ReturnType<typeof world>>,
      slow: Signer,
      first: TransactionRecord
    ) => Effect.Effect<unknown, unknown>
  ) =>
    Effect.gen(function* () {
      const lanes = yield* world()
      const first = yield* lanes.recorded()
      const [asked, answer] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow: Signer = {
        ...signer,
        sign: (digest) =>
          Deferred.succeed(asked, undefined).pipe(
            Effect.andThen(Deferred.await(answer)),
            Effect.andThen(signer.sign(digest))
          )
      }
      const signing = yield* Effect.forkChild(run(lanes, slow, first))
      yield* Deferred.await(asked)
      yield* Effect.sync(() => signing.interruptUnsafe())
      yield* Effect.yieldNow
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.await(signing)
      return (yield* lanes.journal.openOf(lane)).map(({ versions }) => versions.length)
    })

  test("are stored although their fiber is interrupted", function* () {
    expect(yield* interrupted(({ record }, slow) => record({ signer: slow }))).toEqual([1, 1])
    expect(yield* interrupted(({ fill }, slow) => fill({ signer: slow }))).toEqual([1, 1])
    expect(yield* interrupted(({ replace }, slow, first) => replace(first, slow, raised))).toEqual([2])
  })

  test("are withheld while the audit log notes their signature", function* () {
    const seen: Array<boolean> = []
    const watching: Signer = {
      ...signer,
      sign: (digest) =>
        Effect.tap(signer.sign(digest), () => Effect.map(withheld, (isWithheld) => seen.push(isWithheld)))
    }
    const { recorded, replace } = yield* world()
    yield* replace(yield* recorded({ signer: watching }), watching, raised)
    expect(seen).toEqual([true, true])
  })
})
