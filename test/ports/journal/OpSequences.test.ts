import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import type * as Records from "../../../src/application/ports/journal/Records.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Layers from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

/**
 * The table of an element's states, followed by a model without SQL: after any calls in any order, the journal matches
 * the table.
 */

type State = "ready" | "sent" | "included" | "final"

/** An element: its live version, and the exposed earlier ones, each under its nonce. */
interface Element {
  state: State | "failed"
  exposed: boolean
  key: number
  sequence: number
  hash: number
  readonly before: Array<{ readonly sequence: number; readonly hash: number }>
  /** The nonce of the transaction that carries it. */
  carrier: number | null
  /** A transaction of ours has carried it: a lane gives its ops to one bundler, its own or an external one. */
  wasCarried: boolean
  /** It is watched without a transaction of ours: a bundler has it, or it was found on the chain. */
  watched: "handed" | "found" | null
  /** A failure was recorded while it was sent. */
  noted: boolean
}

interface Carrier {
  state: "signed" | "mined" | "settled" | "external"
  readonly elements: ReadonlyArray<string>
}

class Table {
  readonly elements = new Map<string, Element>()
  readonly carriers: Array<Carrier> = []
  readonly answered = new Set<string>()
  hashes = 0

  named(name: string): Element {
    const found = this.elements.get(name)
    if (found === undefined) throw new Error(`no element ${name}`)
    return found
  }

  in(...states: ReadonlyArray<Element["state"]>): ReadonlyArray<string> {
    return [...this.elements].flatMap(([name, { state }]) => (states.includes(state) ? [name] : []))
  }

  /** The element with the nonce; null: none. */
  owner(key: number, sequence: number): Element | null {
    return (
      [...this.elements.values()].find(
        (it) => it.key === key && it.sequence === sequence && it.state !== "failed"
      ) ?? null
    )
  }

  nextOf(key: number): number {
    return (
      Math.max(
        -1,
        ...[...this.elements.values()].flatMap((it) =>
          it.key === key && it.state !== "failed" ? it.sequence : []
        )
      ) + 1
    )
  }

  /** Elements of the state that are watched without a transaction of ours. */
  watched(state: Element["state"]): ReadonlyArray<string> {
    return this.in(state).filter((name) => this.named(name).watched !== null)
  }

  /** Unknown ops. */
  strays(count: number) {
    return [{ opId: 1_000_000 + count, userOpHash: Make.word(1), signed: Hex.unsafe("0x00") }]
  }

  /** An element that the chain took back or never had is ready again, exposed. */
  back(name: string): void {
    Object.assign(this.named(name), { state: "ready", carrier: null })
  }
}

const nameOf = ({ index, requestId }: Pick<Records.Op, "index" | "requestId">) => `${requestId}/${index}`

/** Earlier versions under the element's present nonce. */
const versionsOf = ({ before, sequence }: Element): ReadonlyArray<number> =>
  before.flatMap((version) => (version.sequence === sequence ? version.hash : []))

const preparedOf = (name: string, element: Element): Records.PreparedOp => {
  const [requestId = "", index] = name.split("/")
  return Make.op({
    requestId,
    index: Number(index),
    nonceKey: BigInt(element.key),
    sequence: BigInt(element.sequence),
    userOpHash: Make.word(element.hash)
  })
}

interface Step {
  readonly kind: (typeof kinds)[number]
  readonly rank: number
  readonly count: number
}

const kinds = [
  "accept",
  "record",
  "record",
  "settle",
  "finalise",
  "unsettle",
  "external",
  "renew",
  "renumber",
  "fail",
  "publish",
  "cancel",
  "handOver",
  "handOver",
  "takeBack",
  "land",
  "deepen",
  "vanish",
  "replace",
  "answer"
] as const

const steps = fc.array(
  fc.record({ kind: fc.constantFrom(...kinds), rank: fc.nat(40), count: fc.integer({ min: 1, max: 3 }) }),
  { minLength: 15, maxLength: 45 }
)

const pick = <A>(list: ReadonlyArray<A>, rank: number, count: number): ReadonlyArray<A> =>
  list.length === 0
    ? []
    : Array.from({ length: Math.min(count, list.length) }, (_, n) => list[(rank + n) % list.length] as A)

const { lane } = Make

