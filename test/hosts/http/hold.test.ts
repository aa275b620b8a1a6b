import { beforeAll, describe, expect, it } from "vitest"
import { posts } from "../../support/http/Contract.js"
import * as MemoryService from "../../support/http/MemoryService.js"
import { use } from "../../support/Use.js"
import * as Holding from "./Holding.js"
import { addressOf, hex, most } from "./Holding.js"

const MiB = 2 ** 20
const { place } = MemoryService

const holding = use(Holding.start)

/** Sets the node's reply to a method, as JSON. */
const says = (next: Holding.Says) => holding.says(next)

/** Warms up the compiler. */
beforeAll(async () => {
  const few = Buffer.from(JSON.stringify(addressesData(2_000)))
  says((method) => (method === "eth_call" ? few : block))
  for (let index = 0; index < 3; index++) await holding.ask("/read", JSON.stringify(reads(3, "(address[])")))
}, 60_000)

const held: Holding.Holding["held"] = (path, bodies) => holding.held(path, bodies)

const several = (count: number, body: unknown) => Array.from({ length: count }, () => JSON.stringify(body))

const addressesData = (count: number) =>
  `0x${hex(32n, 64)}${hex(BigInt(count), 64)}${Array.from({ length: count }, (_, index) => addressOf(index).padStart(64, "0")).join("")}`

const reads = (count: number, returnSignature: string) => ({
  rpc: holding.rpc,
  reads: Array.from({ length: count }, () => ({
    to: place.wallet,
    funcSignature: "addresses(uint256)",
    funcParams: ["1"],
    returnSignature
  }))
})

const log = (index: number, data: string) =>
  JSON.stringify({
    address: place.token,
    topics: [
      "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
      `0x${addressOf(index).padStart(64, "0")}`,
      `0x${addressOf(index + 7).padStart(64, "0")}`
    ],
    data,
    blockNumber: "0x1",
    transactionHash: `0x${"ab".repeat(32)}`,
    transactionIndex: "0x0",
    blockHash: `0x${"cd".repeat(32)}`,
    logIndex: `0x${index.toString(16)}`,
    removed: false
  })

const block = Buffer.from(
  JSON.stringify({
    number: "0x10",
    hash: `0x${"cd".repeat(32)}`,
    timestamp: "0x1",
    gasLimit: "0x1c9c380",
    baseFeePerGas: "0x1"
  })
)

const word = `0x${"11".repeat(32)}`
const wordAnswer = Buffer.from(JSON.stringify(word))

