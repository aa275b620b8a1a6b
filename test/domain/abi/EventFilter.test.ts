import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { AbiCoder, Interface, ParamType } from "ethers/abi"
import { keccak256 } from "ethers/crypto"
import { id } from "ethers/hash"
import { concat, dataLength, hexlify, toUtf8Bytes, zeroPadBytes } from "ethers/utils"
import * as fc from "fast-check"
import * as Event from "../../../src/domain/abi/Event.js"
import * as EventFilter from "../../../src/domain/abi/EventFilter.js"
import type { RawLog } from "../../../src/domain/evm/RawLog.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { bytes32, forAll, hex } from "../generators.js"
import * as generators from "./generators.js"

const alice = "0x00000000000000000000000000000000000A11cE"
const bob = "0x0000000000000000000000000000000000000B0b"
const event = (text: string): Event.EventDefinition => Result.getOrThrow(Event.parse(text))
const filter = (text: string, fields: Readonly<Record<string, unknown>>): EventFilter.EventFilter =>
  Result.getOrThrow(EventFilter.make(event(text), fields))
const problem = (text: string, fields: Readonly<Record<string, unknown>>) =>
  Result.getOrThrow(Result.flip(EventFilter.make(event(text), fields)))
const log = (topics: ReadonlyArray<string>, data = "0x"): RawLog => ({
  address: Address.unsafe(alice),
  topics: topics.map(Hex.unsafe32),
  data: Hex.unsafe(data),
  logIndex: 0
})

const transfer = "event Transfer(address indexed from, address indexed to, uint256 value)"
const nft = "event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)"
const topic = id("Transfer(address,address,uint256)")
const word = (value: string | bigint) => `0x${BigInt(value).toString(16).padStart(64, "0")}`
const moved = (from: string, to: string, value: bigint) => log([topic, word(from), word(to)], word(value))

/** Solidity's in-place encoding, written from its specification. */
const inPlace = (type: ParamType, value: unknown, outermost = true): string => {
  const elements = Array.isArray(value) ? value : []
  if (type.arrayChildren !== null) {
    const { arrayChildren } = type
    return concat(elements.map((element) => inPlace(arrayChildren, element, false)))
  }
  if (type.components !== null) {
    const { components } = type
    return concat(components.map((component, i) => inPlace(component, elements[i], false)))
  }
  if (type.type !== "string" && type.type !== "bytes")
    return AbiCoder.defaultAbiCoder().encode([type], [value])
  const bytes = hexlify(type.type === "string" ? toUtf8Bytes(String(value)) : String(value))
  return outermost ? bytes : zeroPadBytes(bytes, Math.ceil(dataLength(bytes) / 32) * 32)
}

