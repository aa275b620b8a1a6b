import { describe, expect } from "@effect/vitest"
import { Context, Effect, Layer, Result } from "effect"
import { id } from "ethers/hash"
import type * as EventQuery from "../../../../src/application/chain/logs/EventQuery.js"
import * as EventReader from "../../../../src/application/chain/logs/EventReader.js"
import * as GetEvents from "../../../../src/application/endpoints/events/GetEvents.js"
import type { Failure } from "../../../../src/application/failures/Failure.js"
import { AbiStore } from "../../../../src/application/ports/AbiStore.js"
import {
  type ChainClient,
  ChainRpc,
  ChainRpcError,
  type FoundLog,
  type LogFilter
} from "../../../../src/application/ports/chain/ChainRpc.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import { Networks } from "../../../../src/application/ports/Networks.js"
import * as Event from "../../../../src/domain/abi/Event.js"
import type { Address } from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../../support/journal/InMemory.js"
import { address, alice, bob, word } from "../../../support/journal/Make.js"
import * as ChainMemory from "../../../support/memory/ChainRpc.js"
import * as Parties from "../../../support/Parties.js"
import { test } from "../../../support/Test.js"

const rpc = "http://127.0.0.1:8545/key"
const origin = "http://127.0.0.1:8545"

const profile = NetworkProfile.make({ chainId: 31_337n })

const event = (text: string): Event.EventDefinition => Result.getOrThrow(Event.parse(text))

const log = (
  blockNumber: number,
  logIndex: number,
  topics: ReadonlyArray<string>,
  data = "0x",
  at: Address = address(1)
): FoundLog => ({
  address: at,
  topics: topics.map(Hex.unsafe32),
  data: Hex.unsafe(data),
  logIndex,
  txHash: word(blockNumber),
  blockNumber: BigInt(blockNumber),
  blockHash: word(blockNumber)
})

/**
 * A node that answers for logs as `behaviour` says; `head` is the latest block, a block's hash is its number on the
 * `fork`.
 */
const world = (behaviour: {
  readonly logs: (filter: LogFilter & { from: number; to: number }) => ReadonlyArray<FoundLog> | ChainRpcError
  readonly head?: () => bigint
  readonly fork?: () => number
  readonly registered?: Event.EventDefinition
}) => {
  const asked: Array<LogFilter> = []
  const client = Effect.map(
    ChainMemory.make({ chainId: 31_337n }),
    (node): ChainClient => ({
      ...node.client(origin),
      block: (tag) =>
        Effect.sync(() => {
          const head = behaviour.head?.() ?? 1_000n
          const number = typeof tag === "bigint" ? tag : head
          const hash = word(number * 1_000n + BigInt(behaviour.fork?.() ?? 0))
          return number > head ? null : { number, hash, timestamp: 1, gasLimit: 1n, baseFeePerGas: null }
        }),
      logs: (filter) =>
        Effect.suspend(() => {
          asked.push(filter)
          const answer = behaviour.logs({
            ...filter,
            from: Number(filter.fromBlock),
            to: Number(filter.toBlock)
          })
          return answer instanceof ChainRpcError ? Effect.fail(answer) : Effect.succeed(answer)
        })
    })
  )
  const layer = Layer.mergeAll(
    Layer.tap(InMemory.abiStore, (context) =>
      behaviour.registered === undefined
        ? Effect.void
        : Context.get(context, AbiStore).addEvent(alice, behaviour.registered)
    ),
    Layer.effect(
      ChainRpc,
      Effect.map(client, (one) => ({ connect: () => Effect.succeed(one) }))
    ),
    Layer.succeed(Networks, {
      profile: () => Effect.succeed(profile),
      chainIds: Effect.succeed([31_337n])
    })
  )
  const read = (request: EventQuery.Request, account = alice) =>
    Effect.result(
      Effect.map(GetEvents.run(Parties.caller("r", account), request), ({ events }) => events)
    ).pipe(Effect.provide(layer))
  return { asked, read }
}

const rejected = (message: string) =>
  new ChainRpcError({ reason: "rejected", origin, message, rpcCode: -32_000 })
const query = (rest: Partial<EventQuery.Request>): EventQuery.Request => ({ fromBlock: "0", rpc, ...rest })
const codeOf = (result: Result.Result<unknown, Failure>) =>
  Result.match(result, { onFailure: ({ code }) => code, onSuccess: () => "none" })
