import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Facts from "../../support/journal/Facts.js"
import type * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"
import * as Time from "../../support/Time.js"
import type { Element, Model } from "./Model.js"

type Service = Journals.Methods

/** One call, as a journal does it and as the model does it. */
export interface Call {
  readonly name: string
  readonly request: unknown
  readonly journal: (journal: Service) => Effect.Effect<unknown, JournalError>
  readonly expected: (now: number) => unknown
}

/** A call whose parameters may come from the present state, so that many calls succeed. */
export type Command = (model: Model) => Call

/** The element of that rank, modulo their number; undefined when there is none. */
const pick = <A>(list: ReadonlyArray<A>, rank: number): A | undefined =>
  list.length === 0 ? undefined : list[rank % list.length]

export const requestIds = ["r1", "r2", "r3", "o'r4", "r5", "r6", "r7", "r8", "r9"]
const requestId = fc.constantFrom(...requestIds)
const index = fc.nat({ max: 7 })
const rank = fc.nat({ max: 20 })
const hash = fc.nat({ max: 20 }).map(Make.word)
const lane = fc
  .constantFrom(0x51, 0x51, 0x51, 0x52)
  .map((n) => ({ chainId: Make.chainId, signer: Make.address(n) }))
const small = fc.bigInt(0n, 4n)
/** Around 2^64 and far above the exact range of a double or of 64 bits. */
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

const op = fc
  .record({
    index,
    space,
    nonceKey: fc.bigInt(0n, 3n),
    sequence: fc.bigInt(0n, 2n),
    userOpHash: fc.option(hash),
    reserve: wei,
    returned: fc.constantFrom(null, Hex.unsafe("0xab"))
  })
  .map(Make.op)

const ops = fc.uniqueArray(op, {
  maxLength: 3,
  comparator: (one, other) => one.userOpHash !== null && one.userOpHash === other.userOpHash
})

const failed = fc
  .uniqueArray(fc.record({ index, code: fc.constantFrom("A", "B") }), {
    maxLength: 2,
    selector: (it) => it.index
  })
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
    ops,
    isDirect: fc.nat(5).map((n) => n === 0),
    available: funds,
    failed,
    unopened: fc.nat(2),
    idempotency,
    deployments: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      fc.array(deployment.map(Make.deployment), { maxLength: 2 })
    )
  })
  .map(({ available, isDirect, ops, requestId, ...over }): Command => {
    const own = isDirect ? [Make.direct(requestId)] : ops
    const request = Make.acceptance(requestId, own, { ...over, funds: Make.fundsOf(own, available) })
    return (model) => ({
      name: "accept",
      request,
      journal: (journal) => Facts.accept(journal, request),
      expected: (now) => model.accept(request, now)
    })
  })

const open = fc.record({ requestId, rank, often, ops, available: funds, failed }).map(
  ({ available, failed, often, ops, rank, requestId }): Command =>
    (model) => {
      const known = often ? pick(model.openRequests(), rank) : undefined
      const request = Make.opening(known ?? requestId, ops, { failed, funds: Make.fundsOf(ops, available) })
      return {
        name: "openElements",
        request,
        journal: (journal) => journal.openElements(Make.lane, request),
        expected: () => model.openElements(request)
      }
    }
)

/** The id of the element's row where it is ready; otherwise an unused id. */
const idOf = (journal: Service, elements: ReadonlyArray<Element>) =>
  Effect.map(journal.ready(Make.lane, 1_000), (ready) =>
    elements.map(
      ({ index, requestId }, at) =>
        ready.find((it) => it.requestId === requestId && it.index === index)?.opId ?? -1 - at
    )
  )

