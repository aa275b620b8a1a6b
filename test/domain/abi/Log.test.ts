import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { Interface } from "ethers/abi"
import { id } from "ethers/hash"
import * as fc from "fast-check"
import * as Event from "../../../src/domain/abi/Event.js"
import * as Log from "../../../src/domain/abi/Log.js"
import type { RawLog } from "../../../src/domain/evm/RawLog.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Work from "../../support/Work.js"
import { bytes32, forAll, hex } from "../generators.js"
import * as generators from "./generators.js"

const address = Address.unsafe("0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789")
const event = (text: string): Event.EventDefinition => Result.getOrThrow(Event.parse(text))
const topic = (value: bigint | number): Hex.Bytes32 =>
  Hex.unsafe32(`0x${BigInt(value).toString(16).padStart(64, "0")}`)

const log = (topics: ReadonlyArray<string>, data = "0x"): RawLog => ({
  address,
  topics: topics.map(Hex.unsafe32),
  data: Hex.unsafe(data),
  logIndex: 7
})

const decodeWith = (definitions: ReadonlyArray<Event.EventDefinition>, raw: RawLog): Log.DecodedLog =>
  Log.decoder([Log.index(definitions)])(raw)

const erc20 = event("event Transfer(address indexed from, address indexed to, uint256 value)")
const erc721 = event("event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)")