const transferTopic = id("Transfer(address,address,uint256)")
const erc20 = (block: number, index: number, value = 1) =>
  log(block, index, [transferTopic, word(1), word(2)], word(value))
const erc721 = (block: number, index: number) => log(block, index, [transferTopic, word(1), word(2), word(3)])

describe("events by definition", () => {
  test("are limited to the account that registered them", function* () {
    const deposit = event("event Deposited2(address indexed from, uint256 amount)")
    const logs = () => [log(7, 0, [deposit.topic, word(5)], word(9))]
    const { read } = world({ logs, registered: deposit })
    const request = query({ eventName: "Deposited2", fields: { amount: "9" } })
    expect(yield* read(request)).toEqual(
      Result.succeed([
        {
          txHash: word(7),
          blockNumber: 7,
          logIndex: 0,
          address: address(1),
          eventName: "Deposited2",
          eventDef: deposit.canonical,
          args: { from: address(5), amount: "9" }
        }
      ])
    )
    for (const given of [{ eventName: "Deposited2" }, { eventDef: deposit.canonical }]) {
      expect(codeOf(yield* read(query(given), bob))).toBe("event_not_registered")
      expect(codeOf(yield* read(query(given), alice))).toBe("none")
      expect(codeOf(yield* read(query({ ...given, useABI: [deposit.canonical] }), bob))).toBe("none")
    }
    const spelled = "Deposited2( address  indexed from ,uint amount )"
    expect(codeOf(yield* read(query({ eventDef: spelled })))).toBe("none")
    for (const other of [
      "event Deposited2(address from, uint256 amount)",
      "event Deposited2(address indexed from, uint256 value)",
      "event Deposited2(address indexed from, uint256 amount) anonymous",
      "event deposited2(address indexed from, uint256 amount)"
    ])
      expect(codeOf(yield* read(query({ eventDef: other })))).toBe("event_not_registered")
  })

  test("with a shared name decode by each definition's layout, the caller's names first", function* () {
    const { asked, read } = world({ logs: () => [erc20(3, 1), erc721(3, 0), erc20(2, 5)] })
    const useABI = ["event Transfer(address indexed a, address indexed b, uint256 c)"]
    const found = Result.getOrThrow(yield* read(query({ eventName: "Transfer", useABI })))
    expect(
      found.map(({ args, blockNumber, logIndex }) => [blockNumber, logIndex, Object.keys(Object(args))])
    ).toEqual([
      [2, 5, ["a", "b", "c"]],
      [3, 0, ["from", "to", "tokenId"]],
      [3, 1, ["a", "b", "c"]]
    ])
    expect(asked).toHaveLength(1)
    const narrow = Result.getOrThrow(
      yield* read(query({ eventName: "Transfer", useABI, fields: { value: "1" } }))
    )
    expect(narrow.map(({ eventDef }) => eventDef)).toEqual(
      Array.from(
        { length: 2 },
        () => "event Transfer(address indexed from, address indexed to, uint256 value)"
      )
    )
  })

  test("reject a name with too many definitions", function* () {
    const { asked, read } = world({ logs: () => [] })
    const useABI = Array.from({ length: 33 }, (_, i) => `event Many(uint8 a${i})`)
    expect(codeOf(yield* read(query({ eventName: "Many", useABI: useABI.slice(1) })))).toBe("none")
    expect(codeOf(yield* read(query({ eventName: "Many", useABI })))).toBe("invalid_request")
    expect(codeOf(yield* read(query({ eventDef: useABI[32] ?? "", useABI })))).toBe("none")
    expect(asked).toHaveLength(2)
  })
})