/** Prepares an op again, mostly a ready one; under its nonce, or perhaps under another. */
const again = fc
  .record({ rank, often, op, name: fc.constantFrom("renew" as const, "renumber" as const) })
  .map(
    ({ name, often, op, rank }): Command =>
      (model) => {
        const all = model.elements().filter(({ intent }) => intent.kind !== "direct")
        const known = pick(
          all.filter((it) => !often || it.state === "accepted"),
          rank
        )
        const { reserve, userOpHash } = op
        const nonce = { nonceKey: op.nonceKey, sequence: op.sequence }
        const prepared = {
          ...(known === undefined ? op : known.intent),
          ...(name === "renumber" || !often ? nonce : {}),
          requestId: known?.request ?? "r1",
          reserve,
          userOpHash
        }
        return name === "renew"
          ? {
              name,
              request: prepared,
              journal: (journal) => Effect.map(journal.renew(Make.lane, [prepared]), ([id]) => id !== null),
              expected: () => model.renew(prepared)
            }
          : {
              name,
              request: prepared,
              journal: (journal) =>
                Effect.map(journal.renumber(Make.lane, [prepared]), ({ _tag }) => ({ _tag })),
              expected: () => ({ _tag: model.renumber(prepared) })
            }
      }
  )

const fail = fc.record({ requestId, failed, index, rank, often, isDone: fc.boolean() }).map(
  ({ failed, index, isDone, often, rank, requestId }): Command =>
    (model) => {
      const known = often ? pick(model.elements(), rank) : undefined
      const request = known?.request ?? requestId
      const at = known?.index ?? index
      const failures = isDone ? failed : [...failed.filter((it) => it.index !== at), Make.failed(at)]
      const done = isDone && failed.every((it) => it.index !== at) ? [at] : []
      return {
        name: "fail",
        request: { request, failures, done },
        journal: (journal) => journal.fail(Make.lane, [{ requestId: request, failed: failures, done }]),
        expected: () => model.fail(request, failures, done)
      }
    }
)

const publish = fc.record({ rank, often }).map(
  ({ often, rank }): Command =>
    (model) => {
      const known = pick(
        model.elements().filter((it) => !often || it.state === "accepted"),
        rank
      )
      const element = { requestId: known?.request ?? "r1", index: known?.index ?? 0 }
      return {
        name: "publish",
        request: element,
        journal: (journal) =>
          Effect.flatMap(idOf(journal, [element]), (ids) => journal.publish(Make.lane, ids)),
        expected: () => model.publish(element)
      }
    }
)

const record = fc
  .record({
    lane,
    chainNonce: fc.oneof({ weight: 4, arbitrary: fc.constant(0n) }, small),
    maxCost: wei,
    balance: funds,
    rank,
    count: fc.nat(3),
    fit: often,
    isNext: often,
    stray: hash
  })
  .map(
    ({ count, fit, isNext, lane, rank, stray, ...rest }): Command =>
      (model) => {
        const all = model.elements().filter((it) => !fit || (it.state === "accepted" && it.hash !== null))
        const from = lane.signer === Make.lane.signer ? all.slice(rank % (all.length + 1)) : []
        const some = from
          .filter((it) => !fit || it.entryPoint === from[0]?.entryPoint)
          .slice(0, from[0]?.entryPoint === "direct" ? Math.min(count, 1) : count)
        const next = model.nextNonce(lane.signer, rest.chainNonce)
        const recording = Make.recording(isNext ? next : BigInt(rank), [], { ...lane, ...rest })
        const elements = some.map((it) => ({ requestId: it.request, index: it.index }))
        return {
          name: "record",
          request: { recording, elements, stray },
          journal: (journal) =>
            Effect.gen(function* () {
              const ids = yield* idOf(journal, elements)
              const given = some.map(({ entryPoint, hash }, at) => ({
                opId: ids[at] ?? 0,
                userOpHash: entryPoint === "direct" ? null : (hash ?? stray)
              }))
              const result = yield* journal.record({ ...recording, ops: given })
              if (result._tag !== "givenUp") return result
              return { _tag: result._tag, count: result.opIds.length }
            }),
          expected: () => model.record(recording, elements, stray)
        }
      }
  )

