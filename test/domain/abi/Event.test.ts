import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { EventFragment } from "ethers/abi"
import { id } from "ethers/hash"
import * as fc from "fast-check"
import * as ErrorDefinition from "../../../src/domain/abi/ErrorDefinition.js"
import * as Event from "../../../src/domain/abi/Event.js"
import type * as Parameter from "../../../src/domain/abi/Parameter.js"
import { forAll, words } from "../generators.js"
import * as generators from "./generators.js"

const parsed = (text: string): Event.EventDefinition => Result.getOrThrow(Event.parse(text))
const parsedError = (text: string): ErrorDefinition.ErrorDefinition =>
  Result.getOrThrow(ErrorDefinition.parse(text))

const transfer = "event Transfer(address indexed from, address indexed to, uint256 value)"
const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

describe("Event", () => {
  it.each([
    transfer,
    "Transfer(address indexed from, address indexed to, uint value)",
    " event  Transfer ( address  indexed from,address payable indexed to,uint256 value ) "
  ])("%s has the ERC-20 topic and one canonical text", (text) => {
    const event = parsed(text)
    expect(event.topic).toBe(transferTopic)
    expect(event.canonical).toBe(transfer)
    expect(event.anonymous).toBe(false)
    expect(event.inputs.map(({ indexed, name, type }) => [type, indexed, name])).toEqual([
      ["address", true, "from"],
      ["address", true, "to"],
      ["uint256", false, "value"]
    ])
  })

  it.each([
    ["event E()", "event E()"],
    ["E(uint) anonymous", "event E(uint256) anonymous"],
    ["E(uint indexed)", "event E(uint256 indexed)"],
    ["E(tuple(uint a, (bytes) b)[2] c)", "event E((uint256 a, (bytes) b)[2] c)"],
    ["event(uint256 a)", null],
    ["event error(bytes32 event)", "event error(bytes32 event)"],
    [
      "E(uint indexed a, uint indexed b, uint indexed c, uint indexed d) anonymous",
      "event E(uint256 indexed a, uint256 indexed b, uint256 indexed c, uint256 indexed d) anonymous"
    ]
  ])("%s is %s", (text, canonical) => {
    expect(Result.getOrNull(Result.map(Event.parse(text), (event) => event.canonical))).toBe(canonical)
  })

  const invalid = `event|Transfer|event Transfer(address from|event Transfer(address from);
    |function Transfer(address)|error Transfer(address)|Transfer(address memory a)|Transfer(bytes memory a)
    |Transfer((uint256 indexed a) b)|Transfer(indexed uint256 a)|Transfer(uint256 indexed indexed a)
    |Transfer(address) returns (bool)|Transfer(address) anonymous anonymous
    |E(uint indexed a, uint indexed b, uint indexed c, uint indexed d)
    |E(uint indexed, uint indexed, uint indexed, uint indexed, uint indexed) anonymous`
  it.each(["", ...invalid.split(/\s*\|/)])("%j is an invalid event definition", (text) => {
    const result = Event.parse(text)
    expect(Result.isFailure(result) && result.failure.message).toMatch(/^invalid event definition: ./)
  })

  const fragment = {
    type: "event",
    name: "Transfer",
    anonymous: false,
    inputs: [
      { name: "from", type: "address", indexed: true, internalType: "address" },
      { name: "to", type: "address", indexed: true, internalType: "address" },
      { name: "value", type: "uint256", indexed: false, internalType: "uint256" }
    ]
  }

  it("JSON fragments give the same definition as text, optional fields absent or not", () => {
    expect(Result.getOrThrow(Event.fromJson(fragment))).toEqual(parsed(transfer))
    const short = {
      type: "event",
      name: "E",
      inputs: [{ type: "uint" }, { name: "", type: "tuple[]", components: [{ name: "a", type: "int" }] }]
    }
    expect(Result.getOrThrow(Event.fromJson(short))).toEqual(parsed("E(uint, (int a)[])"))
    expect(Result.getOrThrow(Event.fromJson({ type: "event", name: "E" }))).toEqual(parsed("E()"))
    expect(Result.getOrThrow(Event.fromJson({ type: "event", name: "E", anonymous: true })).canonical).toBe(
      "event E() anonymous"
    )
  })

  const input = (change: object): object => ({
    ...fragment,
    inputs: [{ name: "a", type: "uint256", ...change }]
  })
  const deep = (levels: number): object =>
    levels === 0 ? { name: "a", type: "bool" } : { name: "a", type: "tuple", components: [deep(levels - 1)] }

  const typed = (...types: ReadonlyArray<string>) => types.map((type) => input({ type }))
  const tuple = (components: unknown) => input({ type: "tuple", components })
  const filled = (count: number, one: object) => ({ ...fragment, inputs: new Array(count).fill(one) })
  it.each<[why: string, ...fragments: Array<unknown>]>([
    ["not an object", null, [], "event E()"],
    ['type: not "event"', {}, { ...fragment, type: "error" }],
    ["name: not a string", { ...fragment, name: undefined }, { ...fragment, name: 1 }],
    ['name: "" cannot be a name', { ...fragment, name: "" }],
    ['name: "a b" cannot be a name', { ...fragment, name: "a b" }],
    ["cannot be a name", { ...fragment, name: "a".repeat(300) }],
    ["anonymous: not a boolean", { ...fragment, anonymous: "no" }],
    ["inputs: not an array", { ...fragment, inputs: {} }, { ...fragment, inputs: null }],
    ["inputs[0]: not an object", { ...fragment, inputs: [null] }, { ...fragment, inputs: ["uint256"] }],
    ["inputs[0].type: not a string", input({ type: undefined })],
    [
      "inputs[0].type: unknown type",
      ...typed("uint257", "uint256 ", "uint256[", "uint256[01]", "uint256[1e3]")
    ],
    ["inputs[0].type: unknown type", ...typed("", "function")],
    ["inputs[0].type: expected a type", ...typed("(uint257)")],
    ["types may be nested", ...typed(`${"(".repeat(17)}bool${")".repeat(17)}`, `bool${"[]".repeat(17)}`)],
    ["inputs[0].type: unexpected", ...typed("(uint256) a")],
    ["the components are those of (bool)", input({ type: "(uint256)", components: [{ type: "bool" }] })],
    ["inputs[0].type: a fixed array has", ...typed("uint256[0]")],
    ["inputs[0].type: a fixed array may", ...typed("uint256[99999999999999999999]")],
    ["inputs[0].type: a tuple needs components", ...typed("tuple")],
    ["inputs[0].type: a tuple has at least", tuple([])],
    ["inputs[0].type: only tuples", input({ components: [{ name: "b", type: "bool" }] })],
    ["inputs[0].components: not an array", tuple("bool")],
    ["inputs[0].components[0].indexed: only", tuple([{ type: "bool", indexed: true }])],
    ["inputs[0].components[0].type: unknown", tuple([{ type: "boolean" }])],
    ["inputs[0].name: not a string", input({ name: 1 })],
    ['inputs[0].name: "a,b" cannot be a name', input({ name: "a,b" })],
    ["inputs[0].internalType: not a string", input({ internalType: 1 })],
    ["inputs[0].indexed: not a boolean", input({ indexed: "true" })],
    ['inputs[0]: unknown field "index"', input({ index: true })],
    ['unknown field "input"', { ...fragment, input: [] }],
    ["more than 3 parameters are indexed", filled(4, { type: "bool", indexed: true })],
    ["more than 1024 parameters", filled(1_025, { type: "bool" })],
    ["longer than 8192 characters", filled(100, { name: "a".repeat(100), type: "bool" })],
    ["types may be nested 16 levels deep", filled(1, deep(17)), filled(1, deep(5_000))]
  ])("a JSON fragment is refused: %s", (why, ...fragments) => {
    for (const value of fragments) {
      const result = Event.fromJson(value)
      if (Result.isSuccess(result)) return expect.fail("it was read")
      const { message, path, why: said } = result.failure
      expect(message).toContain(why)
      expect(message).toBe(`invalid event definition: ${path === "" ? said : `${path}: ${said}`}`)
    }
  })

  const asOf = "calldata memory storage payable indexed uint256 address bytes"
  const others = "event error function anonymous returns tuple type from view constructor $ _"
  it.each(words(`${asOf} ${others}`))(
    "%s is a name in JSON, and read back from the canonical text",
    (word) => {
      const inputs = [
        { name: word, type: "address", indexed: true },
        { name: word, type: "bytes", indexed: true },
        { name: "t", type: "tuple", components: [{ name: word, type: "bytes" }] }
      ]
      const one = Result.getOrThrow(Event.fromJson({ type: "event", name: word, inputs, anonymous: true }))
      expect(one.inputs.map(({ name }) => name)).toEqual([word, word, "t"])
      expect(one.canonical).toBe(
        `event ${word}(address indexed ${word}, bytes indexed ${word}, (bytes ${word}) t) anonymous`
      )
      expect(one.topic).toBe(id(`${word}(address,bytes,(bytes))`))
      const canonical = asOf.split(" ").includes(word)
      expect(Result.getOrThrow(Event.parse(one.canonical, { canonical }))).toEqual(one)
      const plain = inputs.map(({ indexed, ...input }) => input)
      const error = Result.getOrThrow(ErrorDefinition.fromJson({ type: "error", name: word, inputs: plain }))
      expect(Result.getOrThrow(ErrorDefinition.parse(error.canonical, { canonical }))).toEqual(error)
    }
  )

  it("the canonical text leaves out the one name that would make a topic of its parameter", () => {
    const inputs = [{ name: "indexed", type: "bool", indexed: false }]
    const one = Result.getOrThrow(Event.fromJson({ type: "event", name: "E", inputs }))
    expect([one.canonical, one.inputs[0]?.name]).toEqual(["event E(bool)", "indexed"])
  })

  it("JSON fragments of any types are the event that ethers reads in them, and read back from their text", () => {
    const json = ({ base, name, type }: Parameter.Parameter): object => {
      let inner = base
      let suffix = ""
      while (inner.kind === "array") {
        suffix = `[${inner.length ?? ""}]${suffix}`
        inner = inner.element
      }
      return inner.kind === "tuple"
        ? { name, type: `tuple${suffix}`, internalType: "struct S", components: inner.components.map(json) }
        : { name, type, internalType: type }
    }
    forAll([generators.types, fc.nat()], (types, bits) => {
      const text = `event E${generators.canonicalList(types)}`
      const parsed = Event.parse(text)
      fc.pre(Result.isSuccess(parsed))
      let left = 3
      const inputs = parsed.success.inputs.map((input, i) => ({
        ...json({ ...input, name: `p${i}` }),
        indexed: ((bits >> i) & 1) === 1 && left-- > 0
      }))
      const one = Result.getOrThrow(Event.fromJson({ type: "event", name: "E", inputs, anonymous: false }))
      expect(Result.getOrThrow(Event.parse(one.canonical))).toEqual(one)
      const theirs = EventFragment.from({ type: "event", name: "E", inputs })
      expect(one.topic).toBe(theirs.topicHash)
      expect(one.inputs.map(({ indexed }) => indexed)).toEqual(inputs.map(({ indexed }) => indexed))
    })
  })

  it("inherited fields do not count", () => {
    const inherited: unknown = Object.create(fragment)
    expect(Result.isFailure(Event.fromJson(inherited))).toBe(true)
  })

  it("the topic is ethers', and the canonical text is read back to the same definition", () => {
    forAll([generators.types, fc.nat(), fc.boolean()], (types, bits, anonymous) => {
      let left = 3
      const inputs = types.map(({ written }, i) => {
        const indexed = ((bits >> i) & 1) === 1 && left-- > 0
        return `${written}${indexed ? " indexed" : ""}${i % 2 === 0 ? ` p${i}` : ""}`
      })
      const event = parsed(`E(${inputs.join(",")})${anonymous ? "anonymous" : ""}`)
      const canonical = `E${generators.canonicalList(types)}`
      expect(event.topic).toBe(EventFragment.from(`event ${canonical}`).topicHash)
      expect(parsed(event.canonical)).toEqual(event)
      // ethers takes this one name for its keyword.
      const text = event.canonical.replaceAll("constructor", "name").replace(/ anonymous$/, "")
      expect(EventFragment.from(text).topicHash).toBe(event.topic)
    })
  })

  it("any text or JSON is a definition or a refusal, and never throws", () => {
    forAll(
      [fc.oneof(fc.fullUnicodeString(), generators.tokenSoup)],
      (text) => {
        const event = Event.parse(text)
        if (Result.isSuccess(event)) expect(parsed(event.success.canonical)).toEqual(event.success)
        const error = ErrorDefinition.parse(text)
        if (Result.isSuccess(error)) expect(parsedError(error.success.canonical)).toEqual(error.success)
      },
      { numRuns: 2_000 }
    )
    const or = (...good: ReadonlyArray<string>) => fc.oneof(fc.constantFrom(...good), fc.jsonValue())
    const parameter = fc.record(
      { name: or("a"), type: or("uint", "tuple[]", "bool[2]"), components: fc.jsonValue() },
      { requiredKeys: [] }
    )
    const inputs = fc.oneof(fc.array(parameter), fc.jsonValue())
    const type = fc.constantFrom("event", "error", "function")
    const loose = fc.record(
      { type, name: or("E"), inputs, anonymous: fc.jsonValue() },
      { requiredKeys: ["type"] }
    )
    forAll(
      [fc.oneof(loose, fc.jsonValue())],
      (value) => {
        const event = Event.fromJson(value)
        if (Result.isSuccess(event)) expect(parsed(event.success.canonical)).toEqual(event.success)
        expect(Result.isResult(ErrorDefinition.fromJson(value))).toBe(true)
      },
      { numRuns: 1_000 }
    )
  })
})

