import type * as Effect from "effect/Effect"
import * as fc from "fast-check"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import type * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"
import * as Time from "../../support/Time.js"
import type { Model } from "./Model.js"

type Service = Journals.Methods

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

export const requestIds = ["r1", "r2", "r3", "o'r4", "r5"]
const requestId = fc.constantFrom(...requestIds)
const index = fc.nat({ max: 7 })
const rank = fc.nat({ max: 20 })
const hash = fc.nat({ max: 20 }).map(Make.word)
const lane = fc
  .constantFrom(0x51, 0x51, 0x51, 0x52)
  .map((n) => ({ chainId: Make.chainId, signer: Make.address(n) }))
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
      journal: (journal) => Make.lease(journal, request),
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
  reserve: wei,
  returned: fc.constantFrom(null, Hex.unsafe("0xab"))
})

const failed = fc
  .array(fc.record({ index, code: fc.constantFrom("A", "B") }), { maxLength: 2 })
  .map((list) => list.map(({ code, index }) => Make.failed(index, { code })))

const idempotency = fc.option(
  fc.constantFrom("k1", "k2", "k3").map((key) => ({ key, bodyHash: Make.word(1) })),
  { freq: 2 }
)

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
    failed,
    idempotency,
    deployments: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      fc.array(deployment.map(Make.deployment), { maxLength: 2 })
    )
  })
  .map(({ available, deployments, failed, idempotency, ops, requestId }): Command => {
    const request = Make.acceptance(requestId, ops, {
      deployments,
      failed,
      idempotency,
      lane: Make.lane,
      funds: Make.fundsOf(ops, available)
    })
    return (model) => ({
      name: "accept",
      request,
      journal: (journal) => journal.acceptOps(request),
      expected: (now) => model.accept(request, now)
    })
  })

/** An op takes the place of one of the same element, mostly under its nonce. */
const replace = fc.record({ rank, op, available: funds, often }).map(
  ({ available, often, op, rank }): Command =>
    (model) => {
      const known = pick(
        model.elements().filter((it) => it.state === "accepted"),
        rank
      )
      const { reserve, userOpHash } = op
      const own = known === undefined ? op : { ...known.intent, reserve, userOpHash }
      const ops = [often ? own : { ...own, sequence: op.sequence }]
      const request = Make.acceptance(known?.request ?? "r0", ops, {
        lane: Make.lane,
        funds: Make.fundsOf(ops, available)
      })
      return {
        name: "accept",
        request,
        journal: (journal) => journal.acceptOps(request),
        expected: (now) => model.accept(request, now)
      }
    }
)

const abandon = fc.record({ requestId, index, rank, often, keepSigned: fc.boolean() }).map(
  ({ index, keepSigned, often, rank, requestId }): Command =>
    (model) => {
      const known = pick(model.elements(), rank)
      const request = often && known !== undefined ? known.request : requestId
      const list = often && known !== undefined ? [known.index] : [index, index + 1]
      return {
        name: keepSigned ? "abandonUnsigned" : "abandon",
        request: { request, list },
        journal: (journal) =>
          keepSigned ? journal.abandonUnsigned(request, list) : journal.abandon(request, list),
        expected: () => model.abandon(request, list, keepSigned)
      }
    }
)