const replace = fc.record({ lane, rank, version: fc.constantFrom(0n, 0x100n), often, addedCost: wei }).map(
  ({ addedCost, lane, often, rank, version }): Command =>
    (model) => {
      const out = model.used(lane.signer).filter((it) => !often || it.state === "signed")
      const nonce = pick(out, rank)?.nonce ?? BigInt(rank)
      const replacement = Make.signed(nonce, {
        ...lane,
        addedCost,
        maxFeePerGas: Make.signed(nonce).maxFeePerGas + version,
        txHash: Make.word(0x1000n + version + nonce)
      })
      return {
        name: "replace",
        request: replacement,
        journal: (journal) => journal.replace(replacement),
        expected: () => model.replace(replacement)
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
          model.used(lane.signer).filter((it) => !often || it.versions.length > 0),
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

/** A node, or a bundler, took the signed bytes. */
const taken = fc.record({ lane, rank, often, stray: hash, remote: fc.boolean() }).map(
  ({ lane, often, rank, remote, stray }): Command =>
    (model) => {
      const out = model.used(lane.signer).filter((it) => !often || it.state === "signed")
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
        const out = model.used(lane.signer).filter((it) => !fit || it.state === wanted)
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

const handOver = fc.record({ rank, often, stray: hash }).map(
  ({ often, rank, stray }): Command =>
    (model) => {
      const all = model.elements().filter(({ intent }) => intent.kind !== "direct")
      const known = pick(
        all.filter((it) => !often || it.state === "accepted"),
        rank
      )
      const element = { requestId: known?.request ?? "r1", index: known?.index ?? 0 }
      return {
        name: "handOver",
        request: { element, stray },
        journal: (journal) =>
          Effect.gen(function* () {
            const [opId = 0] = known === undefined ? [] : yield* idOf(journal, [element])
            const ops = [{ opId, userOpHash: known?.hash ?? stray, signed: Hex.unsafe("0x51") }]
            return (yield* journal.handOver(Make.lane, { node: Make.node(), since: 7n, ops })).length > 0
          }),
        expected: () => known !== undefined && model.handOver(element, stray)
      }
    }
)

const takeBack = fc.record({ stray: hash, rank, often, isDead: fc.boolean() }).map(
  ({ isDead, often, rank, stray }): Command =>
    (model) => {
      const sent = model.elements().filter((it) => it.state === "sent")
      const known = often ? pick(sent, rank) : undefined
      const userOpHash = known?.hash ?? stray
      return {
        name: "takeBack",
        request: { userOpHash, isDead },
        journal: (journal) => journal.takeBack(Make.lane, [userOpHash], isDead),
        expected: () => model.takeBack(userOpHash, isDead)
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

/** Later fates of a landing. */
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

const decline = requestId.map(
  (request): Command =>
    (model) => ({
      name: "decline",
      request,
      journal: (journal) => journal.decline(request),
      expected: (now) => model.decline(request, now)
    })
)

const answer = fc.record({ requestId, rank, often, outcome: fc.constantFrom("{}", "[]") }).map(
  ({ often, outcome, rank, requestId }): Command =>
    (model) => {
      const id = (often ? pick(model.ended(requestIds), rank) : undefined) ?? requestId
      // Sometimes an event was added since the read.
      const sequence = model.events(id).length - (often ? 0 : 1)
      const final = { requestId: id, outcome, summary: { httpStatus: 200 }, sequence }
      return {
        name: "answer",
        request: final,
        journal: (journal) => Effect.map(journal.answer([final]), ([kept]) => kept),
        expected: () => model.answer(final)
      }
    }
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
    { weight: 12, arbitrary: accept },
    { weight: 6, arbitrary: open },
    { weight: 6, arbitrary: again },
    { weight: 2, arbitrary: fail },
    { weight: 1, arbitrary: publish },
    { weight: 8, arbitrary: record },
    { weight: 2, arbitrary: replace },
    { weight: 5, arbitrary: settle },
    { weight: 2, arbitrary: taken },
    { weight: 5, arbitrary: event },
    { weight: 2, arbitrary: handOver },
    { weight: 1, arbitrary: takeBack },
    { weight: 1, arbitrary: recordInclusions },
    { weight: 1, arbitrary: landing },
    { weight: 1, arbitrary: decline },
    { weight: 2, arbitrary: answer },
    { weight: 1, arbitrary: cancel },
    { weight: 1, arbitrary: forget },
    { weight: 1, arbitrary: wait }
  ),
  { minLength: 20, maxLength: 80, size: "max" }
)