describe("a reply of the node", () => {
  test("is believed only where it answers the question, and each log once", function* () {
    const { read } = world({
      logs: () => [
        erc20(20, 1),
        erc20(10, 2),
        erc20(10, 1),
        erc20(10, 2, 5),
        erc20(9, 0),
        erc20(21, 0),
        { ...erc20(15, 0), address: address(2) },
        log(15, 1, [word(5), word(1), word(2)], word(1)),
        log(15, 2, [transferTopic, word(1), word(3)], word(1)),
        log(15, 3, [], word(1)),
        log(15, 4, [transferTopic, word(1), word(2)], "0x01")
      ]
    })
    const found = yield* read(
      query({
        eventName: "Transfer",
        contracts: [address(1)],
        fromBlock: "10",
        toBlock: "0x14",
        fields: { to: address(2) }
      })
    )
    expect(Result.getOrThrow(found).map(({ blockNumber, logIndex }) => [blockNumber, logIndex])).toEqual([
      [10, 1],
      [10, 2],
      [20, 1]
    ])
  })

  test("fixes the latest block at the start for all parts, however the chain grows", function* () {
    let head = 1_000n
    const { asked, read } = world({
      head: () => head,
      logs: ({ from, to }) => {
        head += 10n
        return to - from >= 300 ? rejected("block range too large, max: 300") : [erc20(to, 0)]
      }
    })
    const found = Result.getOrThrow(yield* read(query({ eventName: "Transfer", toBlock: "latest" })))
    expect(found.map(({ blockNumber }) => blockNumber)).toEqual([299, 599, 899, 1_000])
    expect(asked.map(({ fromBlock, toBlock }) => [fromBlock, toBlock])).toEqual([
      [0n, 1_000n],
      [0n, 299n],
      [300n, 599n],
      [600n, 899n],
      [900n, 1_000n]
    ])
  })

  test("read in parts is read again when the chain was reorganised meanwhile", function* () {
    let fork = 0
    let answers = 0
    const { read } = world({
      fork: () => fork,
      logs: ({ from, to }) => {
        if (to - from >= 600) return rejected("block range too large, max: 600")
        // The reorganisation falls between the two parts of the first reading.
        if (++answers === 1) fork = 1
        return [erc20(from, 0, fork)]
      }
    })
    const found = Result.getOrThrow(yield* read(query({ eventName: "Transfer" })))
    expect(answers).toBe(4)
    expect(found.map(({ args }) => Object(args).value)).toEqual(["1", "1"])
  })

  test("holds at most 10,000 events", function* () {
    const logs = Array.from({ length: EventReader.bounds.results + 1 }, (_, i) => erc20(1 + (i % 999), i))
    const { read } = world({ logs: ({ from }) => (from === 0 ? logs : logs.slice(1)) })
    const request = query({ eventName: "Transfer" })
    expect(codeOf(yield* read(request))).toBe("too_many_events")
    const exact = Result.getOrThrow(yield* read({ ...request, fromBlock: "1" }))
    expect(exact).toHaveLength(EventReader.bounds.results)
  })

  test("fails with too many events when a block holds more than the limit", function* () {
    const message =
      "the answer is too large: it is larger than 8388608 bytes, or holds more than 98304 JSON values"
    const { asked, read } = world({
      logs: ({ from, to }) =>
        from <= 40 && 40 <= to ? new ChainRpcError({ reason: "notAnRpc", origin, message }) : []
    })
    expect(codeOf(yield* read(query({ eventName: "Transfer" })))).toBe("too_many_events")
    expect(asked.some(({ fromBlock, toBlock }) => fromBlock === 40n && toBlock === 40n)).toBe(true)
  })

  test("ends the request when the node's limits are too narrow, and the error states the block count to use", function* () {
    const { asked, read } = world({
      head: () => 900_000n,
      logs: ({ from, to }) => (to - from >= 10 ? rejected("up to a 10 block range") : [])
    })
    const result = yield* read(query({ eventName: "Transfer" }))
    expect(codeOf(result)).toBe("node_limit")
    expect(Result.isFailure(result) && result.failure.details[0]?.message).toContain("at most 5000 blocks")
    expect(asked).toHaveLength(1)
    expect(codeOf(yield* read(query({ eventName: "Transfer", toBlock: "4999" })))).toBe("none")
  })

  test("never spans more blocks than a request may", function* () {
    const { asked, read } = world({ head: () => 10n ** 7n, logs: () => [] })
    const range = (fromBlock: string, toBlock: string) =>
      read(query({ eventName: "Transfer", fromBlock, toBlock }))
    expect(codeOf(yield* range("1", "1000000"))).toBe("none")
    expect(codeOf(yield* range("0", "1000000"))).toBe("block_range_too_wide")
    expect(codeOf(yield* range("earliest", "latest"))).toBe("block_range_too_wide")
    expect(codeOf(yield* range("9500000", "0xffffffffffffffff"))).toBe("none")
    expect(asked).toHaveLength(2)
  })
})
