import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { type WatchedEvent, Watches, type WatchStep } from "../../src/application/ports/Watches.js"
import { Webhooks } from "../../src/application/ports/Webhooks.js"
import * as Following from "../application/watches/Following.js"
import * as Make from "../support/journal/Make.js"
import * as Time from "../support/Time.js"

const hash = (n: number) => Make.word(0xb10c000 + n)

/** An event of the first watch, in a block and at a place in it. */
const event = (blockNumber: number, logIndex = 0, fork = 0, watch = 1): WatchedEvent => ({
  watch,
  blockNumber: BigInt(blockNumber),
  blockHash: hash(blockNumber + 1_000 * fork),
  logIndex,
  data: { blockNumber, logIndex, fork }
})

const last = (
  told: ReadonlyMap<string, ReadonlyArray<{ readonly kind: string; readonly data: object }>>,
  id: string
) => (told.get(id) ?? []).map(({ data, kind }) => [kind, ...Object.values(data)])

/** The source of the only node, with its cursors. */
const source = Effect.gen(function* () {
  const watches = yield* Watches
  const [first] = yield* watches.sources("this one")
  const known = first?.source ?? 0
  return { ...(yield* watches.state(known, 0)), source: known }
})

/** Records a read up to a block for the watches that are lowest. */
const read = (to: number, step: Partial<WatchStep> = {}) =>
  Effect.gen(function* () {
    const watches = yield* Watches
    const { cursors, revision, source: known } = yield* source
    const [cursor] = cursors
    const position = { first: cursor?.first ?? 0n, next: BigInt(to + 1), hashes: [hash(to)] }
    const all = {
      cursor: cursor?.cursor ?? 0,
      position,
      ancestor: null,
      events: [],
      head: BigInt(to),
      ...step
    }
    return yield* watches.advance(known, revision, all)
  })

