import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import { id } from "ethers/hash"
import * as ChainMemory from "../../../src/adapters/memory/ChainRpc.js"
import type * as EventQuery from "../../../src/application/chain/EventQuery.js"
import * as EventReader from "../../../src/application/chain/EventReader.js"
import { AbiStore } from "../../../src/application/ports/AbiStore.js"
import {
  type ChainClient,
  ChainRpc,
  ChainRpcError,
  type FoundLog,
  type LogFilter
} from "../../../src/application/ports/chain/ChainRpc.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import type { Failure } from "../../../src/application/request/Failure.js"
import * as GetEvents from "../../../src/application/usecases/events/GetEvents.js"
import * as Event from "../../../src/domain/abi/Event.js"
import type { Address } from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import { address, alice, bob, word } from "../../support/journal/Make.js"

const rpc = "http://127.0.0.1:8545/key"
const origin = "http://127.0.0.1:8545"

const profile = NetworkProfile.make({ chainId: 31_337n })

const caller = (accountId: AccountId): Caller => ({
  principal: { accountId, name: accountId, tier: "free", scopes: new Set(["read"]), paused: false },
  requestId: "r"
})

const event = (text: string): Event.EventDefinition => Either.getOrThrow(Event.parse(text))

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

/** A node that answers for logs as told; `head` is the latest block, a block's hash is its number on the `fork`. */
const world = (behaviour: {
  readonly logs: (filter: LogFilter & { from: number; to: number }) => ReadonlyArray<FoundLog> | ChainRpcError
  readonly head?: () => bigint
  readonly fork?: () => number
  readonly never?: boolean
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
          if (behaviour.never === true) return Effect.never
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
    InMemory.abiStore,
    Layer.effect(
      ChainRpc,
      Effect.map(client, (one) => ({ connect: () => Effect.succeed(one) }))
    ),
    Layer.succeed(Networks, {
      profile: () => Effect.succeed(profile),
      chainIds: Effect.succeed([31_337n])
    })
  )
  return { asked, layer }
}

const rejected = (message: string) =>
  new ChainRpcError({ reason: "rejected", origin, message, rpcCode: -32_000 })
const query = (rest: Partial<EventQuery.Request>): EventQuery.Request => ({ fromBlock: "0", rpc, ...rest })
const codeOf = (result: Either.Either<unknown, Failure>) =>
  Either.match(result, { onLeft: ({ code }) => code, onRight: () => "none" })
const read = (request: EventQuery.Request, account = alice) =>
  Effect.either(Effect.map(GetEvents.run(caller(account), request), ({ events }) => events))

const transferTopic = id("Transfer(address,address,uint256)")
const erc20 = (block: number, index: number, value = 1) =>
  log(block, index, [transferTopic, word(1), word(2)], word(value))
const erc721 = (block: number, index: number) => log(block, index, [transferTopic, word(1), word(2), word(3)])