describe("the filter of an event", () => {
  it("an event filter has the topics that ethers logs for elementary types, strings and bytes", () => {
    forAll(
      [generators.typed, fc.infiniteStream(fc.nat())],
      ({ canonical, value, written }, seeds) => {
        fc.pre(!/[\])]$/.test(canonical))
        const seed = seeds.next().value
        const samples = fc.sample(value, { numRuns: 3, seed })
        const oracle = new Interface([`event E(${canonical} indexed p)`])
        const expected = samples.map((sample) => oracle.encodeEventLog("E", [sample.oracle]).topics)
        const made = filter(`E(${written} indexed p)`, { p: samples.map(({ given }) => given) })
        const [own, given] = made.topics
        expect(own).toEqual([expected[0]?.[0]])
        expect(given).toEqual([...new Set(expected.map((topics) => topics[1]))])
      },
      { numRuns: 300 }
    )
  })

  it("an event filter hashes indexed arrays and tuples in place, at any depth", () => {
    forAll(
      [generators.typed.chain((type) => fc.tuple(fc.constant(type), type.value))],
      ([{ canonical, written }, { given, oracle }]) => {
        fc.pre(/[\])]$/.test(canonical))
        const made = filter(`E(${written} indexed p)`, { p: [given] })
        const text = filter(`E(${written} indexed p)`, { p: JSON.stringify(given) })
        expect(made.topics[1]).toEqual([keccak256(inPlace(ParamType.from(canonical), oracle))])
        expect(text.topics).toEqual(made.topics)
      },
      { numRuns: 500 }
    )
  })

  it("an event filter matches exactly the logs whose values are among the wanted ones", () => {
    const cases = generators.typed.chain((type) =>
      fc.tuple(fc.constant(type), type.value, type.value, fc.boolean())
    )
    forAll(
      [cases],
      ([{ canonical, written }, one, other, indexed]) => {
        fc.pre(!(indexed && /[\])]$/.test(canonical)))
        const suffix = indexed ? " indexed" : ""
        const oracle = new Interface([`event E(uint8 a, ${canonical}${suffix} p)`])
        const { data, topics } = oracle.encodeEventLog("E", [7, one.oracle])
        const same = JSON.stringify(one.shown) === JSON.stringify(other.shown)
        const text = `E(uint8 a, ${written}${suffix} p)`
        const matches = (fields: Readonly<Record<string, unknown>>) =>
          filter(text, fields).match(log(topics, data)) !== null
        expect(matches({ p: [one.given] })).toBe(true)
        expect(matches({ p: [other.given, one.given], a: "7" })).toBe(true)
        expect(matches({ p: [other.given] })).toBe(same)
        expect(matches({ p: [one.given], a: "8" })).toBe(false)
      },
      { numRuns: 500 }
    )
  })

  it("an event filter takes one value or several for each field, and all fields must hold", () => {
    const some = filter(transfer, { from: [alice, bob], value: ["5", "0x6"] })
    expect(some.topics).toEqual([[topic], [word(alice), word(bob)]])
    expect(some.match(moved(bob, alice, 6n))?.args).toEqual({ from: bob, to: alice, value: "6" })
    expect(some.match(moved(bob, alice, 7n))).toBeNull()
    expect(filter(transfer, { to: bob }).topics).toEqual([[topic], null, [word(bob)]])
    expect(filter(transfer, { value: "5" }).topics).toEqual([[topic]])
    expect(filter(transfer, {}).match(moved(bob, alice, 7n))).not.toBeNull()
  })

  it("an event filter takes safe integers and booleans, and no ambiguous name", () => {
    const shared = problem("E(uint8 a, uint8 indexed a)", { a: "1" })
    expect(shared).toMatchObject({ _tag: "InvalidValue", name: "a" })
    const made = filter("E(uint8 indexed a, bool indexed b)", { a: [1, "2"], b: true })
    expect(made.topics.slice(1)).toEqual([[word(1n), word(2n)], [word(1n)]])
  })

  it("checks topics again: a node that ignores them changes nothing", () => {
    const made = filter(transfer, { from: alice })
    expect(made.match(moved(bob, alice, 1n))).toBeNull()
    expect(made.match(moved(alice, bob, 1n))).not.toBeNull()
    expect(made.match(log([word(1n), word(alice), word(bob)], word(1n)))).toBeNull()
    expect(made.match(log([]))).toBeNull()
  })

  it("an event filter matches no log of the same topic with another layout", () => {
    const four = log([topic, word(alice), word(bob), word(5n)])
    const three = moved(alice, bob, 5n)
    expect([filter(transfer, {}).match(four), filter(nft, {}).match(three)]).toEqual([null, null])
    expect(filter(nft, { tokenId: "5" }).match(four)?.args).toEqual({ from: alice, to: bob, tokenId: "5" })
    expect(filter(transfer, {}).match(log([topic, word(alice), word(bob)], "0x05"))).toBeNull()
    expect(filter(transfer, {}).match(log([topic, `0x${"ff".repeat(32)}`, word(bob)], word(5n)))).toBeNull()
  })

  it("the filter of an anonymous event has no event topic", () => {
    const made = filter("event A(address indexed who, uint256 x) anonymous", { who: alice })
    expect(made.topics).toEqual([[word(alice)]])
    expect(made.match(log([word(alice)], word(3n)))?.args).toEqual({ who: alice, x: "3" })
    expect(made.match(log([word(alice)], `${word(3n)}00`))).toBeNull()
  })

  it("an event filter finds values of events whose parameters are not all named", () => {
    const made = filter("E(uint8 indexed, uint8 b, uint8)", { b: "4" })
    const data = (b: bigint) => `${word(b)}${word(9n).slice(2)}`
    const own = id("E(uint8,uint8,uint8)")
    expect(made.match(log([own, word(1n)], data(4n)))?.args).toEqual(["1", "4", "9"])
    expect(made.match(log([own, word(1n)], data(5n)))).toBeNull()
  })

  it.each(["amount", "", "constructor", "toString", "From", "from "])(
    "an event filter refuses the name %j, which the event lacks",
    (name) => {
      expect(problem(transfer, { from: alice, [name]: "1" })).toMatchObject({
        _tag: "UnknownField",
        name,
        eventName: "Transfer"
      })
    }
  )

  it.each([
    ["from", "0x12", null],
    ["from", [alice, "bob"], 1],
    ["from", null, null],
    ["from", [], null],
    ["from", [[alice]], 0],
    ["from", 7, null],
    ["value", "-1", null],
    ["value", "1.5", null],
    ["value", 1.5, null],
    ["value", 2 ** 53, null],
    ["value", true, null],
    ["value", ["1", { a: 1 }], 1],
    ["value", Array.from({ length: 257 }, (_, i) => String(i)), null]
  ] as const)("an event filter refuses a malformed value of %s: %j", (name, given, index) => {
    const found = problem(transfer, { [name]: given })
    expect(found).toMatchObject({ _tag: "InvalidValue", name, index })
    expect(found._tag === "InvalidValue" && found.message).toMatch(/^(address|uint256): (?!.*element 0)/)
  })

  it("an event filter refuses values of more words than are encoded, over all fields together", () => {
    const lists = "event Lists(uint256[] a, uint256[] b)"
    // An offset, a length and the elements.
    const words = (count: number) => [JSON.stringify(Array.from({ length: count - 2 }, () => 1))]
    const half = EventFilter.maxWords / 2
    expect(filter(lists, { a: words(half), b: words(half) }).topics).toHaveLength(1)
    expect(problem(lists, { a: words(half), b: words(half + 1) })).toMatchObject({
      name: "b",
      message: `uint256[]: expected at most ${EventFilter.maxWords} words of 32 bytes in all fields`
    })
  })

  it("an event filter accepts or refuses any input, and never throws", () => {
    forAll(
      [
        generators.types,
        fc.array(fc.anything(), { maxLength: 5 }),
        fc.array(bytes32, { maxLength: 4 }),
        hex(300)
      ],
      (types, values, topics, data) => {
        const definition = event(`E(${types.map(({ written }, i) => `${written} p${i}`).join(", ")})`)
        const fields = Object.fromEntries(values.map((value, i) => [`p${i}`, value]))
        const raw = log([definition.topic, ...topics].slice(0, 4), data)
        for (const given of [fields, {}]) {
          const made = EventFilter.make(definition, given)
          if (Result.isSuccess(made))
            expect(made.success.match(raw)).toSatisfy((found) => found === null || found.args !== null)
        }
      },
      { numRuns: 500 }
    )
  })
})