/** The laws of every store of watches. */
export const watchesSuite = (name: string, layer: Layer.Layer<Watches | Webhooks>): void => {
  const fact = <E>(text: string, body: Effect.Effect<void, E, Watches | Webhooks>) =>
    it.effect(text, () => Effect.provide(body, Layer.fresh(layer)))
  /** The store's number of a watch, by its id. */
  const numberOf = Effect.map(source, ({ watches }) => [...watches.keys()][0] ?? 0)

  describe(`${name}: watches`, () => {
    fact(
      "deliver events in the order of the chain, numbered from 1, each after its confirmations",
      Effect.gen(function* () {
        const id = yield* Following.add({ confirmations: 2, fromBlock: 5n })
        const watch = yield* numberOf
        yield* read(6, { events: [event(6, 3, 0, watch), event(6, 1, 0, watch), event(5, 7, 0, watch)] })
        const first = yield* Following.deliveries()
        expect(last(first, id)).toEqual([["event", 5, 7, 0]])
        yield* read(7)
        const second = (yield* Following.deliveries()).get(id) ?? []
        expect(second.map(({ data, sequence }) => [sequence, data.logIndex])).toEqual([
          [2, 1],
          [3, 3]
        ])
      })
    )

    fact(
      "deliver removals newest first, and only of delivered events",
      Effect.gen(function* () {
        const id = yield* Following.add({ confirmations: 2, fromBlock: 5n })
        const watch = yield* numberOf
        yield* read(7, {
          events: [event(5, 0, 0, watch), event(6, 0, 0, watch), event(6, 1, 0, watch), event(7, 0, 0, watch)]
        })
        yield* read(8, { ancestor: 5n, events: [event(6, 0, 1, watch), event(8, 0, 1, watch)] })
        expect(last(yield* Following.deliveries(), id)).toEqual([
          ["event", 5, 0, 0],
          ["event", 6, 0, 0],
          ["event", 6, 1, 0],
          ["removed", 6, 1, 0],
          ["removed", 6, 0, 0],
          ["event", 6, 0, 1]
        ])
        // The first fork again: its delivered and removed events are delivered again.
        yield* read(9, { ancestor: 5n, events: [event(6, 0, 0, watch)] })
        expect(last(yield* Following.deliveries(), id)).toEqual([
          ["removed", 6, 0, 1],
          ["event", 6, 0, 0]
        ])
        const { nextBlock, sequence, waiting } = (yield* (yield* Watches).get(id)) ?? {}
        expect([nextBlock, sequence, waiting]).toEqual([10n, 8, 0])
      })
    )

    fact(
      "reject a step made from another revision, whole",
      Effect.gen(function* () {
        const watches = yield* Watches
        const id = yield* Following.add({ fromBlock: 5n })
        const watch = yield* numberOf
        const { cursors, revision, source: known } = yield* source
        const step = {
          cursor: cursors[0]?.cursor ?? 0,
          position: { first: 5n, next: 6n, hashes: [hash(5)] },
          ancestor: null,
          events: [event(5, 0, 0, watch)],
          head: 5n
        }
        const after = yield* watches.advance(known, revision, step)
        expect(after).toBeGreaterThan(revision)
        const again = yield* Effect.flip(watches.advance(known, revision, step))
        expect(again.reason).toBe("stale")
        yield* Following.add({ fromBlock: 6n })
        expect((yield* Effect.flip(watches.advance(known, after, step))).reason).toBe("stale")
        expect((yield* watches.get(id))?.sequence).toBe(1)
        expect((yield* Effect.flip(watches.merge(known, after, 1, 2))).reason).toBe("stale")
      })
    )

    fact(
      "keep their place while paused, and continue from there separately until they meet others",
      Effect.gen(function* () {
        const watches = yield* Watches
        const one = yield* Following.add({ fromBlock: 5n })
        const two = yield* Following.add({ fromBlock: 5n })
        yield* read(6)
        expect(yield* watches.setState(one, "paused", "operator")).toBe(true)
        yield* read(8)
        const paused = yield* source
        expect([paused.cursors.length, paused.watches.size]).toEqual([1, 1])
        expect((yield* watches.get(one))?.nextBlock).toBe(7n)
        yield* watches.setState(one, "enabled", "operator")
        const resumed = yield* source
        expect(resumed.cursors.map(({ hashes, next }) => [next, hashes])).toEqual([
          [7n, [hash(6)]],
          [9n, [hash(8)]]
        ])
        expect((yield* watches.state(resumed.source, paused.revision)).fresh).toHaveLength(1)
        yield* read(8)
        const [from, into] = (yield* source).cursors
        yield* watches.merge(resumed.source, (yield* source).revision, from?.cursor ?? 0, into?.cursor ?? 0)
        const merged = yield* source
        expect([merged.cursors.length, new Set(merged.watches.values()).size]).toEqual([1, 1])
        expect([(yield* watches.get(one))?.nextBlock, (yield* watches.get(two))?.nextBlock]).toEqual([9n, 9n])
        expect(yield* watches.setState("another", "paused", "operator")).toBe(false)
      })
    )

    fact(
      "are held while more than 1,000 of their events wait, and continue at 500",
      Effect.gen(function* () {
        const watches = yield* Watches
        const webhooks = yield* Webhooks
        const id = yield* Following.add({ fromBlock: 5n })
        const watch = yield* numberOf
        const { source: known } = yield* source
        const many = (block: number, count: number) =>
          Array.from({ length: count }, (_, place) => event(block, place, 0, watch))
        yield* read(5, { events: many(5, 1_000) })
        expect(yield* watches.balance(known)).toBe(0)
        yield* read(6, { events: many(6, 1) })
        expect(yield* watches.balance(known)).toBe(1)
        expect(yield* watches.get(id)).toMatchObject({ state: "held", waiting: 1_001, nextBlock: 7n })
        expect((yield* source).cursors).toEqual([])
        const [webhook] = yield* webhooks.list(Make.alice)
        const taken = (sequence: number) =>
          webhooks.delivered({ webhookId: webhook?.webhookId ?? "", watchId: id, sequence })
        for (let sequence = 1; sequence <= 500; sequence++) yield* taken(sequence)
        expect(yield* watches.balance(known)).toBe(0)
        yield* taken(501)
        expect(yield* watches.balance(known)).toBe(1)
        expect(yield* watches.get(id)).toMatchObject({ state: "enabled", waiting: 500 })
      })
    )

    fact(
      "belong to one account, are bounded, and go with their webhook",
      Effect.gen(function* () {
        const watches = yield* Watches
        const webhooks = yield* Webhooks
        const other = yield* webhooks.add(Make.bob, Redacted.make("https://example.com/"), [], "operator")
        const stranger = yield* Effect.flip(Following.add({ webhookId: other.webhookId }))
        expect(stranger.reason).toBe("noWebhook")
        for (let n = 0; n < 100; n++) yield* Following.add()
        expect((yield* Effect.flip(Following.add())).reason).toBe("tooMany")
        yield* Following.add({ isBroad: false })
        expect(yield* watches.list(Make.bob, { limit: 100 })).toEqual([])
        const all = yield* watches.list(Make.alice, { limit: 200 })
        expect(all).toHaveLength(101)
        const pages = yield* Effect.forEach([0, all[39]?.number, all[99]?.number], (after) =>
          watches.list(Make.alice, { after, limit: 40 })
        )
        expect(pages.map((page) => page.map(({ watchId }) => watchId))).toEqual(
          [all.slice(0, 40), all.slice(40, 80), all.slice(100)].map((page) => page.map((one) => one.watchId))
        )
        const id = all[0]?.watchId ?? ""
        yield* read(5, { events: [event(5, 0, 0, yield* numberOf)] })
        expect((yield* watches.get(id))?.waiting).toBe(1)
        expect([yield* watches.remove(id, "operator"), yield* watches.remove(id, "operator")]).toEqual([
          true,
          false
        ])
        expect(yield* webhooks.oldest).toBe(null)
        const changes = yield* webhooks.changes(all[0]?.webhookId ?? "", 200)
        expect(changes.slice(0, 2).map(({ by, watchId, what }) => [what, watchId === id, by])).toEqual([
          ["removed", true, "operator"],
          ["added", false, "operator"]
        ])
        expect(changes.filter(({ watchId }) => watchId === null)).toHaveLength(1)
        expect(changes).toHaveLength(103)
        yield* webhooks.remove(all[0]?.webhookId ?? "", "operator")
        expect(yield* watches.list(null, { limit: 100 })).toEqual([])
        expect((yield* watches.sources("this one")).length).toBe(0)
      })
    )

    fact(
      "read at most sixteen nodes of their account; a node that no watch reads does not count",
      Effect.gen(function* () {
        const watches = yield* Watches
        const nodeOf = (n: number, accountId = Make.alice) => ({
          chainId: 31_337n,
          accountId,
          rpc: Redacted.make(`https://node.example/${n}`)
        })
        const ids: Array<string> = []
        for (let n = 0; n < 16; n++) ids.push(yield* Following.add({ node: nodeOf(n) }))
        const refused = yield* Effect.flip(Following.add({ node: nodeOf(16) }))
        expect([refused.reason, refused.message]).toEqual([
          "tooMany",
          expect.stringContaining("at most 16 of the account's nodes")
        ])
        yield* Following.add({ node: nodeOf(3) })
        yield* Following.add()
        yield* Following.add({ accountId: Make.bob, node: nodeOf(16, Make.bob) })
        expect(yield* watches.remove(ids[0] ?? "", "operator")).toBe(true)
        yield* Following.add({ node: nodeOf(16) })
        expect(yield* watches.sources("this one")).toHaveLength(18)
      })
    )

    fact(
      "of an account are about so much together at most",
      Effect.gen(function* () {
        const long = (length: number) => ({ spec: { ...Following.spec, fields: { to: "x".repeat(length) } } })
        yield* Following.add(long(16_776_000))
        const refused = yield* Effect.flip(Following.add(long(2_000)))
        expect([refused.reason, refused.message]).toEqual(["tooMany", expect.stringContaining("in total")])
        yield* Following.add(long(500))
        yield* Following.add({ accountId: Make.bob, ...long(2_000) })
      })
    )

    fact(
      "of one node have one reader at a time; nodes of accounts are separate from the operator's and from each other",
      Effect.gen(function* () {
        const watches = yield* Watches
        yield* Following.add()
        yield* Following.add()
        const rpc = Redacted.make("http://127.0.0.1:8545/key")
        const node = { chainId: 31_337n, rpc }
        const id = yield* Following.add({ node: { ...node, accountId: Make.alice } })
        yield* Following.add({ node: { ...node, accountId: Make.alice } })
        yield* Following.add({ accountId: Make.bob, node: { ...node, accountId: Make.bob } })
        const shown = (yield* watches.get(id))?.rpc
        expect(shown === null || shown === undefined ? null : Redacted.value(shown)).toBe(Redacted.value(rpc))
        const all = yield* watches.sources("one")
        expect(all.map(({ accountId, rpc: own }) => [accountId, own === null])).toEqual([
          [null, true],
          [Make.alice, false],
          [Make.bob, false]
        ])
        const known = all[0]?.source ?? 0
        expect(yield* watches.claim(known, "one", 10_000)).not.toBe(null)
        expect(yield* watches.claim(known, "two", 10_000)).toBe(null)
        expect((yield* watches.sources("two")).length).toBe(2)
        expect((yield* watches.sources("one")).length).toBe(3)
        yield* watches.release(known, "two")
        expect(yield* watches.claim(known, "two", 10_000)).toBe(null)
        yield* Time.adjust("10 seconds")
        expect(yield* watches.claim(known, "two", 20_000)).not.toBe(null)
        yield* watches.release(known, "two")
        // A clock that was ahead: the claim of a process that died before the correction does not end.
        expect(yield* watches.claim(known, "the dead one", 3_600_000)).not.toBe(null)
        expect((yield* watches.sources("two")).length).toBe(3)
        expect(yield* watches.claim(known, "two", 20_000)).not.toBe(null)
        yield* watches.note(known, "it is away")
        expect(
          (yield* watches.list(null, { limit: 100 })).filter(({ problem }) => problem !== null)
        ).toHaveLength(2)
      })
    )
  })
}