const identify = fc.record({ requestId, index, rank, often, userOpHash: hash }).map(
  ({ index, often, rank, requestId, userOpHash }): Command =>
    (model) => {
      const nameless = model.elements().filter((it) => it.hash === null)
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
    kind: fc.constantFrom("ops", "ops", "direct", "filler"),
    rank,
    count: fc.nat(3),
    fit: often
  })
  .map(
    ({ count, fit, kind, lane, rank, requestId, ...rest }): Command =>
      (model) => {
        const all = model.elements().filter((it) => !fit || (it.state === "accepted" && it.hash !== null))
        const from = kind === "ops" ? all.slice(rank % (all.length + 1)) : []
        const ops = from.filter((it) => !fit || it.entryPoint === from[0]?.entryPoint).slice(0, count)
        const allocation = {
          ...Make.allocation("", { ...lane, ...rest, direct: kind === "direct" ? requestId : null }),
          ops: ops.map((it) => ({ requestId: it.request, index: it.index }))
        }
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

const recordSigned = fc
  .record({ lane, rank, version: fc.constantFrom(0n, 0x100n), late: often, addedCost: wei })
  .map(
    ({ addedCost, lane, late, rank, version }): Command =>
      (model) => {
        const out = model.handedOut(lane.signer)
        const nonce = (late ? out.at(-1) : pick(out, rank))?.nonce ?? BigInt(rank)
        const transaction = Make.signed(nonce, {
          ...lane,
          addedCost,
          maxFeePerGas: Make.signed(nonce).maxFeePerGas + version,
          replaces: out.some((it) => it.nonce === nonce && it.state === "signed"),
          txHash: Make.word(0x1000n + version + nonce)
        })
        return {
          name: "recordSigned",
          request: transaction,
          journal: (journal) => journal.recordSigned(transaction),
          expected: () => model.recordSigned(transaction)
        }
      }
  )

const settle = fc
  .record({
    lane,
    rank,
    some: fc.nat(3),
    often,
    stray: fc.option(hash),
    success: fc.boolean(),
    block: fc.constantFrom(0xb1, 0xb1, 0xb2),
    final: fc.nat(3).map((n) => n === 0)
  })
  .map(
    ({ block, final, lane, often, rank, some, stray, success }): Command =>
      (model) => {
        const out = pick(
          model.handedOut(lane.signer).filter((it) => !often || it.versions.length > 0),
          rank
        )
        const nonce = out?.nonce ?? BigInt(rank)
        const txHash = pick(out?.versions ?? [], rank) ?? Make.word(0x9999)
        const hashes = [...(out?.hashes.slice(0, some) ?? []), ...(stray === null ? [] : [stray])]
        const transaction = Make.mined(nonce, { ...lane, txHash, blockHash: Make.word(block) })
        const ops = hashes.map((userOpHash, at) =>
          Make.landed(userOpHash, nonce, { success, txHash: at === 0 ? txHash : Make.word(0x7777) })
        )
        return {
          name: "settle",
          request: { transaction, ops, final },
          journal: (journal) => journal.settle(transaction, ops, final),
          expected: () => model.settle(transaction, ops, final)
        }
      }
  )

/** A node, or a bundler, took what was signed. */
const taken = fc.record({ lane, rank, often, stray: hash, remote: fc.boolean() }).map(
  ({ lane, often, rank, remote, stray }): Command =>
    (model) => {
      const out = model.handedOut(lane.signer).filter((it) => !often || it.state === "signed")
      const picked = pick(out, rank)
      const transactions = [
        { nonce: picked?.nonce ?? BigInt(rank), txHash: picked?.versions.at(-1) ?? Make.word(0x9999) }
      ]
      const hashes = [(often ? pick(model.remoteSubmissions(), rank)?.[0] : undefined) ?? stray]
      return remote
        ? {
            name: "recordTaken",
            request: { lane, hashes },
            journal: (journal) => journal.recordTaken(lane.signer, lane.chainId, hashes),
            expected: () => model.recordTaken(lane.signer, hashes)
          }
        : {
            name: "recordSubmitted",
            request: { lane, transactions },
            journal: (journal) => journal.recordSubmitted(lane, transactions),
            expected: () => model.recordSubmitted(lane.signer, transactions)
          }
    }
)

/** The events of a nonce after its settlement, or instead of it. */
const event = fc
  .record({
    lane,
    rank,
    fit: often,
    some: fc.nat(2),
    name: fc.constantFrom("finalise" as const, "unsettle" as const, "recordExternalUse" as const)
  })
  .map(
    ({ fit, lane, name, rank, some }): Command =>
      (model) => {
        const wanted = name === "recordExternalUse" ? "signed" : "mined"
        const out = model.handedOut(lane.signer).filter((it) => !fit || it.state === wanted)
        const picked = pick(out, rank)
        const nonce = picked?.nonce ?? BigInt(rank)
        const landed = (picked?.hashes.slice(0, some) ?? []).map((hash) => Make.landed(hash, 0x888n))
        const calls = {
          finalise: {
            journal: (journal: Service) => journal.finalise(lane, nonce, Make.settledDepth),
            expected: () => model.finalise(lane.signer, nonce, Make.settledDepth)
          },
          unsettle: {
            journal: (journal: Service) => journal.unsettle(lane, nonce),
            expected: () => model.unsettle(lane.signer, nonce)
          },
          recordExternalUse: {
            journal: (journal: Service) => journal.recordExternalUse(lane, nonce, landed),
            expected: () => model.recordExternalUse(lane.signer, nonce, landed)
          }
        }
        return { name, request: { lane, nonce, landed }, ...calls[name] }
      }
  )

const inOtherHands = fc
  .record({
    requestId,
    index,
    rank,
    often,
    name: fc.constantFrom("submitRemotely" as const, "revokeRemote" as const)
  })
  .map(
    ({ index, name, often, rank, requestId }): Command =>
      (model) => {
        const wanted = name === "submitRemotely" ? "accepted" : "sent"
        const known = often
          ? pick(
              model.elements().filter((it) => it.state === wanted),
              rank
            )
          : undefined
        const request = known?.request ?? requestId
        const list = known === undefined ? [index, index + 1] : [known.index]
        return {
          name,
          request: { request, list },
          journal: (journal) =>
            name === "submitRemotely"
              ? journal.submitRemotely(Make.handing(request, list))
              : journal.revokeRemote(request, list),
          expected: () => model[name](request, list)
        }
      }
  )

const recordInclusions = fc
  .record({ lane, hashes: fc.array(hash, { maxLength: 2 }), success: fc.boolean(), final: fc.boolean() })
  .map(({ final, hashes, lane, success }): Command => {
    const ops = hashes.map((userOpHash) => Make.landed(userOpHash, 0x777n, { success, final }))
    return (model) => ({
      name: "recordInclusions",
      request: { lane, ops },
      journal: (journal) => journal.recordInclusions(lane.signer, lane.chainId, ops, Make.node()),
      expected: () => model.recordInclusions(lane.signer, ops)
    })
  })

/** What becomes of a landing later. */
const landing = fc
  .record({
    lane,
    rank,
    stray: hash,
    often,
    name: fc.constantFrom("revertInclusions" as const, "finaliseInclusions" as const)
  })
  .map(
    ({ lane, name, often, rank, stray }): Command =>
      (model) => {
        const known = often ? pick(model.remoteSubmissions(), rank)?.[0] : undefined
        const hash = known ?? stray
        return {
          name,
          request: { lane, hash },
          journal: (journal) =>
            name === "revertInclusions"
              ? journal.revertInclusions(lane.signer, lane.chainId, [hash])
              : journal.finaliseInclusions(lane.signer, lane.chainId, [Make.deep(hash)]),
          expected: () =>
            name === "revertInclusions"
              ? model.revertInclusions(lane.signer, [hash])
              : model.finaliseInclusions(lane.signer, [Make.deep(hash)])
        }
      }
  )

const refuse = fc.record({ requestId, failed }).map(
  ({ failed, requestId }): Command =>
    (model) => ({
      name: "refuse",
      request: { requestId, failed },
      journal: (journal) => journal.refuse(requestId, failed),
      expected: () => model.refuse(requestId, failed)
    })
)

const decline = requestId.map(
  (request): Command =>
    (model) => ({
      name: "decline",
      request,
      journal: (journal) => journal.decline(request),
      expected: (now) => model.decline(request, now)
    })
)

const finish = fc.record({ requestId, outcome: fc.constantFrom("{}", "[]") }).map(
  ({ outcome, requestId }): Command =>
    (model) => ({
      name: "finish",
      request: { requestId, outcome },
      journal: (journal) => journal.finish(requestId, outcome, { httpStatus: 200 }),
      expected: () => model.finish(requestId, outcome)
    })
)

const cancel = fc
  .record({
    requestId,
    code: fc.constantFrom("request_cancelled" as const, "request_expired" as const),
    onlyUnsigned: fc.boolean()
  })
  .map(({ code, onlyUnsigned, requestId }): Command => {
    const cancellation = { code, onlyUnsigned, outcome: "cancelled" }
    return (model) => ({
      name: "cancel",
      request: { requestId, cancellation },
      journal: (journal) => journal.cancel(requestId, cancellation),
      expected: () => model.cancel(requestId, cancellation)
    })
  })

const forget = fc.nat(100).map(
  (before): Command =>
    (model) => ({
      name: "forget",
      request: before,
      journal: (journal) => journal.forget(before),
      expected: () => model.forget(before)
    })
)

/** Time passes. */
const wait = fc.nat(20).map(
  (millis): Command =>
    () => ({
      name: "wait",
      request: millis,
      journal: () => Time.adjust(millis),
      expected: () => undefined
    })
)

export const commands: fc.Arbitrary<ReadonlyArray<Command>> = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: lease },
    { weight: 1, arbitrary: release },
    { weight: 6, arbitrary: accept },
    { weight: 2, arbitrary: abandon },
    { weight: 2, arbitrary: replace },
    { weight: 2, arbitrary: identify },
    { weight: 6, arbitrary: allocate },
    { weight: 1, arbitrary: unallocate },
    { weight: 6, arbitrary: recordSigned },
    { weight: 3, arbitrary: settle },
    { weight: 2, arbitrary: taken },
    { weight: 3, arbitrary: event },
    { weight: 2, arbitrary: inOtherHands },
    { weight: 1, arbitrary: recordInclusions },
    { weight: 1, arbitrary: landing },
    { weight: 1, arbitrary: refuse },
    { weight: 1, arbitrary: decline },
    { weight: 1, arbitrary: finish },
    { weight: 1, arbitrary: cancel },
    { weight: 1, arbitrary: forget },
    { weight: 1, arbitrary: wait }
  ),
  { minLength: 20, maxLength: 80, size: "max" }
)
