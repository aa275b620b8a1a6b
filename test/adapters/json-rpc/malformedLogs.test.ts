import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { LogFilter } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { honest } from "../../support/HostileNode.js"
import { connect, http } from "./support.js"

const word = (byte: string) => Hex.unsafe32(`0x${byte.repeat(32)}`)
const address = Address.unsafe(`0x${"ad".repeat(20)}`)
const whole = {
  address,
  topics: [word("70")],
  data: "0x01",
  logIndex: "0x3",
  transactionHash: word("5e"),
  blockNumber: "0x5",
  blockHash: word("0b"),
  removed: false
}
const filter: LogFilter = { address: [address], topics: [word("70")], fromBlock: 1n, toBlock: 9n }

const telling = (...logs: ReadonlyArray<unknown>) =>
  Effect.flatMap(
    http((response, body) => honest(response, body, () => logs)),
    connect
  )

const without = (name: keyof typeof whole) =>
  Object.fromEntries(Object.entries(whole).filter(([each]) => each !== name))

const foreign: ReadonlyArray<readonly [string, object]> = [
  ["of another contract", { ...without("data"), address: `0x${"cc".repeat(20)}` }],
  ["of another event", { ...without("data"), topics: [word("71")] }],
  ["of no event", { ...without("data"), topics: [] }],
  ["of a block that was not asked for", { ...without("data"), blockNumber: "0xa" }],
  ["that is pending", { ...without("data"), blockHash: null }],
  ["that was removed", { ...without("data"), removed: true }]
]
const ours: ReadonlyArray<readonly [string, unknown]> = [
  ["0.address", without("address")],
  ["0.topics", without("topics")],
  ["0.data", without("data")],
  ["0.data", { ...whole, data: "1" }],
  ["0.logIndex", without("logIndex")],
  ["0.transactionHash", without("transactionHash")],
  ["0.blockNumber", { ...whole, blockNumber: 5 }],
  ["0.removed", { ...whole, removed: "yes" }],
  ["0", null]
]

describe("a log that cannot be read", () => {
  it.live.each(foreign)("a foreign malformed log (%s) spoils no other log", ([_, odd]) =>
    Effect.gen(function* () {
      const chain = yield* telling(odd, whole)
      for (const read of [chain.logs(filter), chain.logs(filter, "lenient")])
        expect((yield* read).map(({ logIndex }) => logIndex)).toEqual([3])
      const ofBlock = yield* telling({ ...odd, ...("blockNumber" in odd && { removed: true }) }, whole)
      expect((yield* ofBlock.logsOf(word("0b"), filter)).length).toBe(1)
    })
  )

  it.live.each(ours)("a malformed log that may match the filter fails the read: %s", ([place, odd]) =>
    Effect.gen(function* () {
      const chain = yield* telling(odd, whole)
      for (const read of [chain.logs(filter), chain.logsOf(word("0b"), filter)]) {
        const { message, reason } = yield* Effect.flip(read)
        expect([reason, message.endsWith(`eth_getLogs is malformed at ${place}`)]).toEqual(["notAnRpc", true])
      }
    })
  )

  it.live("a malformed log that matches the filter is returned with its known fields", () =>
    Effect.gen(function* () {
      for (const [place, odd] of ours) {
        const name = place.slice(2)
        const found = yield* (yield* telling(odd, whole)).logs(filter, "lenient")
        const isKnown = !["address", "topics", ""].includes(name)
        expect([place, found.map(({ missing }) => missing)]).toEqual([
          place,
          isKnown ? [undefined, [name]] : [undefined]
        ])
      }
      const anywhere = { topics: filter.topics, fromBlock: 1n, toBlock: 9n }
      const [found] = yield* (yield* telling(without("address"))).logs(anywhere, "lenient")
      expect(found).toMatchObject({ missing: ["address"], data: "0x01", txHash: whole.transactionHash })
    })
  )

  it.live.each(ours)("a malformed log is returned only when its place is known: %s", ([place, odd]) =>
    Effect.gen(function* () {
      const chain = yield* telling(odd, whole)
      const name = place.slice(2)
      for (const read of [chain.logs(filter, "placed"), chain.logsOf(word("0b"), filter, "placed")]) {
        const found = yield* Effect.result(read)
        expect(
          found._tag === "Success" ? found.success.map(({ missing }) => missing) : found.failure.message
        ).toEqual(
          ["data", "transactionHash", "removed"].includes(name)
            ? [undefined, [name]]
            : expect.stringContaining(`is malformed at ${place}`)
        )
      }
    })
  )
})
