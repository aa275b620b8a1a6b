import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as AddError from "../../../src/application/endpoints/registry/AddError.js"
import * as AddEvent from "../../../src/application/endpoints/registry/AddEvent.js"
import { AbiStore, maxDefinitions } from "../../../src/application/ports/AbiStore.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Event from "../../../src/domain/abi/Event.js"
import { envelope, post, start } from "../../support/http/Service.js"
import * as InMemory from "../../support/journal/InMemory.js"

const acme = "acme" as AccountId

/** The service with its real registration use cases over an in-memory store. */
const service = Effect.gen(function* () {
  const store = Context.get(yield* Layer.build(InMemory.abiStore), AbiStore)
  const { url } = yield* start({
    handlers: {
      addEvent: (caller, request) => Effect.provideService(AddEvent.run(caller, request), AbiStore, store),
      addError: (caller, request) => Effect.provideService(AddError.run(caller, request), AbiStore, store)
    }
  })
  return { url, store }
})

const uint = { name: "n", type: "uint256", internalType: "uint256" }
const event = { type: "event", name: "E", inputs: [{ ...uint, indexed: false }], anonymous: false }
const error = { type: "error", name: "E", inputs: [uint] }
const refused = (url: string, path: string, body: unknown) => Effect.map(post(url, path, body), envelope)

