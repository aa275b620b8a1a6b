import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as fc from "fast-check"
import type { Journal, JournalError } from "../../../src/application/ports/Journal.js"
import * as Make from "./Make.js"
import type { Model } from "./Model.js"

type Service = Context.Tag.Service<typeof Journal>

/** One call, as a journal does it and as the model does it. */
export interface Call {
  readonly name: string
  readonly request: unknown
  readonly journal: (journal: Service) => Effect.Effect<unknown, JournalError>
  readonly expected: (now: number) => unknown
}

/** A call whose parameters may be taken from what there is, so that many calls succeed. */
export type Command = (model: Model) => Call

/** The one of that rank, counted round and round; the other thing when there is none. */
const pick = <A>(list: ReadonlyArray<A>, rank: number): A | undefined =>
  list.length === 0 ? undefined : list[rank % list.length]

const requestId = fc.constantFrom("r1", "r2", "r3", "o'r4")
const index = fc.nat({ max: 7 })
const rank = fc.nat({ max: 20 })
const hash = fc.nat({ max: 20 }).map(Make.word)
const lane = fc.constantFrom(0x51, 0x52).map((n) => ({ chainId: Make.chainId, signer: Make.address(n) }))
const small = fc.bigInt(0n, 4n)
/** Around 2^64 and far above what a double or 64 bits hold exactly. */
const wei = fc.oneof(fc.bigInt(0n, 5n), fc.bigInt(2n ** 64n - 2n, 2n ** 64n + 2n), fc.bigInt(0n, 10n ** 30n))
const funds = fc.oneof(
  { weight: 3, arbitrary: fc.constant(Make.plenty) },
  wei,
  fc.bigInt(2n ** 65n, 10n ** 31n)
)
const often = fc.nat(9).map((n) => n > 0)
const space = fc
  .tuple(fc.constantFrom(1, 2), fc.constantFrom(Make.entryPoint, Make.otherEntryPoint))
  .map(([wallet, entryPoint]) => Make.space(wallet, { entryPoint }))

const lease = fc
  .record({ holder: requestId, space, from: small, size: small, count: fc.nat(3), ttlMillis: fc.nat(30) })
  .map(({ count, from, holder, size, space, ttlMillis }): Command => {
    const request = { ...space, holder, count, ttlMillis, keys: { from, to: from + size } }
    return (model) => ({
      name: "lease",
      request,
      journal: (journal) => journal.lease(request),
      expected: (now) => model.lease(request, now)
    })
  })

const release = requestId.map(
  (holder): Command =>
    (model) => ({
      name: "release",
      request: holder,
      journal: (journal) => journal.release(holder),
      expected: () => model.release(holder)
    })
)

const op = fc.record({
  index,
  space,
  nonceKey: fc.bigInt(0n, 3n),
  sequence: fc.bigInt(0n, 2n),
  userOpHash: fc.option(hash),
  reserve: wei
})

const deployment = fc.record({
  create2Salt: fc.constantFrom(Make.word(1), Make.word(2)),
  configHash: fc.constantFrom(Make.word(0xc1), Make.word(0xc2)),
  deadline: fc.integer({ min: 1_000, max: 1_005 }),
  chainTime: fc.integer({ min: 999, max: 1_006 })
})

const accept = fc
  .record({
    requestId,
    ops: fc.array(op, { maxLength: 3 }),
    available: funds,
    deployments: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      fc.array(deployment.map(Make.deployment), { maxLength: 2 })
    )
  })
  .map(({ available, deployments, ops, requestId }): Command => {
    const request = Make.acceptance(requestId, ops, {
      deployments,
      chainId: Make.chainId,
      funds: Make.fundsOf(ops, available)
    })
    return (model) => ({
      name: "accept",
      request,
      journal: (journal) => journal.accept(request),
      expected: () => model.accept(request)
    })
  })

const abandon = fc.record({ requestId, index, rank, often }).map(
  ({ index, often, rank, requestId }): Command =>
    (model) => {
      const known = pick(model.known(), rank)
      const request = often && known !== undefined ? known.request : requestId
      const list = often && known !== undefined ? [known.index] : [index, index + 1]
      return {
        name: "abandon",
        request: { request, list },
        journal: (journal) => journal.abandon(request, list),
        expected: () => model.abandon(request, list)
      }
    }
)