describe("Log", () => {
  it("a log is shown decoded and raw", () => {
    const raw = log([erc20.topic, topic(1), topic(2)], topic(3))
    expect(decodeWith([erc721, erc20], raw)).toEqual({
      address,
      logIndex: 7,
      eventName: "Transfer",
      eventDef: erc20.canonical,
      args: {
        from: "0x0000000000000000000000000000000000000001",
        to: "0x0000000000000000000000000000000000000002",
        value: "3"
      },
      topics: [...raw.topics],
      data: raw.data
    })
  })

  it("a log's topic count picks the event of equal topics, otherwise the first definition that fits", () => {
    const ours = event("event Transfer(address indexed sender, address indexed to, uint256 amount)")
    const raw = log([erc20.topic, topic(1), topic(2)], topic(3))
    const nft = log([erc20.topic, topic(1), topic(2), topic(3)])
    expect(decodeWith([erc20, erc721], nft).eventDef).toBe(erc721.canonical)
    expect(decodeWith([ours, erc20], raw).eventDef).toBe(ours.canonical)
    expect(decodeWith([erc20, ours], raw).eventDef).toBe(erc20.canonical)
  })

  it.each<[string, RawLog]>([
    ["of another topic", log([topic(9), topic(1), topic(2)], topic(3))],
    ["without topics", log([], topic(3))],
    ["with a topic too few", log([erc20.topic, topic(1)], topic(3))],
    ["with a topic too many", log([erc20.topic, topic(1), topic(2), topic(3), topic(4)], topic(3))],
    ["with too little data", log([erc20.topic, topic(1), topic(2)], "0x03")],
    ["with an address that is too long", log([erc20.topic, topic(1n << 160n), topic(2)], topic(3))]
  ])("a log %s stays raw", (_, raw) => {
    expect(decodeWith([erc20, erc721], raw)).toEqual({
      address,
      logIndex: 7,
      eventName: null,
      eventDef: null,
      args: null,
      topics: [...raw.topics],
      data: raw.data
    })
  })

  it("indexed reference types are shown as the hash that is logged", () => {
    const hashed = event("event E(string indexed s, bytes indexed b, (uint8 x)[1] indexed t)")
    const raw = log([hashed.topic, id("s"), id("b"), id("t")])
    expect(decodeWith([hashed], raw).args).toEqual({ s: id("s"), b: id("b"), t: id("t") })
  })

  it("arguments are an array when a parameter has no name or two share one", () => {
    for (const text of ["E(uint8 a, uint8 indexed)", "E(uint8 a, uint8 indexed a)"]) {
      const definition = event(text)
      expect(decodeWith([definition], log([definition.topic, topic(2)], topic(1))).args).toEqual(["1", "2"])
    }
    const empty = event("E()")
    expect(decodeWith([empty], log([empty.topic]))).toMatchObject({ eventName: "E", args: {} })
  })

  it("an anonymous event decodes only what nothing else does, and only an exact encoding", () => {
    const anonymous = event("event A(address indexed who, string text) anonymous")
    const data = `0x${[32, 2].map((n) => topic(n).slice(2)).join("")}6869${"0".repeat(60)}`
    expect(decodeWith([anonymous], log([topic(5)], data)).args).toEqual({
      who: "0x0000000000000000000000000000000000000005",
      text: "hi"
    })
    for (const other of [`${data}00`, data.replace("6869", "68ff"), data.replace("68690", "68691"), "0x"])
      expect(decodeWith([anonymous], log([topic(5)], other)).eventName).toBeNull()
    const none = event("event N() anonymous")
    expect(decodeWith([none], log([])).eventName).toBe("N")
    expect(decodeWith([none], log([], topic(1))).eventName).toBeNull()
    const greedy = event(
      "event G(bytes32 indexed a, bytes32 indexed b, bytes32 indexed c, uint256 d) anonymous"
    )
    const raw = log([erc20.topic, topic(1), topic(2)], topic(3))
    expect(decodeWith([greedy, erc20], raw).eventDef).toBe(erc20.canonical)
    expect(decodeWith([greedy], raw).eventDef).toBe(greedy.canonical)
  })

  it("ten thousand definitions of one topic cost no more than a few", () => {
    const many = Array.from({ length: 10_000 }, (_, i) => event(`E(bytes[] a${i})`))
    const anonymous = Array.from({ length: 2_000 }, (_, i) => event(`A(uint8[${i + 1}][] a) anonymous`))
    const decode = Log.decoder([Log.index([...many, ...anonymous])])
    const huge = `0x${topic(32).slice(2)}${topic(10_000).slice(2)}${topic(320_000).slice(2).repeat(10_000)}`
    const work = Work.of(() => {
      expect(decode(log([many[0]?.topic ?? ""], huge)).eventName).toBeNull()
      expect(decode(log([], huge)).eventName).toBeNull()
    })
    expect(work).toBeLessThan(3_000)
  })

  it("a log that ethers encodes is decoded to the same values", () => {
    forAll(
      [generators.call, fc.nat()],
      ({ types, values }, bits) => {
        let left = 3
        const isIndexed = types.map((_, i) => ((bits >> i) & 1) === 1 && left-- > 0)
        const list = (text: (typed: generators.Typed) => string): string =>
          types.map((typed, i) => `${text(typed)}${isIndexed[i] === true ? " indexed" : ""} p${i}`).join(", ")
        const definition = event(`E(${list(({ written }) => written)})`)
        const oracle = new Interface([`event E(${list(({ canonical }) => canonical)})`])
        // ethers cannot encode indexed arrays and tuples; their topic is any hash here.
        const encodable = types.map(({ canonical }, i) => isIndexed[i] === true && /[\])]$/.test(canonical))
        fc.pre(!encodable.includes(true))
        const { data, topics } = oracle.encodeEventLog(
          "E",
          values.map((value) => value.oracle)
        )
        const decoded = decodeWith([definition], log(topics, data))
        const hashed = (i: number): boolean =>
          isIndexed[i] === true && /^(string|bytes)$/.test(types[i]?.canonical ?? "")
        let next = 1
        const expected = values.map(({ shown }, i) => {
          const at = isIndexed[i] === true ? topics[next++] : undefined
          return [`p${i}`, hashed(i) ? at : shown]
        })
        expect(decoded.args).toEqual(Object.fromEntries(expected))
      },
      { numRuns: 300 }
    )
  })

  it("any topics and data are decoded or stay raw, and never throw", () => {
    forAll(
      [generators.types, fc.array(bytes32, { maxLength: 4 }), hex(300), fc.boolean()],
      (types, topics, data, anonymous) => {
        const definition = event(
          `E(${types.map(({ written }) => written).join(",")})${anonymous ? " anonymous" : ""}`
        )
        const raw = log(anonymous ? topics : [definition.topic, ...topics], data)
        expect(decodeWith([definition], raw)).toMatchObject({ topics: raw.topics, data: raw.data })
      },
      { numRuns: 500 }
    )
  })
})