describe("ErrorDefinition", () => {
  it.each([
    [
      "error NotEnough(uint available, uint required)",
      "error NotEnough(uint256 available, uint256 required)"
    ],
    ["NotEnough(uint256,uint256)", "error NotEnough(uint256, uint256)"],
    ["error E((address to, bytes)[] xs)", "error E((address to, bytes)[] xs)"],
    ["error E()", "error E()"]
  ])("%s is %s", (text, canonical) => {
    expect(parsedError(text).canonical).toBe(canonical)
  })

  it("the selector is the one that revert data begin with", () => {
    expect(parsedError("error Error(string)").selector).toBe("0x08c379a0")
    expect(parsedError("Panic(uint)").selector).toBe("0x4e487b71")
    expect(parsedError("FailedOp(uint256,string)").selector).toBe(id("FailedOp(uint256,string)").slice(0, 10))
  })

  const invalid = "error|error E|error E(uint256 indexed a)|error E() anonymous|event E()|error E();"
  it.each(["", ...invalid.split("|")])("%j is an invalid error definition", (text) => {
    const result = ErrorDefinition.parse(text)
    expect(Result.isFailure(result) && result.failure.message).toMatch(/^invalid error definition: ./)
  })

  it("JSON fragments give the same definition as text, and indexed parameters are refused", () => {
    const inputs = [{ name: "x", type: "uint256", internalType: "uint256" }]
    expect(Result.getOrThrow(ErrorDefinition.fromJson({ type: "error", name: "E", inputs }))).toEqual(
      parsedError("error E(uint256 x)")
    )
    for (const value of [
      { type: "event", name: "E", inputs },
      { type: "error", name: "E", inputs: [{ type: "uint256", indexed: true }] },
      { type: "error", inputs },
      undefined
    ])
      expect(Result.isFailure(ErrorDefinition.fromJson(value))).toBe(true)
  })
})