describe("events by definition", () => {
  it.effect("are those of the account that registered them, and of nobody else", () => {
    const deposit = event("event Deposited2(address indexed from, uint256 amount)")
    const { layer } = world({ logs: () => [log(7, 0, [deposit.topic, word(5)], word(9))] })
    return Effect.gen(function* () {
      const store = yield* AbiStore
      yield* store.addEvent(alice, deposit)
      const request = query({ eventName: "Deposited2", fields: { amount: "9" } })
      expect(yield* read(request)).toEqual(
        Either.right([
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
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "of one name are all definitions of it, each by its own layout, with the caller's names first",
    () => {
      const { asked, layer } = world({ logs: () => [erc20(3, 1), erc721(3, 0), erc20(2, 5)] })
      return Effect.gen(function* () {
        const useABI = ["event Transfer(address indexed a, address indexed b, uint256 c)"]
        const found = Either.getOrThrow(yield* read(query({ eventName: "Transfer", useABI })))
        expect(
          found.map(({ args, blockNumber, logIndex }) => [blockNumber, logIndex, Object.keys(Object(args))])
        ).toEqual([
          [2, 5, ["a", "b", "c"]],
          [3, 0, ["from", "to", "tokenId"]],
          [3, 1, ["a", "b", "c"]]
        ])
        expect(asked).toHaveLength(1)
        const narrow = Either.getOrThrow(
          yield* read(query({ eventName: "Transfer", useABI, fields: { value: "1" } }))
        )
        expect(narrow.map(({ eventDef }) => eventDef)).toEqual(
          Array.from(
            { length: 2 },
            () => "event Transfer(address indexed from, address indexed to, uint256 value)"
          )
        )
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("of too many definitions of one name are refused", () => {
    const { asked, layer } = world({ logs: () => [] })
    return Effect.gen(function* () {
      const useABI = Array.from({ length: 33 }, (_, i) => `event Many(uint8 a${i})`)
      expect(codeOf(yield* read(query({ eventName: "Many", useABI: useABI.slice(1) })))).toBe("none")
      expect(codeOf(yield* read(query({ eventName: "Many", useABI })))).toBe("invalid_request")
      expect(codeOf(yield* read(query({ eventDef: useABI[32] ?? "", useABI })))).toBe("none")
      expect(asked).toHaveLength(2)
    }).pipe(Effect.provide(layer))
  })
})

describe("what a node says", () => {
  it.effect("is believed only where it answers the question, and each log once", () => {
    const { layer } = world({
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
    return Effect.gen(function* () {
      const found = yield* read(
        query({
          eventName: "Transfer",
          contracts: [address(1)],
          fromBlock: "10",
          toBlock: "0x14",
          fields: { to: address(2) }
        })
      )
      expect(Either.getOrThrow(found).map(({ blockNumber, logIndex }) => [blockNumber, logIndex])).toEqual([
        [10, 1],
        [10, 2],
        [20, 1]
      ])
    }).pipe(Effect.provide(layer))
  })

  it.effect("of the latest block at the start holds for all parts, however the chain grows", () => {
    let head = 1_000n
    const { asked, layer } = world({
      head: () => head,
      logs: ({ from, to }) => {
        head += 10n
        return to - from >= 300 ? rejected("block range too large, max: 300") : [erc20(to, 0)]
      }
    })
    return Effect.gen(function* () {
      const found = Either.getOrThrow(yield* read(query({ eventName: "Transfer", toBlock: "latest" })))
      expect(found.map(({ blockNumber }) => blockNumber)).toEqual([299, 599, 899, 1_000])
      expect(asked.map(({ fromBlock, toBlock }) => [fromBlock, toBlock])).toEqual([
        [0n, 1_000n],
        [0n, 299n],
        [300n, 599n],
        [600n, 899n],
        [900n, 1_000n]
      ])
    }).pipe(Effect.provide(layer))
  })

  it.effect("in parts is read again when the chain was reorganised meanwhile", () => {
    let fork = 0
    let answers = 0
    const { layer } = world({
      fork: () => fork,
      logs: ({ from, to }) => {
        if (to - from >= 600) return rejected("block range too large, max: 600")
        // The reorganisation falls between the two parts of the first reading.
        if (++answers === 1) fork = 1
        return [erc20(from, 0, fork)]
      }
    })
    return Effect.gen(function* () {
      const found = Either.getOrThrow(yield* read(query({ eventName: "Transfer" })))
      expect(answers).toBe(4)
      expect(found.map(({ args }) => Object(args).value)).toEqual(["1", "1"])
    }).pipe(Effect.provide(layer))
  })

  it.effect("holds at most 10,000 events", () => {
    const logs = Array.from({ length: EventReader.bounds.results + 1 }, (_, i) => erc20(1 + (i % 999), i))
    const { layer } = world({ logs: ({ from }) => (from === 0 ? logs : logs.slice(1)) })
    return Effect.gen(function* () {
      const request = query({ eventName: "Transfer" })
      expect(codeOf(yield* read(request))).toBe("too_many_events")
      const exact = Either.getOrThrow(yield* read({ ...request, fromBlock: "1" }))
      expect(exact).toHaveLength(EventReader.bounds.results)
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "of its limits ends the request when they are too narrow, and says how many blocks to ask for",
    () => {
      const { asked, layer } = world({
        head: () => 900_000n,
        logs: ({ from, to }) => (to - from >= 10 ? rejected("up to a 10 block range") : [])
      })
      return Effect.gen(function* () {
        const result = yield* read(query({ eventName: "Transfer" }))
        expect(codeOf(result)).toBe("node_limit")
        expect(Either.isLeft(result) && result.left.details[0]?.message).toContain("at most 5000 blocks")
        expect(asked).toHaveLength(1)
        expect(codeOf(yield* read(query({ eventName: "Transfer", toBlock: "4999" })))).toBe("none")
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("is not asked for more blocks than a request may span", () => {
    const { asked, layer } = world({ head: () => 10n ** 7n, logs: () => [] })
    return Effect.gen(function* () {
      const range = (fromBlock: string, toBlock: string) =>
        read(query({ eventName: "Transfer", fromBlock, toBlock }))
      expect(codeOf(yield* range("1", "1000000"))).toBe("none")
      expect(codeOf(yield* range("0", "1000000"))).toBe("block_range_too_wide")
      expect(codeOf(yield* range("earliest", "latest"))).toBe("block_range_too_wide")
      expect(codeOf(yield* range("9500000", "0xffffffffffffffff"))).toBe("none")
      expect(asked).toHaveLength(2)
    }).pipe(Effect.provide(layer))
  })
})
