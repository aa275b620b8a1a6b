import { AbiCoder, Interface, id, toBeHex, zeroPadValue } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import { first } from "../../support/http/DevService.js"
import { documented } from "../../support/http/Examples.js"
import { aloneInFile } from "../../support/http/SharedService.js"
import { type Answer, type Fault, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { use } from "../../support/Use.js"

/** Valid and invalid event requests, and node replies, over HTTP. */

const service = aloneInFile()
const node = use(() => startFaultyNode(service.info.rpc))
let minted: ReadonlyArray<string>
const owners = [`0x${"a1".repeat(20)}`, `0x${"b2".repeat(20)}`] as const
const erc20 = "event Transfer(address indexed from, address indexed to, uint256 value)"

beforeAll(async () => {
  const [, , , , , , , , from] = await service.provider.send("eth_accounts", [])
  const token = new Interface(["function mint(address,uint256)"])
  const hashes: Array<string> = []
  for (const [owner, amount] of [
    [owners[0], 5],
    [owners[1], 7],
    [owners[0], 9]
  ] as const) {
    const hash = await service.provider.send("eth_sendTransaction", [
      {
        from,
        to: service.info.token,
        data: token.encodeFunctionData("mint", [owner, amount]),
        gas: toBeHex(200_000),
        maxFeePerGas: "0x4a817c800",
        maxPriorityFeePerGas: "0x1"
      }
    ])
    await service.provider.waitForTransaction(hash)
    hashes.push(hash)
  }
  minted = hashes
})

const query = (rest: object): object => ({
  eventName: "Transfer",
  fromBlock: "0x0",
  rpc: service.info.rpc,
  ...rest
})
const find = async (rest: object) =>
  (await service.ok<{ txHashes: ReadonlyArray<string> }>("/filterEvent", query(rest))).txHashes

describe("events of a token", () => {
  it("events of a token are found and returned as the documentation shows", async () => {
    const request = { contracts: [service.info.token], eventName: "Transfer", rpc: service.info.rpc }
    const found = await documented<{ txHashes: ReadonlyArray<string> }>(service, "/filterEvent", {
      ...request,
      fields: { to: owners, value: ["5", "7"] },
      fromBlock: "0x0",
      toBlock: "latest"
    })
    expect(found.txHashes).toEqual(minted.slice(0, 2))
    const shown = await documented<{ events: ReadonlyArray<{ args: object }> }>(service, "/getEvents", {
      ...request,
      fields: { to: owners[0] },
      fromBlock: "earliest"
    })
    expect(shown.events.map(({ args }) => Object(args).value)).toEqual(["5", "9"])
  })

  it("events registered through the interface are found by name and definition", async () => {
    const topic = id("Minted2(address,uint256)")
    const eventABI = {
      type: "event",
      name: "Minted2",
      inputs: [
        { name: "who", type: "address", indexed: true, internalType: "address" },
        { name: "amount", type: "uint256", indexed: false, internalType: "uint256" }
      ],
      anonymous: false
    }
    const request = { ...query({ eventName: "Minted2" }), rpc: node.url }
    expect((await service.refused(400, "/filterEvent", request)).error).toBe("event not registered")
    const { eventDef } = await service.ok<{ eventDef: string }>("/addEvent", { eventABI })
    const forged = {
      address: service.info.token,
      topics: [topic, zeroPadValue(owners[0], 32)],
      data: AbiCoder.defaultAbiCoder().encode(["uint256"], [3]),
      logIndex: "0x0",
      transactionHash: first(minted),
      blockNumber: "0x1",
      blockHash: `0x${"01".repeat(32)}`
    }
    node.behave(logs(() => ({ result: [forged] })))
    for (const named of [
      { eventName: "Minted2" },
      { eventDef, eventName: undefined },
      { eventDef, eventName: "Minted2" }
    ])
      expect(await find({ rpc: node.url, ...named, fields: { who: owners[0], amount: ["2", 3] } })).toEqual([
        first(minted)
      ])
    expect(await find({ rpc: node.url, eventDef, eventName: undefined, fields: { amount: "4" } })).toEqual([])
  })
})

describe("a request for events", () => {
  const wrong: ReadonlyArray<readonly [object, string, string?]> = [
    [{ eventName: undefined }, "eventName"],
    [{ eventName: "Nothing" }, "eventName", "event_not_registered"],
    [{ eventName: null }, "eventName"],
    [{ eventName: "Approval", eventDef: erc20 }, "eventName"],
    [{ eventName: undefined, eventDef: "event E(uint256 x)" }, "eventDef", "event_not_registered"],
    [{ eventDef: erc20.replace("value", "amount") }, "eventDef", "event_not_registered"],
    [{ fields: { amount: "1" } }, "fields.amount"],
    [{ fields: { from: [owners[0], "bob"] } }, "fields.from[1]"],
    [{ fields: { from: [] } }, "fields.from"],
    [{ fields: { value: 1.5 } }, "fields.value"],
    [{ fields: { value: "1", tokenId: "1" } }, "fields.tokenId"],
    [{ fields: [] }, "fields"],
    [{ contracts: ["0x12"] }, "contracts[0]"],
    [{ contracts: owners[0] }, "contracts"],
    [{ fromBlock: "5", toBlock: "4" }, "fromBlock"],
    [{ fromBlock: "Safe" }, "fromBlock"],
    [{ fromBlock: "0x" }, "fromBlock"],
    [{ toBlock: `0x1${"0".repeat(16)}` }, "toBlock"],
    [{ rpc: "ftp://x" }, "rpc", "invalid_rpc"],
    [{ rpc: "http://127.0.0.1:1/" }, "rpc", "invalid_rpc"],
    [{ settings: {} }, "settings", "unknown_field"],
    [{ contract: owners[0] }, "contract", "unknown_field"]
  ]

  it.each([
    [{ fields: { From: owners[0] } }, "fields.From", "Transfer has no such field; did you mean from?"],
    [
      { fromBlock: "Latest" },
      "fromBlock",
      "expected a block number, hex or decimal, or one of earliest, latest, safe, finalized, pending; did you mean latest?"
    ]
  ])("a request with %j gets the intended name", async (rest, path, message) => {
    const { details } = await service.refused(400, "/filterEvent", query(rest))
    expect(details).toEqual([{ path, message }])
  })

  it.each(wrong.map(([rest, path, code = "invalid_request"]) => ({ rest, path, code })))(
    "a request with $rest is refused",
    async ({ code, path, rest }) => {
      for (const endpoint of ["/filterEvent", "/getEvents"]) {
        const refused = await service.refused(400, endpoint, query(rest))
        expect([refused.code, refused.details[0]?.path]).toEqual([code, path])
      }
    }
  )

  it("a field named like a built-in property of objects is refused", async () => {
    const body = JSON.stringify(query({ fields: { x: "1" } })).replace('"x"', '"__proto__"')
    const { code, details } = await service.refused(400, "/filterEvent", body)
    expect([code, details[0]?.path]).toEqual(["invalid_json", "fields.__proto__"])
  })

  it("defaults may be omitted, and blocks named in every form", async () => {
    expect(await find({ contracts: [], fields: {}, toBlock: "latest" })).toEqual(
      expect.arrayContaining([...minted])
    )
    const last = await service.provider.getBlockNumber()
    expect(await find({ fromBlock: undefined })).toEqual(minted.slice(2))
    for (const fromBlock of [
      String(last - 1),
      `0x${(last - 1).toString(16)}`,
      `0x000${(last - 1).toString(16)}`
    ])
      expect(await find({ fromBlock, toBlock: "pending" })).toEqual(minted.slice(1))
    for (const toBlock of ["safe", "finalized"] as const) {
      const { number } = (await service.provider.getBlock(toBlock)) ?? { number: -1 }
      expect(await find({ fromBlock: "earliest", toBlock })).toEqual(
        await find({ fromBlock: "0x0", toBlock: String(number) })
      )
    }
  })
})

/** A node whose replies to eth_getLogs are scripted. */
function logs(answer: (range: { readonly from: number; readonly to: number }) => Answer): Fault {
  return async ({ method, params }, ask) =>
    method === "eth_getLogs"
      ? answer({ from: Number(Object(params[0]).fromBlock), to: Number(Object(params[0]).toBlock) })
      : ask()
}

/** A node whose latest block has this number. */
const tall =
  (number: string, then: Fault): Fault =>
  async (question, ask) =>
    question.method === "eth_getBlockByNumber"
      ? { result: { number, hash: `0x${"33".repeat(32)}`, timestamp: "0x1", gasLimit: "0x1" } }
      : then(question, ask)

const transferLog = (index: number, change: object = {}) => ({
  address: service.info.token,
  topics: [id("Transfer(address,address,uint256)"), zeroPadValue(owners[0], 32), zeroPadValue(owners[1], 32)],
  data: zeroPadValue("0x01", 32),
  logIndex: toBeHex(index),
  transactionHash: `0x${"11".repeat(32)}`,
  blockNumber: "0x1",
  blockHash: `0x${"22".repeat(32)}`,
  ...change
})

describe("a node", () => {
  const refusedBy = async (fault: Fault, status: number, rest: object = {}) => {
    let asked = 0
    node.behave((question, ask) => {
      if (question.method === "eth_getLogs") asked++
      return fault(question, ask)
    })
    const { code, details } = await service.refused(status, "/getEvents", query({ rpc: node.url, ...rest }))
    return { code, asked, path: details[0]?.path, message: String(details[0]?.message) }
  }

  it("a node that refuses every range gets a limited number of queries", async () => {
    const everything = tall(
      "0xf0000",
      logs(() => refusal(-32_005, "query returned more than 10000 results"))
    )
    const { asked, code, message } = await refusedBy(everything, 422)
    expect(code).toBe("node_refused")
    expect(message).toContain("query returned more than 10000 results")
    expect(asked).toBeLessThanOrEqual(21)
  })

  it("a node that refuses for a reason unrelated to the range gets one query", async () => {
    const { asked, code, message } = await refusedBy(
      logs(() => refusal(-32_000, "unauthorized")),
      422
    )
    expect([asked, code]).toEqual([1, "node_refused"])
    expect(message).toContain("unauthorized")
  })

  it("a node whose limit needs too many queries is reported with its limit", async () => {
    const ten = tall(
      "0xf0000",
      logs(({ from, to }) => (to - from >= 10 ? refusal(-32_600, "up to a 10 block range") : { result: [] }))
    )
    const { asked, code, message } = await refusedBy(ten, 422)
    expect([asked, code]).toEqual([1, "node_limit"])
    expect(message).toContain("10 blocks at a time")
  })

  it("a range beyond the limit of a request causes no log query", async () => {
    const { asked, code, message } = await refusedBy(
      tall(
        "0x1e8480",
        logs(() => ({ result: [] }))
      ),
      400
    )
    expect([asked, code]).toEqual([0, "block_range_too_wide"])
    expect(message).toContain("end it at block 999999")
  })

  it("a range with too many events is refused with a remedy", async () => {
    const ofBlock = 5_001
    const many = tall(
      "0x1",
      logs(({ from, to }) => ({
        result: Array.from({ length: ofBlock * (to - from + 1) }, (_, i) =>
          transferLog(i % ofBlock, { blockNumber: toBeHex(i < ofBlock ? from : to) })
        )
      }))
    )
    const { code, message, path } = await refusedBy(many, 422)
    expect([code, path]).toEqual(["too_many_events", "fromBlock"])
    expect(message).toMatch(/more than 10000 .*fewer blocks/)
  })

  it("a node whose response is too large is queried in parts", async () => {
    const filler = `0x${"00".repeat(1_024 * 1_024)}`
    const huge = Array.from({ length: 9 }, (_, i) => transferLog(i, { data: filler }))
    node.behave(
      tall(
        "0x40",
        logs(({ from, to }) => ({
          result: to - from >= 10 ? huge : [transferLog(0, { blockNumber: toBeHex(from) })]
        }))
      )
    )
    const { events } = await service.ok<{ events: ReadonlyArray<object> }>(
      "/getEvents",
      query({ rpc: node.url })
    )
    expect(events).toHaveLength(9)
  })

  it.each<readonly [string, () => Fault]>([
    [
      "only logs without topics",
      () => logs(() => ({ result: [transferLog(0, { blockNumber: undefined, topics: undefined })] }))
    ],
    [
      "a latest block beyond all numbers",
      () =>
        tall(
          `0x1${"0".repeat(15)}`,
          logs(() => ({ result: [] }))
        )
    ]
  ])("a node that answers with %s is not a valid rpc", async (_, fault) => {
    const { code, path } = await refusedBy(fault(), 400, { fromBlock: "latest" })
    expect([code, path]).toEqual(["invalid_rpc", "rpc"])
  })

  it("a node that returns unrelated logs adds no events", async () => {
    const others = [
      { blockNumber: "0xffffff" },
      { blockNumber: `0x1${"0".repeat(60)}` },
      { blockNumber: null, blockHash: null, logIndex: null, transactionHash: null },
      { removed: true },
      { address: owners[1] },
      { topics: [] },
      { topics: [id("Transfer(address,address,uint256)")] },
      { topics: [id("Other()"), zeroPadValue(owners[0], 32), zeroPadValue(owners[1], 32)] },
      { data: "0x" },
      {
        topics: [id("Transfer(address,address,uint256)"), `0x${"ff".repeat(32)}`, zeroPadValue(owners[1], 32)]
      }
    ]
    node.behave(logs(() => ({ result: others.map((change, i) => transferLog(i, change)) })))
    expect(await find({ rpc: node.url, contracts: [service.info.token] })).toEqual([])
  })
})

describe("a log that cannot be read", () => {
  /** The real node's logs after `foreign` ones; `change` modifies the first real log. */
  const spoil = (change: object, ...foreign: ReadonlyArray<unknown>) =>
    node.behave(async (question, ask) => {
      const answer = await ask()
      if (question.method !== "eth_getLogs" || !("result" in answer)) return answer
      const [log, ...rest] = Object(answer.result)
      return { result: [...foreign, { ...log, ...change }, ...rest] }
    })
  interface Shown {
    readonly txHash: string
    readonly logIndex: number
    readonly args: object
    readonly missing?: ReadonlyArray<string>
  }
  const asked = () => ({ contracts: [service.info.token], rpc: node.url, useABI: [erc20], eventDef: erc20 })
  const shown = async (rest: object = {}) =>
    (await service.ok<{ events: ReadonlyArray<Shown> }>("/getEvents", query({ ...asked(), ...rest }))).events

  it("a foreign log is left out, and hides none of the other logs", async () => {
    const bare = { address: service.info.token, topics: [id("Other()")], logIndex: "0x0" }
    const elsewhere = { ...bare, address: owners[0], topics: [id("Transfer(address,address,uint256)")] }
    for (const odd of [null, {}, "log", bare, elsewhere, { topics: bare.topics }]) {
      spoil({}, odd)
      expect(await find(asked())).toEqual(minted)
      expect((await shown()).map(({ missing, txHash }) => [txHash, missing])).toEqual(
        minted.map((hash) => [hash, undefined])
      )
    }
  })

  it("a matching log with missing members is returned with a list of them", async () => {
    spoil({ data: undefined })
    expect(await find(asked())).toEqual(minted)
    const [first, ...others] = await shown()
    expect(first).toMatchObject({ txHash: minted[0], missing: ["data"], args: { value: null } })
    expect(Object(first?.args).to.toLowerCase()).toBe(owners[0])
    expect(others.map(({ missing, txHash }) => [txHash, missing])).toEqual(
      minted.slice(1).map((hash) => [hash, undefined])
    )
    // The value is unknown, so it may not match.
    expect(await find({ ...asked(), fields: { value: ["5", "7"] } })).toEqual([minted[1]])

    spoil({ logIndex: undefined })
    expect(await find(asked())).toEqual(minted)
    expect((await shown())[0]).toMatchObject({ missing: ["logIndex"], args: { value: "5" } })

    spoil({ transactionHash: "0x" })
    expect(await find(asked())).toEqual(minted.slice(1))
    expect((await shown())[0]).toMatchObject({ txHash: "", missing: ["transactionHash"] })

    for (const name of ["topics", "address"]) {
      spoil({ [name]: undefined })
      expect(await find(asked())).toEqual(minted.slice(1))
    }
  })
})