describe("registration", () => {
  it.live("a registration returns the canonical definition", () =>
    Effect.gen(function* () {
      const { store, url } = yield* service
      const tuple = {
        name: "order",
        type: "tuple[2][]",
        internalType: "struct Shop.Order[2][]",
        indexed: true,
        components: [
          { name: "id", type: "uint", internalType: "uint256" },
          { name: "parts", type: "tuple", components: [{ name: "", type: "bytes" }, { type: "address" }] }
        ]
      }
      for (const [inputs, rest, eventDef] of [
        [[{ ...uint, indexed: false }], { anonymous: false }, "event E(uint256 n)"],
        [[uint], {}, "event E(uint256 n)"],
        [[{ type: "int", indexed: true }], { anonymous: true }, "event E(int256 indexed) anonymous"],
        [[], {}, "event E()"],
        [[tuple], {}, "event E((uint256 id, (bytes, address) parts)[2][] indexed order)"]
      ] as const) {
        const eventABI = { type: "event", name: "E", inputs, ...rest }
        const answer = yield* post(url, "/addEvent", { eventABI })
        expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { status: 200, eventDef }])
      }
      const answer = yield* post(url, "/addError", {
        errorABI: { type: "error", name: "Broke", inputs: [{ ...uint, type: "uint" }, { type: "string[3]" }] }
      })
      expect([answer.status, JSON.parse(answer.text)]).toEqual([
        200,
        { status: 200, errorDef: "error Broke(uint256 n, string[3])" }
      ])
      expect((yield* store.events(acme)).map(({ canonical }) => canonical)).toEqual([
        "event E(uint256 n)",
        "event E(int256 indexed) anonymous",
        "event E()",
        "event E((uint256 id, (bytes, address) parts)[2][] indexed order)"
      ])
      expect((yield* store.errors(acme)).length).toBe(1)
    })
  )

  it.live("a registration accepts output of old compilers and Vyper, and any word as a name", () =>
    Effect.gen(function* () {
      const { store, url } = yield* service
      const left = { gas: 2_300, signature: "0x12", unit: "wei" }
      const inputs = [
        { name: "payable", type: "address", ...left },
        { name: "uint256", type: "(address,uint256)[2]" },
        { name: "calldata", type: "bytes", indexed: true }
      ]
      const eventABI = { type: "event", name: "memory", inputs, ...left }
      const eventDef = "event memory(address payable, (address, uint256)[2] uint256, bytes indexed calldata)"
      const added = yield* post(url, "/addEvent", { eventABI })
      expect([added.status, JSON.parse(added.text)]).toEqual([200, { status: 200, eventDef }])
      const errorABI = { type: "error", name: "E", inputs: inputs.slice(0, 2), ...left }
      const errorDef = "error E(address payable, (address, uint256)[2] uint256)"
      const other = yield* post(url, "/addError", { errorABI })
      expect([other.status, JSON.parse(other.text)]).toEqual([200, { status: 200, errorDef }])
      const names = (yield* store.events(acme)).flatMap((event) => event.inputs.map(({ name }) => name))
      expect(names).toEqual(["payable", "uint256", "calldata"])
    })
  )

  it.live("a registration with impossible values is refused at its place", () =>
    Effect.gen(function* () {
      const { store, url } = yield* service
      const input = (change: object) => ({ ...event, inputs: [{ ...uint, ...change }] })
      for (const [eventABI, path] of [
        [undefined, "eventABI"],
        [[event], "eventABI"],
        ["event E(uint256 n)", "eventABI"],
        [{ ...event, type: undefined }, "eventABI.type"],
        [{ ...event, type: "error" }, "eventABI.type"],
        [{ ...event, name: undefined }, "eventABI.name"],
        [{ ...event, name: "a b" }, "eventABI.name"],
        [{ ...event, name: "" }, "eventABI.name"],
        [{ ...event, name: 7 }, "eventABI.name"],
        [{ ...event, inputs: undefined }, "eventABI.inputs"],
        [{ ...event, inputs: {} }, "eventABI.inputs"],
        [{ ...event, inputs: ["uint256"] }, "eventABI.inputs[0]"],
        [{ ...event, inputs: new Array(4).fill({ ...uint, indexed: true }) }, "eventABI.inputs"],
        [{ ...event, anonymous: "no" }, "eventABI.anonymous"],
        [{ ...event, anonymus: true }, "eventABI.anonymus"],
        [input({ type: "uint257" }), "eventABI.inputs[0].type"],
        [input({ type: undefined }), "eventABI.inputs[0].type"],
        [input({ type: "tuple" }), "eventABI.inputs[0].type"],
        [
          input({ type: "tuple", components: [{ type: "boolean" }] }),
          "eventABI.inputs[0].components[0].type"
        ],
        [input({ type: "tuple", components: [7] }), "eventABI.inputs[0].components[0]"],
        [input({ name: "in dex" }), "eventABI.inputs[0].name"],
        [input({ name: null }), "eventABI.inputs[0].name"],
        [input({ indexed: 1 }), "eventABI.inputs[0].indexed"],
        [input({ index: true }), "eventABI.inputs[0].index"]
      ] as const) {
        const { code, details } = yield* refused(url, "/addEvent", { eventABI })
        expect([code, details[0]?.path], path).toEqual([
          expect.stringMatching(/^(invalid_request|unknown_field)$/),
          path
        ])
        expect(details[0]?.message.length, path).toBeGreaterThan(5)
      }
      for (const [errorABI, path] of [
        [undefined, "errorABI"],
        [{ ...error, type: "event" }, "errorABI.type"],
        [{ ...error, name: "uint 256" }, "errorABI.name"],
        [{ ...error, anonymous: false }, "errorABI.anonymous"],
        [{ ...error, inputs: [{ ...uint, indexed: true }] }, "errorABI.inputs[0].indexed"],
        [{ ...error, inputs: [{ ...uint, type: "map" }] }, "errorABI.inputs[0].type"]
      ] as const) {
        const { details } = yield* refused(url, "/addError", { errorABI })
        expect(details[0]?.path).toBe(path)
      }
      expect(yield* store.events(acme)).toEqual([])
      expect(yield* store.errors(acme)).toEqual([])
    })
  )

  it.live("a full registry refuses new registrations only", () =>
    Effect.gen(function* () {
      const { store, url } = yield* service
      for (let n = 0; n < maxDefinitions; n++)
        yield* store.addEvent(acme, Result.getOrThrow(Event.parse(`event Full${n}()`)))
      for (const [path, body, at] of [
        ["/addEvent", { eventABI: event }, "eventABI"],
        ["/addError", { errorABI: error }, "errorABI"]
      ] as const) {
        const refusal = yield* refused(url, path, body)
        expect(refusal).toMatchObject({
          code: "registry_full",
          error: "the registry is full",
          details: [{ path: at, message: "the account has 10000 definitions already" }]
        })
      }
      const again = yield* post(url, "/addEvent", { eventABI: { ...event, name: "Full7", inputs: [] } })
      expect(JSON.parse(again.text)).toEqual({ status: 200, eventDef: "event Full7()" })
    })
  )
})