describe("no request holds the event loop for more than 100 ms", () => {
  it("with /read of 20,000 addresses each, sixteen times", { timeout: 120_000 }, async () => {
    const data = Buffer.from(JSON.stringify(addressesData(20_000)))
    says((method) => (method === "eth_call" ? data : block))
    const { answers, longest } = await held("/read", several(16, reads(1, "(address[])")))
    for (const { body, status } of answers) {
      expect(status).toBe(200)
      expect(body).toContain("more than 16384 values: a read is decoded to at most 16384 values")
    }
    const fitting = Buffer.from(JSON.stringify(addressesData(16_000)))
    says((method) => (method === "eth_call" ? fitting : block))
    const all = await held("/read", several(8, reads(6, "(address[])")))
    const [{ body } = { body: "" }] = all.answers
    expect(all.answers.map(({ status }) => status)).toEqual(all.answers.map(() => 200))
    const told = JSON.parse(body).map(
      ({ results }: { results: ReadonlyArray<ReadonlyArray<unknown>> }) => results.flat().length
    )
    expect(told).toEqual([16_000, 16_000, 16_000, 16_000, 0, 0])
    expect(body).toContain("too much for one request")
    expect([longest, all.longest].every((millis) => millis < most)).toBe(true)
  })

  it.each([
    ["of objects", () => `[${"{},".repeat(49_000)}{}]`],
    ["of too many objects", () => `[${"{},".repeat(5_000_000)}{}]`],
    ["of distinct names", () => `{${Array.from({ length: 98_000 }, (_, i) => `"a${i}":1`).join(",")}}`],
    ["of distinct strings", () => `[${Array.from({ length: 98_000 }, (_, i) => `"${i}"`).join(",")}]`],
    ["of brackets", () => "[".repeat(98_000) + "]".repeat(98_000)],
    ["of hex digits", () => `"0x${"ab".repeat(4 * MiB - 1_024)}"`],
    ["of escapes", () => `"${"\\u0041".repeat(1_390_000)}"`],
    ["of text", () => `"${"é".repeat(4 * MiB - 1_024)}"`]
  ])("with a node that answers megabytes %s", { timeout: 120_000 }, async (_, make) => {
    const text = Buffer.from(make())
    says((method) => (method === "eth_call" ? text : block))
    const { answers, longest } = await held("/read", several(1, reads(1, "(bytes)")))
    expect(answers.map(({ status }) => status)).not.toContain(500)
    expect(longest).toBeLessThan(most)
  })

  it("with /getEvents and /filterEvent of 6,500 logs", { timeout: 120_000 }, async () => {
    const list = Buffer.from(`[${Array.from({ length: 6_500 }, (_, index) => log(index, word)).join(",")}]`)
    says((method) => (method === "eth_getLogs" ? list : block))
    const query = { rpc: holding.rpc, eventName: "Transfer", fromBlock: "0x1", toBlock: "0x1" }
    for (const path of ["/getEvents", "/filterEvent"]) {
      const { answers, longest } = await held(path, several(2, query))
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      expect(longest).toBeLessThan(most)
    }
  })

  it("with /receipt of 6,500 logs", { timeout: 120_000 }, async () => {
    const hash = `0x${"ab".repeat(32)}`
    const logs = Array.from({ length: 6_500 }, (_, index) => log(index, word)).join(",")
    const receipt = Buffer.from(
      `{"transactionHash":"${hash}","status":"0x1","blockNumber":"0x1","blockHash":"0x${"cd".repeat(32)}","gasUsed":"0x1","cumulativeGasUsed":"0x1","effectiveGasPrice":"0x1","from":"${place.wallet}","logs":[${logs}]}`
    )
    says((method) => (method === "eth_getTransactionReceipt" ? receipt : block))
    const { answers, longest } = await held("/receipt", several(1, { rpc: holding.rpc, txHashes: [hash] }))
    expect(answers.map(({ status }) => status)).toEqual([200])
    expect(longest).toBeLessThan(most)
  })

  it.each([
    ["addresses", "address[]", (index: number) => `"0x${addressOf(index)}"`],
    ["texts", "string[]", (index: number) => `"${index.toString(36)}"`],
    ["numbers", "uint256[]", (index: number) => String(index % 10)],
    ["lists", "uint8[][]", () => "[]"]
  ])("with /sign of documents of 16,384 values: %s", { timeout: 120_000 }, async (what, type, value) => {
    const [head = "", tail = ""] = JSON.stringify({
      types: { A: [{ name: "a", type }] },
      primaryType: "A",
      domain: { name: "x" },
      message: { a: ["HERE"] }
    }).split('"HERE"')
    const values: Array<string> = []
    let room = 131_072 - head.length - tail.length
    for (let index = 0; index < (what === "lists" ? 8_180 : 16_370); index++) {
      const text = value(index)
      room -= text.length + 1
      if (room < 0) break
      values.push(text)
    }
    const document = head + values.join(",") + tail
    const count = Math.min(7, Math.floor((MiB - 200) / JSON.stringify(document).length))
    const body = { messages: Array.from({ length: count }, () => document), signer: place.signer, eip712: {} }
    const { answers, longest } = await held("/sign", several(1, body))
    expect(answers[0]?.body).toContain('"errors":null')
    expect(longest).toBeLessThan(most)
  })

  it("with /sign of 256 messages, and of one as long as a body", { timeout: 120_000 }, async () => {
    const { signer } = place
    const messages = Array.from({ length: 256 }, (_, index) => `${index}${"m".repeat(3_900)}`)
    const many = await held("/sign", several(1, { messages, signer }))
    const long = await held("/sign", several(1, { messages: ["é".repeat(500_000)], signer }))
    expect([many.answers[0]?.status, long.answers[0]?.status]).toEqual([200, 200])
    expect([many.longest, long.longest].every((millis) => millis < most)).toBe(true)
  })

  it.each(posts)(
    "with $path, its arrays at their longest and bodies of 1 MiB",
    {
      timeout: 120_000
    },
    async ({ example, path }) => {
      const full = JSON.stringify(example, (_, value: unknown) =>
        Array.isArray(value) && value.length > 0
          ? Array.from({ length: 256 }, (__, index) => value[index % value.length])
          : value
      )
      const bodies = [
        full.length < MiB ? full : "{}",
        `{${Array.from({ length: 60_000 }, (_, index) => `"a${index}":1`).join(",")}}`,
        `{"operations":[${Array.from({ length: 250 }, () => `[${"[],".repeat(250)}[]]`).join(",")}]}`,
        `{"a":"${"\\u0041".repeat(170_000)}"}`,
        `[${"1,".repeat(500_000)}1]`,
        "x".repeat(8 * MiB)
      ]
      const longest: Array<number> = []
      for (const body of bodies) {
        const { answers, longest: millis } = await held(path, [body])
        expect(answers[0]?.status).not.toBe(500)
        longest.push(millis)
      }
      expect(longest.filter((millis) => millis >= most)).toEqual([])
    }
  )

  it("with parameters and definitions that fill a body", { timeout: 120_000 }, async () => {
    says((method) => (method === "eth_call" ? wordAnswer : block))
    const read = { ...reads(1, "uint256").reads[0], funcSignature: "f(address[])" }
    const mixed = Array.from({ length: 4_000 }, (_, index) => `0x${addressOf(index)}`)
    const texts = [
      JSON.stringify(mixed),
      `[${"1,".repeat(400_000)}1]`,
      `[${'"1",'.repeat(200_000)}"1"]`,
      `"${"[".repeat(400_000)}`
    ]
    for (const text of texts) {
      const count = Math.min(256, Math.floor(MiB / (text.length * 1.3 + 300)))
      const body = {
        rpc: holding.rpc,
        reads: Array.from({ length: Math.max(1, count) }, () => ({ ...read, funcParams: [text] }))
      }
      const { longest } = await held("/read", [JSON.stringify(body)])
      expect(longest).toBeLessThan(most)
    }
    const fields = Array.from({ length: 200 }, (_, index) => `uint256 a${index}`).join(", ")
    const useABI = Array.from({ length: 256 }, (_, index) => `event E${index}(${fields})`)
    const { answers, longest } = await held("/read", [JSON.stringify({ ...reads(1, "uint256"), useABI })])
    expect(answers[0]?.status).toBe(200)
    expect(longest).toBeLessThan(most)
  })

  it("with 10,000 registered definitions of one topic", { timeout: 240_000 }, async () => {
    for (let index = 0; index < 10_000; index++)
      await holding.ask(
        "/addEvent",
        JSON.stringify({ eventDef: `event Transfer(address a${index}, address b, uint256 c)` })
      )
    says((method) => (method === "eth_call" ? wordAnswer : block))
    const { longest } = await held("/read", [JSON.stringify(reads(1, "uint256"))])
    expect(longest).toBeLessThan(most)
  })
})
