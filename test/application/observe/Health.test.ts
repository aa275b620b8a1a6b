import { expect } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted, References } from "effect"
import * as Health from "../../../src/application/observe/Health.js"
import { type ChainClient, ChainRpc, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const address = (digit: string) => Address.unsafe(`0x${digit.repeat(40)}`)
const [submitter, other] = [address("1"), address("2")]
const network = (chainId: bigint) => ({
  profile: NetworkProfile.make({ chainId, rpc: Redacted.make("http://node.example") }),
  least: 10n
})

const head = { number: 7n, hash: Make.word(7), timestamp: 0, baseFeePerGas: 3n, gasLimit: 30_000_000n }

const node = (client: () => Partial<ChainClient>) =>
  Layer.succeed(ChainRpc, {
    connect: () => Effect.sync(() => ({ block: () => Effect.succeed(head), ...client() }) as ChainClient)
  })

test("an EOA that runs low is logged once, where it submits, and again after it has recovered", function* () {
  let balance = 3n
  const told: Array<unknown> = []
  const nodes = node(() => ({ balance: () => Effect.sync(() => balance) }))
  const logger = Logger.layer([
    Logger.make(({ fiber }) => {
      told.push(
        ["chainId", "address"].map((name) => fiber.getRef(References.CurrentLogAnnotations)[name] ?? null)
      )
    })
  ])
  const health = Health.make([network(1n), network(2n)])
  yield* health.register(other)
  yield* health.submits(2n, submitter)
  const poll = Effect.andThen(
    Time.adjust("10 seconds"),
    health.poll.pipe(Effect.provide(nodes), Effect.provide(logger))
  )
  yield* poll
  yield* poll
  expect(told).toEqual([["2", submitter]])
  balance = 10n
  yield* poll
  balance = 9n
  yield* poll
  expect(told).toEqual([
    ["2", submitter],
    ["2", submitter]
  ])
  expect(health.chains().map(({ eoas }) => [...eoas].map(([eoa, { wei }]) => [eoa, wei]))).toEqual([
    [],
    [[submitter, 9n]]
  ])
})

test("a poll keeps the head, and counts failures until the node replies again", function* () {
  let why: string | null = null
  const nodes = node(() => ({
    block: () =>
      Effect.suspend(() =>
        why === null
          ? Effect.succeed(head)
          : Effect.fail(new ChainRpcError({ reason: "unavailable", message: why, origin: "the node" }))
      )
  }))
  const health = Health.make([network(1n)])
  const polled = Effect.map(Effect.provide(health.poll, nodes), () => {
    const [chain] = health.chains()
    return [chain?.head?.number ?? null, chain?.failing?.polls ?? 0, chain?.failing?.message ?? null]
  })
  expect(yield* polled).toEqual([7n, 0, null])
  why = "the node is away"
  expect(yield* polled).toEqual([7n, 1, why])
  expect(yield* polled).toEqual([7n, 2, why])
  why = null
  expect(yield* polled).toEqual([7n, 0, null])
})

test("a poll reads at most 16 balances, those read longest ago, and none again within 10 seconds", function* () {
  const asked: Array<string> = []
  const nodes = node(() => ({
    balance: (address) =>
      Effect.sync(() => {
        asked.push(address)
        return 100n
      })
  }))
  const health = Health.make([network(1n)])
  const all = Array.from({ length: 20 }, (_, n) => Make.address(n + 1))
  for (const each of all) yield* health.submits(1n, each)
  const poll = Effect.provide(health.poll, nodes)
  yield* Time.adjust("1 minute")
  yield* poll
  expect(asked.splice(0)).toEqual(all.slice(0, 16))
  yield* Time.adjust("4 seconds")
  yield* poll
  expect(asked.splice(0)).toEqual(all.slice(16))
  yield* Time.adjust("4 seconds")
  yield* poll
  expect(asked.splice(0)).toEqual([])
  yield* Time.adjust("4 seconds")
  yield* poll
  expect(asked.splice(0)).toEqual(all.slice(0, 16))
})

test("a node without balances is up by its head, and the last balance stays", function* () {
  let isSilent = false
  const nodes = node(() => ({
    balance: () =>
      Effect.suspend(() =>
        isSilent
          ? Effect.fail(new ChainRpcError({ reason: "unavailable", message: "no", origin: "the node" }))
          : Effect.succeed(5n)
      )
  }))
  const health = Health.make([network(1n)])
  yield* health.submits(1n, submitter)
  const poll = Effect.andThen(Time.adjust("10 seconds"), Effect.provide(health.poll, nodes))
  yield* poll
  isSilent = true
  yield* poll
  const [chain] = health.chains()
  expect([chain?.failing, chain?.eoas.get(submitter)?.wei]).toEqual([null, 5n])
})
