import type { ParamType } from "ethers/abi"
import { beforeAll, describe, expect, it } from "vitest"
import * as CountingProxy from "../../../tools/CountingProxy.js"
import { type Vendor, vendors } from "../../application/chain/logs/Vendors.js"
import { startProxy } from "../../support/http/Proxy.js"
import { aloneInFile } from "../../support/http/SharedService.js"
import { type Fault, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { use } from "../../support/Use.js"
import * as EventChain from "./Chain.js"

/** 10,000 events over 5,000 blocks; the service's answer must equal a scan of every block. */

interface Found {
  readonly txHash: string
  readonly blockNumber: number
  readonly logIndex: number
  readonly address: string
  readonly eventName: string
  readonly eventDef: string
  readonly args: Readonly<Record<string, unknown>>
}

const service = aloneInFile()
let chain: EventChain.EventChain
/** A faulty node behind a counting proxy. */
const node = use(() => startFaultyNode(service.info.rpc))
const proxy = use(() => startProxy(node.url))
beforeAll(async () => {
  chain = await EventChain.build(service.info.rpc)
})

type Query = Readonly<Record<string, unknown>>
type Truth = (event: EventChain.Emitted) => boolean

const erc20 = "event Transfer(address indexed from, address indexed to, uint256 value)"
const addressOf = (n: number) => `0x${n.toString(16).padStart(40, "0")}`
const tags = ["red", "green", "a tag that is longer than thirty-two bytes are"]
const hex = (n: number) => `0x${n.toString(16)}`

/** Cases with their expected results, by the numbers from which the contracts derive the events. */
const cases: ReadonlyArray<readonly [string, () => Query, Truth]> = [
  ["a name that two events have", () => ({ eventName: "Transfer" }), ({ name }) => name === "Transfer"],
  [
    "a definition: logs of the same topic with another layout are not its events",
    () => ({ eventDef: erc20 }),
    ({ address, name }) => name === "Transfer" && address !== chain.nft
  ],
  [
    "the other definition of the topic",
    () => ({ eventDef: "Transfer(address indexed from, address indexed to, uint indexed tokenId)" }),
    ({ address }) => address === chain.nft
  ],
  [
    "nothing but the name of an anonymous event, for which the node gives all logs of a contract",
    () => ({ eventName: "Shaped", contracts: [...chain.emitters, chain.nft] }),
    ({ name }) => name === "Shaped"
  ],
  [
    "one contract",
    () => ({ eventName: "Transfer", contracts: [chain.emitters[1]] }),
    ({ address, name }) => name === "Transfer" && address === chain.emitters[1]
  ],
  [
    "several contracts, one of them twice and another without events",
    () => ({ eventName: "Transfer", contracts: [chain.nft, chain.emitters[0], chain.nft, addressOf(9)] }),
    ({ address, name }) => name === "Transfer" && address !== chain.emitters[1]
  ],
  [
    "an indexed address",
    () => ({ eventName: "Transfer", fields: { from: addressOf(3) } }),
    ({ id, name }) => name === "Transfer" && id % 7 === 2
  ],
  [
    "several values of two indexed fields",
    () => ({
      eventName: "Transfer",
      fields: { from: [addressOf(3), addressOf(5)], to: [addressOf(1), addressOf(2)] }
    }),
    ({ id, name }) => name === "Transfer" && [2, 4].includes(id % 7) && [0, 1].includes(id % 11)
  ],
  [
    "a field that is not indexed, and only one of the definitions has",
    () => ({ eventName: "Transfer", fields: { value: ["5", "0x6", "15", "7"] } }),
    ({ address, id, name }) => name === "Transfer" && [5, 6, 15, 7].includes(id) && address !== chain.nft
  ],
  [
    "an indexed field that the other definition has",
    () => ({ eventName: "Transfer", fields: { tokenId: ["145", "150"] } }),
    ({ address, id }) => [145, 150].includes(id) && address === chain.nft
  ],
  [
    "an indexed string",
    () => ({ eventName: "Noted", fields: { tag: [tags[2], "no such tag"] } }),
    ({ id, name }) => name === "Noted" && id % 3 === 2
  ],
  [
    "bytes, an array of negative integers and a tuple that are not indexed",
    () => ({
      eventName: "Noted",
      fields: {
        payload: ["0x000c", "0x0020"],
        list: [["-32"], "[]", ["-12", "-12"]],
        point: [{ x: "0", name: "red" }, ["-2", tags[2]], ["0", tags[2]]]
      }
    }),
    ({ id, name }) =>
      name === "Noted" &&
      [12, 32].includes(id % 50) &&
      (id % 3 === 0 || (id % 3 === 1 && id % 100 === 32) || (id % 3 === 2 && id % 100 === 12)) &&
      ((id % 4 === 0 && id % 3 === 0) || (id % 4 === 2 && id % 3 === 2) || (id % 4 === 0 && id % 3 === 2))
  ],
  [
    "indexed arrays, tuples, arrays of strings and bytes of an anonymous event",
    () => ({
      eventName: "Shaped",
      fields: {
        list: [["1", "2", "3"], []],
        point: ['["-3", "red"]', { x: 0, name: "green" }, ["-3", tags[2]]],
        words: ["[]", [tags[1]], [tags[2], "red"]],
        raw: ["0x03", "0x08", "0x0d", "0x12"]
      }
    }),
    ({ id, name }) =>
      name === "Shaped" &&
      (id % 4 === 0 || (id % 4 === 3 && id % 2 === 1)) &&
      ((id % 4 === 3 && id % 3 === 0) || (id % 4 === 0 && id % 3 === 1) || (id % 4 === 3 && id % 3 === 2)) &&
      [3, 8, 13, 18].includes(id % 20)
  ],
  [
    "indexed fixed arrays and arrays of tuples, with a boolean and fixed bytes",
    () => ({
      eventName: "Drawn",
      fields: {
        pair: [
          ["1", "7"],
          [4, 7]
        ],
        points: [[["1", "red"]], "[]"],
        even: [true],
        mark: "0x00000004"
      }
    }),
    ({ id, name }) => name === "Drawn" && [1, 4].includes(id % 6) && id % 2 === 0 && id % 10 === 4
  ],
  [
    "blocks in the middle, in hex and decimal",
    () => ({
      eventName: "Transfer",
      fromBlock: hex(chain.first + 1_234),
      toBlock: String(chain.first + 2_345)
    }),
    ({ blockNumber, name }) =>
      name === "Transfer" && blockNumber >= chain.first + 1_234 && blockNumber <= chain.first + 2_345
  ],
  [
    "one block",
    () => ({
      eventName: "Noted",
      fromBlock: hex(chain.truth.at(-1)?.blockNumber ?? 0),
      toBlock: hex(chain.truth.at(-1)?.blockNumber ?? 0)
    }),
    ({ blockNumber, name }) => name === "Noted" && blockNumber === chain.truth.at(-1)?.blockNumber
  ],
  [
    "a range with blocks that do not exist yet",
    () => ({ eventName: "Noted", toBlock: "0xffffffff" }),
    ({ name }) => name === "Noted"
  ],
  [
    "no block that is there",
    () => ({ eventName: "Noted", fromBlock: "99999998", toBlock: "99999999" }),
    () => false
  ],
  ["nothing", () => ({ eventName: "Noted", fields: { id: "3" } }), () => false]
]

const queryOf = (query: Query, rpc = service.info.rpc): Query => ({
  fromBlock: hex(chain.first),
  toBlock: "latest",
  useABI: chain.abi,
  ...query,
  rpc
})

const placesOf = (events: ReadonlyArray<Found | EventChain.Emitted>) =>
  events.map(({ address, blockNumber, logIndex, txHash }) => [
    blockNumber,
    logIndex,
    txHash,
    address.toLowerCase()
  ])

const agrees = async (query: Query, truth: Truth, rpc?: string) => {
  const expected = chain.truth.filter(truth)
  const events = await service.ok<{ requestStatus: number; events: ReadonlyArray<Found> }>(
    "/getEvents",
    queryOf(query, rpc)
  )
  expect(placesOf(events.events)).toEqual(placesOf(expected))
  const hashes = await service.ok<object>("/filterEvent", queryOf(query, rpc))
  expect(hashes).toEqual({ requestStatus: 200, txHashes: [...new Set(expected.map(({ txHash }) => txHash))] })
  return { events: events.events, expected }
}

/** Values that ethers decodes, in the service's format: named tuples by name, indexed references as hashes. */
const shown = (value: unknown, type: ParamType): unknown => {
  if (typeof value === "bigint") return value.toString()
  if (typeof value === "object" && value !== null && "hash" in value) return value.hash
  if (!Array.isArray(value)) return value
  const { arrayChildren, components } = type
  if (arrayChildren !== null) return value.map((element) => shown(element, arrayChildren))
  return Object.fromEntries((components ?? []).map((part, i) => [part.name, shown(value[i], part)]))
}

describe("events", () => {
  it("10,000 events lie in 5,000 blocks", () => {
    expect(chain.truth).toHaveLength(EventChain.events)
    expect(chain.last - chain.first + 1).toBe(EventChain.blocks)
    const kinds = chain.truth.map(({ name, topics }) => `${name} ${topics.length}`)
    expect([...new Set(kinds)].sort()).toEqual(["Drawn 3", "Noted 3", "Shaped 4", "Transfer 3", "Transfer 4"])
  })

  it.each(cases)("events are found by %s", async (name, query, truth) => {
    const { expected } = await agrees(query(), truth)
    if (!["no block that is there", "nothing"].includes(name)) expect(expected.length).toBeGreaterThan(0)
  })

  it("events carry the values that ethers decodes", async () => {
    for (const eventName of ["Transfer", "Noted", "Shaped", "Drawn"]) {
      const { events, expected } = await agrees({ eventName }, ({ name }) => name === eventName)
      for (const [i, event] of events.entries()) {
        const { args, inputs } = expected[i] ?? { args: [], inputs: [] }
        expect(event.eventName).toBe(eventName)
        expect(event.args).toEqual(
          Object.fromEntries(inputs.map((input, at) => [input.name, shown(args[at], input)]))
        )
      }
    }
  })

  it("the latest block is the default range", async () => {
    const query = { eventName: "Transfer", rpc: service.info.rpc }
    expect(await service.ok("/filterEvent", query)).toEqual({ requestStatus: 200, txHashes: [] })
  })

  it("earliest to latest or pending covers the whole chain", async () => {
    for (const toBlock of ["latest", "pending"])
      await agrees(
        { contracts: [...chain.emitters, chain.nft], eventName: "Transfer", fromBlock: "earliest", toBlock },
        ({ name }) => name === "Transfer"
      )
  })
})

const vendorOf = (wanted: string) => {
  const vendor = vendors.find(({ name }) => name === wanted)
  if (vendor === undefined) throw new Error(`no vendor ${wanted}`)
  return vendor
}

const mostBlocks = 500

/** A node limited to 500 blocks and 1,000 results that refuses in a vendor's words. */
const limited =
  (vendor: Vendor, mostResults = 1_000): Fault =>
  async ({ method, params }, ask) => {
    if (method !== "eth_getLogs") return ask()
    const { fromBlock, toBlock } = Object(params[0])
    const [from, to] = [BigInt(fromBlock), BigInt(toBlock)]
    if (to - from + 1n > mostBlocks) return { error: vendor.blocks({ from, to, limit: mostBlocks }) }
    const answer = await ask()
    const found = "result" in answer && Array.isArray(answer.result) ? answer.result.length : 0
    return found > mostResults ? { error: vendor.results({ from, to, limit: mostResults }) } : answer
  }

describe("events behind a node that takes 500 blocks and gives 1,000 results", () => {
  it.each(cases)("events behind the limits are found by %s", async (_, query, truth) => {
    node.behave(limited(vendorOf("Infura")))
    await agrees(query(), truth, node.url)
  })

  it.each(vendors)("events behind the limits are found with the messages of $name", async (vendor) => {
    // Dense blocks hold more than 500 transfers, all other blocks fewer.
    node.behave(limited(vendor, 500))
    proxy.take()
    const query = { eventName: "Transfer", fields: { value: ["55", "9871", "9996"] } }
    const hashes = await service.ok<object>("/filterEvent", queryOf(query, proxy.url))
    const expected = chain.truth.filter(
      ({ id, name }) => name === "Transfer" && [55, 9_871, 9_996].includes(id)
    )
    expect(hashes).toEqual({
      requestStatus: 200,
      txHashes: [...new Set(expected.map(({ txHash }) => txHash))]
    })
    const { methods, roundTrips } = CountingProxy.cost(proxy.take())
    const asked = methods.get("eth_getLogs") ?? 0
    console.log(`${vendor.name}: ${asked} eth_getLogs in ${roundTrips} round trips`)
    expect(asked).toBeGreaterThan(11)
    expect(asked).toBeLessThan(40)
  })

  it("queries take two calls within the range limit; otherwise the parts, a refusal and two queries of the last block", async () => {
    const query = { eventName: "Transfer", fields: { from: addressOf(3) } }
    const costs: Record<string, ReadonlyMap<string, number>> = {}
    for (const [name, fault] of [
      ["honest", undefined],
      ["limited", limited(vendorOf("QuickNode"))]
    ] as const) {
      node.behave(fault)
      proxy.take()
      await service.ok("/filterEvent", queryOf(query, proxy.url))
      const exchanges = proxy.take()
      const methods = new Map<string, number>()
      for (const method of exchanges.flatMap((exchange) => exchange.methods))
        methods.set(method, (methods.get(method) ?? 0) + 1)
      costs[name] = methods
      console.log(
        `${name}: ${[...methods].map(([method, n]) => `${n} ${method}`).join(", ")} in ${exchanges.length} round trips`
      )
    }
    expect(costs.honest).toEqual(
      new Map([
        ["eth_getBlockByNumber", 1],
        ["eth_getLogs", 1]
      ])
    )
    expect(costs.limited).toEqual(
      new Map([
        ["eth_getBlockByNumber", 3],
        ["eth_getLogs", 11]
      ])
    )
  })
})