const apply = (journal: Journals.Methods, table: Table, { count, kind, rank }: Step, at: number) =>
  Effect.gen(function* () {
    const ids = new Map((yield* journal.ready(lane, 500)).map((op) => [nameOf(op), op]))
    const nonces = (state: Carrier["state"]) =>
      table.carriers.flatMap((carrier, nonce) => (carrier.state === state ? [nonce] : []))
    switch (kind) {
      case "accept": {
        const requestId = `r${at}`
        // Every third element requests a nonce that another one may have.
        const key = rank % 4
        const first = rank % 3 === 0 ? rank % 5 : table.nextOf(key)
        const wanted = Array.from({ length: count }, (_, index) => ({
          index,
          element: {
            state: "ready" as const,
            exposed: false,
            key,
            sequence: first + index,
            hash: ++table.hashes,
            before: [],
            carrier: null,
            wasCarried: false,
            watched: null,
            noted: false
          }
        }))
        const taken = wanted.find(({ element }) => table.owner(element.key, element.sequence) !== null)
        const result = yield* journal.accept([
          Make.acceptance(
            requestId,
            wanted.map(({ element, index }) => preparedOf(`${requestId}/${index}`, element))
          )
        ])
        const owner = taken === undefined ? null : table.owner(taken.element.key, taken.element.sequence)
        expect(result).toEqual([
          taken === undefined
            ? { _tag: "accepted" }
            : {
                _tag: "nonceTaken",
                index: taken.index,
                isSettled: owner?.state === "included" || owner?.state === "final"
              }
        ])
        if (taken === undefined)
          for (const { element, index } of wanted) table.elements.set(`${requestId}/${index}`, element)
        return
      }
      case "record": {
        const names = pick(table.in("ready"), rank, count)
        const nonce = table.carriers.length
        const ops = names.map((name) => ({
          opId: ids.get(name)?.opId ?? 0,
          userOpHash: Make.word(table.named(name).hash)
        }))
        expect(yield* journal.record(Make.recording(BigInt(nonce), ops))).toEqual({ _tag: "recorded" })
        table.carriers.push({ state: "signed", elements: names })
        for (const name of names)
          Object.assign(table.named(name), {
            state: "sent",
            exposed: true,
            carrier: nonce,
            wasCarried: true
          })
        return
      }
      case "settle": {
        const [nonce] = pick(nonces("signed"), rank, 1)
        if (nonce === undefined) return
        const carrier = table.carriers[nonce] as Carrier
        const own = carrier.elements.filter((name) => table.named(name).carrier === nonce)
        const landed = pick(own, rank, Math.max(1, own.length - 1))
        yield* journal.settle(
          Make.mined(BigInt(nonce)),
          landed.map((name) => Make.landed(Make.word(table.named(name).hash), BigInt(nonce))),
          false
        )
        carrier.state = "mined"
        for (const name of landed) table.named(name).state = "included"
        return
      }
      case "finalise": {
        const [nonce] = pick(nonces("mined"), rank, 1)
        if (nonce === undefined) return
        yield* journal.finalise(lane, BigInt(nonce), Make.settledDepth)
        const carrier = table.carriers[nonce] as Carrier
        carrier.state = "settled"
        for (const name of carrier.elements) {
          const element = table.named(name)
          if (element.carrier !== nonce) continue
          if (element.state === "included") element.state = "final"
          else if (element.state === "sent") table.back(name)
        }
        return
      }
      case "unsettle": {
        const [nonce] = pick(nonces("mined"), rank, 1)
        if (nonce === undefined) return
        yield* journal.unsettle(lane, BigInt(nonce))
        const carrier = table.carriers[nonce] as Carrier
        carrier.state = "signed"
        for (const name of carrier.elements) {
          const element = table.named(name)
          if (element.carrier !== nonce) continue
          element.state = "sent"
          table.answered.delete(name.split("/")[0] ?? "")
        }
        return
      }
      case "external": {
        const [nonce] = pick(nonces("signed"), rank, 1)
        if (nonce === undefined) return
        yield* journal.recordExternalUse(lane, BigInt(nonce), [])
        const carrier = table.carriers[nonce] as Carrier
        carrier.state = "external"
        for (const name of carrier.elements) if (table.named(name).carrier === nonce) table.back(name)
        return
      }
      case "renew": {
        const names = pick([...table.elements.keys()], rank, count)
        const renewed = names.map((name) => {
          const element = table.named(name)
          return preparedOf(name, { ...element, hash: ++table.hashes })
        })
        const results = yield* journal.renew(lane, renewed)
        for (const [place, name] of names.entries()) {
          const element = table.named(name)
          if (element.state !== "ready") {
            expect(results[place]).toBeNull()
            continue
          }
          const before = ids.get(name)?.opId ?? 0
          if (element.exposed) {
            expect(results[place]).toBeGreaterThan(before)
            element.before.push({ sequence: element.sequence, hash: element.hash })
          } else expect(results[place]).toBe(before)
          element.hash = table.hashes - names.length + place + 1
        }
        return
      }
      case "renumber": {
        const [name] = pick(table.in("ready"), rank, 1)
        if (name === undefined) return
        const element = table.named(name)
        const moved = {
          ...element,
          sequence: rank % 2 === 0 ? table.nextOf(element.key) : rank % 7,
          hash: ++table.hashes,
          exposed: false
        }
        const owner = table.owner(moved.key, moved.sequence)
        const isTaken = owner !== null && owner !== element
        const result = yield* journal.renumber(lane, [preparedOf(name, moved)])
        expect(result._tag).toBe(isTaken ? "nonceTaken" : "renumbered")
        if (!isTaken && element.exposed)
          element.before.push({ sequence: element.sequence, hash: element.hash })
        if (!isTaken) Object.assign(element, moved)
        return
      }
      case "fail": {
        const names = pick([...table.elements.keys()], rank, count)
        yield* journal.fail(
          lane,
          names.map((name) => {
            const [requestId = "", index] = name.split("/")
            return { requestId, failed: [Make.failed(Number(index))] }
          })
        )
        for (const name of names) {
          const element = table.named(name)
          if (table.answered.has(name.split("/")[0] ?? "")) continue
          if (element.state === "ready") element.state = "failed"
          if (element.state === "sent") element.noted = true
        }
        return
      }
      case "publish": {
        const names = pick(table.in("ready"), rank, count)
        yield* journal.publish(
          lane,
          names.map((name) => ids.get(name)?.opId ?? 0)
        )
        for (const name of names) table.named(name).exposed = true
        return
      }
      case "cancel": {
        const [name] = pick([...table.elements.keys()], rank, 1)
        const requestId = name?.split("/")[0]
        if (requestId === undefined) return
        const own = [...table.elements].filter(([each]) => each.startsWith(`${requestId}/`))
        const isFinal = table.answered.has(requestId)
        const hasLeft = yield* Effect.map(
          journal.requests([requestId]),
          ([record]) =>
            (record?.signed.length ?? 0) > 0 ||
            own.some(([, { state }]) => state !== "ready" && state !== "failed")
        )
        const result = yield* journal.cancel(requestId, {
          code: "request_cancelled",
          outcome: "{}",
          onlyUnsigned: false
        })
        expect(result).toBe(isFinal || !hasLeft ? "final" : "kept")
        if (isFinal) return
        if (!hasLeft) table.answered.add(requestId)
        for (const [, element] of own)
          if (element.state === "ready" && !element.exposed && versionsOf(element).length === 0)
            element.state = "failed"
        return
      }
      case "handOver": {
        const own = table.in("ready").filter((name) => !table.named(name).wasCarried)
        const names = pick(own, rank, count)
        const handed = names.map((name) => ({
          opId: ids.get(name)?.opId ?? 0,
          userOpHash: Make.word(table.named(name).hash),
          signed: Hex.unsafe("0x5160")
        }))
        const handover = { node: Make.node(), since: 1n, ops: [...handed, ...table.strays(count)] }
        const given = new Set(handed.map(({ opId }) => opId))
        expect(new Set(yield* journal.handOver(lane, handover))).toEqual(given)
        for (const name of names)
          Object.assign(table.named(name), { state: "sent", exposed: true, watched: "handed", noted: false })
        return
      }
      case "takeBack": {
        const isDead = rank % 2 === 0
        const names = pick([...table.elements.keys()], rank, count)
        const hashes = names.map((name) => Make.word(table.named(name).hash))
        yield* journal.takeBack(lane, hashes, isDead)
        for (const name of names) {
          const element = table.named(name)
          if (element.state !== "sent" || element.watched !== "handed") continue
          const state = isDead && element.noted ? "failed" : "ready"
          Object.assign(element, { state, exposed: !isDead, watched: null })
        }
        return
      }
      case "land": {
        const open = table.in("ready", "sent").filter((name) => table.named(name).carrier === null)
        const names = pick(open, rank, count)
        yield* journal.recordInclusions(
          lane.signer,
          lane.chainId,
          names.map((name) => Make.landed(Make.word(table.named(name).hash), 1n)),
          Make.node()
        )
        for (const name of names) {
          const element = table.named(name)
          Object.assign(element, { state: "included", watched: element.watched ?? "found" })
        }
        return
      }
      case "deepen": {
        const names = pick(table.watched("included"), rank, count)
        yield* journal.finaliseInclusions(
          lane.signer,
          lane.chainId,
          names.map((name) => Make.deep(Make.word(table.named(name).hash)))
        )
        for (const name of names) Object.assign(table.named(name), { state: "final", watched: null })
        return
      }
      case "vanish": {
        const names = pick(table.watched("included"), rank, count)
        yield* journal.revertInclusions(
          lane.signer,
          lane.chainId,
          names.map((name) => Make.word(table.named(name).hash))
        )
        for (const name of names) {
          const element = table.named(name)
          table.answered.delete(name.split("/")[0] ?? "")
          if (element.watched === "handed") element.state = "sent"
          else Object.assign(element, { state: "ready", exposed: true, watched: null })
        }
        return
      }
      case "replace": {
        const nonce = rank % Math.max(1, table.carriers.length)
        const carrier = table.carriers[nonce]
        const { raw, ...version } = Make.recording(BigInt(nonce), [], { txHash: Make.word(0x9000 + at) })
        expect(yield* journal.replace({ ...version, raw, addedCost: 0n })).toBe(carrier?.state === "signed")
        return
      }
      case "answer": {
        const [name] = pick([...table.elements.keys()], rank, 1)
        const requestId = name?.split("/")[0]
        if (requestId === undefined || table.answered.has(requestId)) return
        const own = [...table.elements].filter(([each]) => each.startsWith(`${requestId}/`))
        const isOver = own.every(([, { state }]) => state !== "ready" && state !== "sent")
        expect(yield* journal.ended([requestId])).toEqual(isOver ? [requestId] : [])
        const sequence = (yield* journal.newestEvents([requestId])).get(requestId) ?? 0
        const answer = { requestId, outcome: `"${at}"`, summary: {}, sequence }
        expect(yield* journal.answer([{ ...answer, sequence: sequence - 1 }])).toEqual([null])
        expect(yield* journal.answer([answer])).toEqual([isOver ? answer.outcome : null])
        if (isOver) table.answered.add(requestId)
      }
    }
  })

