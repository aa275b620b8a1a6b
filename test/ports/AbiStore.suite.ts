import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { AbiStore, maxCharacters, maxDefinitions } from "../../src/application/ports/AbiStore.js"
import type { AccountId } from "../../src/application/ports/Tenants.js"
import * as ErrorDefinition from "../../src/domain/abi/ErrorDefinition.js"
import * as EventDefinition from "../../src/domain/abi/Event.js"
import { alice, bob } from "../support/journal/Make.js"

const event = (text: string) => Result.getOrThrow(EventDefinition.parse(text))
const error = (text: string) => Result.getOrThrow(ErrorDefinition.parse(text))

const transfer = event("event Transfer(address indexed from, address indexed to, uint256 value)")
const deposit = event("event Deposit(address indexed from, uint256 value)")
const broke = error("error Broke(uint256 missing)")

type Service = Context.Service.Shape<typeof AbiStore>

/** An empty registry. */
export interface Database {
  /** Each build opens the registry as another process does. */
  readonly layer: Layer.Layer<AbiStore>
  /** Registers many events of one account, as if by another process. */
  readonly fill: (
    account: AccountId,
    events: ReadonlyArray<EventDefinition.EventDefinition>
  ) => Effect.Effect<void, unknown>
}

export const suite = (name: string, database: Effect.Effect<Database, never, Scope.Scope>): void => {
  const open = (layer: Layer.Layer<AbiStore>): Effect.Effect<Service, never, Scope.Scope> =>
    Effect.map(Layer.build(Layer.fresh(layer)), Context.get(AbiStore))
  const fact = (
    text: string,
    body: (store: Service, fill: Database["fill"]) => Effect.Effect<void, unknown>
  ) =>
    it.effect(text, () =>
      Effect.flatMap(database, ({ fill, layer }) => Effect.flatMap(open(layer), (store) => body(store, fill)))
    )
  const processes = (text: string, body: (one: Service, other: Service) => Effect.Effect<void, unknown>) =>
    it.effect(text, () =>
      Effect.flatMap(database, ({ layer }) =>
        Effect.flatMap(Effect.all([open(layer), open(layer)]), ([one, other]) => body(one, other))
      )
    )

  describe(`definitions in ${name}`, () => {
    fact("an account begins without definitions", (store) =>
      Effect.gen(function* () {
        expect(yield* store.events(alice)).toEqual([])
        expect(yield* store.errors(alice)).toEqual([])
      })
    )

    fact("reads definitions back in the order of registration", (store) =>
      Effect.gen(function* () {
        yield* store.addEvent(alice, transfer)
        yield* store.addEvent(alice, deposit)
        yield* store.addError(alice, broke)
        yield* store.addEvent(alice, event("event A((uint8 a, bytes[2][] b)[] indexed t, string) anonymous"))
        expect(yield* store.events(alice)).toEqual([
          transfer,
          deposit,
          event("event A((uint8 a, bytes[2][] b)[] indexed t, string) anonymous")
        ])
        expect(yield* store.errors(alice)).toEqual([broke])
      })
    )

    fact("reads back names that are words elsewhere", (store) =>
      Effect.gen(function* () {
        const inputs = ["payable", "uint256", "memory", "calldata"].map((name) => ({ name, type: "address" }))
        const bytes = { name: "storage", type: "bytes" }
        const odd = Result.getOrThrow(
          EventDefinition.fromJson({ type: "event", name: "bool", inputs: [...inputs, bytes] })
        )
        const wrong = Result.getOrThrow(
          ErrorDefinition.fromJson({ type: "error", name: "bool", inputs: [...inputs, bytes] })
        )
        yield* store.addEvent(alice, odd)
        yield* store.addError(alice, wrong)
        expect(yield* store.events(alice)).toEqual([odd])
        expect(yield* store.errors(alice)).toEqual([wrong])
      })
    )

    fact("registering the same canonical definition again changes nothing", (store) =>
      Effect.gen(function* () {
        yield* store.addEvent(alice, transfer)
        yield* store.addEvent(alice, event("Transfer (address indexed from,address indexed to,uint value)"))
        yield* store.addError(alice, broke)
        yield* store.addError(alice, error("Broke(uint missing)"))
        expect(yield* store.events(alice)).toEqual([transfer])
        expect(yield* store.errors(alice)).toEqual([broke])
      })
    )

    fact("definitions of one selector that differ in names or indexing are several", (store) =>
      Effect.gen(function* () {
        const other = event("event Transfer(address indexed from, address indexed to, uint256 indexed id)")
        yield* store.addEvent(alice, transfer)
        yield* store.addEvent(alice, other)
        expect(yield* store.events(alice)).toEqual([transfer, other])
      })
    )

    fact("an event and an error of one text are two definitions", (store) =>
      Effect.gen(function* () {
        yield* store.addEvent(alice, event("event Broke(uint256 missing)"))
        yield* store.addError(alice, broke)
        expect((yield* store.events(alice)).length).toBe(1)
        expect((yield* store.errors(alice)).length).toBe(1)
      })
    )

    fact("an account sees no definitions of another account", (store) =>
      Effect.gen(function* () {
        yield* store.addEvent(alice, transfer)
        yield* store.addError(alice, broke)
        expect(yield* store.events(bob)).toEqual([])
        expect(yield* store.errors(bob)).toEqual([])
        yield* store.addEvent(bob, deposit)
        yield* store.addEvent(bob, transfer)
        expect(yield* store.events(bob)).toEqual([deposit, transfer])
        expect(yield* store.events(alice)).toEqual([transfer])
      })
    )

    fact("concurrent readers share one read, and an interrupted reader keeps no other from it", (store) =>
      Effect.gen(function* () {
        yield* store.addEvent(alice, transfer)
        const readers = yield* Effect.replicateEffect(Effect.forkChild(store.events(alice)), 4)
        yield* Effect.yieldNow
        for (const reader of readers.slice(0, 2)) reader.interruptUnsafe()
        const [first, second] = yield* Effect.forEach(readers.slice(2), Fiber.join)
        expect([first, second]).toEqual([[transfer], [transfer]])
        expect(first).toBe(second)
      })
    )

    fact("an earlier read does not change with later registrations", (store) =>
      Effect.gen(function* () {
        yield* store.addEvent(alice, transfer)
        const read = yield* store.events(alice)
        yield* store.addEvent(alice, deposit)
        expect(read).toEqual([transfer])
      })
    )

    fact("the list is the same one until something is registered", (store) =>
      Effect.gen(function* () {
        yield* store.addEvent(alice, transfer)
        yield* store.addError(alice, broke)
        const events = yield* store.events(alice)
        const errors = yield* store.errors(alice)
        yield* store.addEvent(alice, transfer)
        yield* store.addEvent(bob, deposit)
        expect(yield* store.events(alice)).toBe(events)
        expect(yield* store.errors(alice)).toBe(errors)
        yield* store.addEvent(alice, deposit)
        expect(yield* store.events(alice)).not.toBe(events)
      })
    )

    fact("concurrently registered definitions are all there, each once", (store) =>
      Effect.gen(function* () {
        const texts = Array.from({ length: 40 }, (_, n) => `event E${n % 20}(uint256 indexed n)`)
        yield* Effect.forEach(texts, (text) => store.addEvent(alice, event(text)), {
          concurrency: "unbounded"
        })
        const names = (yield* store.events(alice)).map((one) => one.name)
        expect(new Set(names).size).toBe(20)
        expect(names.length).toBe(20)
      })
    )

    processes(
      "a process sees another process's definitions immediately and in the same order",
      (one, other) =>
        Effect.gen(function* () {
          yield* one.addEvent(alice, transfer)
          expect(yield* other.events(alice)).toEqual([transfer])
          yield* other.addEvent(alice, deposit)
          yield* other.addEvent(alice, transfer)
          yield* other.addError(alice, broke)
          expect(yield* one.events(alice)).toEqual([transfer, deposit])
          expect(yield* one.errors(alice)).toEqual([broke])
          expect(yield* other.events(alice)).toEqual([transfer, deposit])
        })
    )

    processes("processes that register the same definitions concurrently register them once", (one, other) =>
      Effect.gen(function* () {
        const add = (n: number) =>
          Effect.all(
            [one, other].map((store) => store.addEvent(alice, event(`event E${n}()`))),
            { concurrency: "unbounded" }
          )
        yield* Effect.forEach(Array.from({ length: 20 }).keys(), add, { concurrency: "unbounded" })
        const seen = yield* one.events(alice)
        expect(seen.map(({ name: text }) => text).sort()).toEqual(
          Array.from({ length: 20 }, (_, n) => `E${n}`).sort()
        )
        expect(yield* other.events(alice)).toEqual(seen)
      })
    )

    it.effect("definitions outlive the process that registered them", () =>
      Effect.gen(function* () {
        const { layer } = yield* database
        yield* Effect.scoped(Effect.flatMap(open(layer), (store) => store.addEvent(alice, transfer)))
        const store = yield* open(layer)
        yield* store.addEvent(alice, transfer)
        expect(yield* store.events(alice)).toEqual([transfer])
      })
    )

    fact(
      `${maxDefinitions} definitions fit, one more is refused, and existing ones may be registered again`,
      (store, fill) =>
        Effect.gen(function* () {
          const names = Array.from({ length: maxDefinitions - 1 }, (_, n) => event(`event E${n}()`))
          yield* fill(alice, names)
          yield* store.addError(alice, broke)
          for (const refused of [store.addEvent(alice, transfer), store.addError(alice, error("error O()"))])
            expect(yield* Effect.flip(refused)).toMatchObject({
              _tag: "AbiStoreError",
              reason: "full",
              message: `the account has ${maxDefinitions} definitions already`
            })
          yield* store.addError(alice, broke)
          yield* store.addEvent(alice, event("event E7()"))
          expect(yield* store.events(alice)).toEqual(names)
          yield* store.addEvent(bob, transfer)
          expect(yield* store.events(bob)).toEqual([transfer])
        })
    )

    fact("definitions have a total size limit, whatever their number", (store, fill) =>
      Effect.gen(function* () {
        const list = Array.from({ length: 900 }, () => "uint256").join(", ")
        const long = (n: number) => event(`event E${String(n).padStart(4, "0")}(${list})`)
        const fit = Math.floor(maxCharacters / long(0).canonical.length)
        yield* fill(
          alice,
          Array.from({ length: fit }, (_, n) => long(n))
        )
        expect(yield* Effect.flip(store.addEvent(alice, long(fit)))).toMatchObject({
          reason: "full",
          message: `the definitions of the account would have more than ${maxCharacters} characters`
        })
        yield* store.addEvent(alice, long(0))
        yield* store.addEvent(alice, transfer)
        expect((yield* store.events(alice)).length).toBe(fit + 1)
      })
    )
  })
}