const identify = fc.record({ requestId, index, rank, often, userOpHash: hash }).map(
  ({ index, often, rank, requestId, userOpHash }): Command =>
    (model) => {
      const nameless = model.known().filter((it) => it.hash === null)
      const known = often ? pick(nameless, rank) : undefined
      const request = known?.request ?? requestId
      const at = known?.index ?? index
      return {
        name: "identify",
        request: { request, at, userOpHash },
        journal: (journal) => journal.identify(request, [{ index: at, userOpHash }]),
        expected: () => model.identify(request, at, userOpHash)
      }
    }
)

const allocate = fc
  .record({
    requestId,
    lane,
    chainNonce: fc.oneof({ weight: 4, arbitrary: fc.constant(0n) }, small),
    maxCost: wei,
    balance: funds,
    rank,
    count: fc.nat(3)
  })
  .map(
    ({ count, lane, rank, requestId, ...rest }): Command =>
      (model) => {
        const request = pick(model.known(), rank)?.request ?? requestId
        const own = model.known().filter((it) => it.request === request)
        const ops = own.slice(rank % (own.length + 1)).slice(0, count)
        const allocation = Make.allocation(request, { ...lane, ...rest, ops: ops.map((it) => it.index) })
        return {
          name: "allocate",
          request: allocation,
          journal: (journal) => journal.allocate(allocation),
          expected: () => model.allocate(allocation)
        }
      }
  )

const unallocate = fc.record({ lane, rank }).map(
  ({ lane, rank }): Command =>
    (model) => {
      const nonce = pick(model.handedOut(lane.signer), rank)?.nonce ?? BigInt(rank)
      return {
        name: "unallocate",
        request: { lane, nonce },
        journal: (journal) => journal.unallocate(lane, nonce),
        expected: () => model.unallocate(lane.signer, nonce)
      }
    }
)

const recordSigned = fc.record({ lane, rank, version: fc.constantFrom(0n, 0x100n), late: often }).map(
  ({ lane, late, rank, version }): Command =>
    (model) => {
      const out = model.handedOut(lane.signer)
      const nonce = (late ? out.at(-1) : pick(out, rank))?.nonce ?? BigInt(rank)
      const transaction = Make.signed(nonce, { ...lane, txHash: Make.word(0x1000n + version + nonce) })
      return {
        name: "recordSigned",
        request: transaction,
        journal: (journal) => journal.recordSigned(transaction),
        expected: () => model.recordSigned(transaction)
      }
    }
)

const settle = fc
  .record({ lane, rank, some: fc.nat(3), often, stray: fc.option(hash), success: fc.boolean() })
  .map(
    ({ lane, often, rank, some, stray, success }): Command =>
      (model) => {
        const out = pick(
          model.handedOut(lane.signer).filter((it) => !often || it.versions.length > 0),
          rank
        )
        const nonce = out?.nonce ?? BigInt(rank)
        const txHash = pick(out?.versions ?? [], rank) ?? Make.word(0x9999)
        const hashes = [...(out?.hashes.slice(0, some) ?? []), ...(stray === null ? [] : [stray])]
        const transaction = Make.mined(nonce, { ...lane, txHash })
        const ops = hashes.map((userOpHash) => Make.landed(userOpHash, nonce, { success }))
        return {
          name: "settle",
          request: { transaction, ops },
          journal: (journal) => journal.settle(transaction, ops),
          expected: () => model.settle(transaction, ops)
        }
      }
  )

/** Time passes. */
const wait = fc.nat(20).map(
  (millis): Command =>
    () => ({
      name: "wait",
      request: millis,
      journal: () => TestClock.adjust(millis),
      expected: () => undefined
    })
)

export const commands: fc.Arbitrary<ReadonlyArray<Command>> = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: lease },
    { weight: 1, arbitrary: release },
    { weight: 6, arbitrary: accept },
    { weight: 2, arbitrary: abandon },
    { weight: 2, arbitrary: identify },
    { weight: 6, arbitrary: allocate },
    { weight: 1, arbitrary: unallocate },
    { weight: 6, arbitrary: recordSigned },
    { weight: 3, arbitrary: settle },
    { weight: 1, arbitrary: wait }
  ),
  { minLength: 20, maxLength: 80, size: "max" }
)