const stored = { ready: "accepted", sent: "sent", included: "settled", final: "settled" } as const

/** The journal's elements match the table. */
const compare = (journal: Journals.Methods, table: Table) =>
  Effect.gen(function* () {
    const ready = yield* journal.ready(lane, 500)
    const seen = ready.map((op) => [nameOf(op), op.exposed, op.nonceKey, op.sequence, op.userOpHash])
    expect(new Map(seen.map(([name, ...rest]) => [name, rest]))).toEqual(
      new Map(
        table.in("ready").map((name) => {
          const { exposed, hash, key, sequence } = table.named(name)
          return [name, [exposed, BigInt(key), BigInt(sequence), Make.word(hash)]]
        })
      )
    )
    const versions = yield* journal.versions(ready.map(({ opId }) => opId))
    for (const op of ready)
      expect(versions.flatMap((it) => (it.opId === op.opId ? it.userOpHash : []))).toEqual(
        versionsOf(table.named(nameOf(op))).map((hash) => Make.word(hash))
      )
    for (const [name, element] of table.elements) {
      if (element.state === "failed") continue
      const op = yield* journal.findOp(Make.alice, Make.chainId, Make.word(element.hash))
      expect([name, op?.state]).toEqual([name, stored[element.state]])
    }
    const watched = yield* journal.remoteSubmissions
    expect(new Set(watched.map(({ userOpHash }) => userOpHash))).toEqual(
      new Set(
        [...table.watched("sent"), ...table.watched("included")].map((name) =>
          Make.word(table.named(name).hash)
        )
      )
    )
    const open = yield* journal.openOf(lane)
    expect(open.map(({ nonce, state }) => [Number(nonce), state])).toEqual(
      table.carriers.flatMap(({ state }, nonce) =>
        state === "signed" || state === "mined" ? [[nonce, state]] : []
      )
    )
  })

const life = (list: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const table = new Table()
    for (const [at, step] of list.entries()) {
      yield* apply(journal, table, step, at)
      yield* compare(journal, table)
    }
  })

describe("the states of elements", { timeout: 240_000 }, () => {
  for (const { layer, name } of Layers.adaptersOn(Postgres.perFile()))
    it(`follow the table in ${name}, whatever the order of events`, () =>
      fc.assert(
        fc.asyncProperty(steps, (list) => Effect.runPromise(Effect.provide(life(list), layer))),
        { numRuns: name === "SQLite" ? 60 : 12, endOnFailure: true }
      ))
})
