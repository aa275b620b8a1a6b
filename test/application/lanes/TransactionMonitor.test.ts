import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger } from "effect"
import * as Troubles from "../../../src/application/observe/Troubles.js"
import type * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"
import * as Log from "../../support/Log.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import { test, testOver } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const { callers, profile, receiptOf, recordOf, service } = Monitor

describe("the nodes that decide", () => {
  test("are the operator's current nodes for the service's EOA, never a caller's node", function* () {
    const [former, present, stranger] = yield* Effect.all(["a", "b", "c"].map(Monitor.node))
    if (former === undefined || present === undefined || stranger === undefined) return
    let operators = former
    const { inFlight, mined, monitor } = yield* Monitor.start({
      operatorNode: () => Effect.sync(() => operators.chain)
    })
    const record = recordOf(0, service)
    stranger.shows.add(Make.word(0x100))
    yield* monitor.watch({ chain: stranger.chain, profile, record })
    yield* monitor.useNode(Make.lane, callers, stranger.chain)
    yield* Time.adjust("1 minute")
    expect([former.given.length, stranger.given.length, stranger.looks]).toEqual([1, 0, 0])
    expect(mined).toEqual([])
    former.is = "dead"
    operators = present
    present.shows.add(Make.word(0x100))
    yield* Time.adjust("5 seconds")
    expect(mined).toEqual([[0n, present.chain]])
    expect(inFlight.count(Make.lane)).toBe(0)
  })

  test("are the account's and the operator's nodes for an account's transaction, not another account's", function* () {
    const [own, others, operators] = yield* Effect.all(["a", "b", "c"].map(Monitor.node))
    if (own === undefined || others === undefined || operators === undefined) return
    const { mined, monitor } = yield* Monitor.start({
      operatorNode: () => Effect.succeed(operators.chain)
    })
    yield* monitor.watch({ chain: own.chain, profile, record: recordOf(0, callers) })
    others.shows.add(Make.word(0x100))
    yield* monitor.useNode(Make.lane, { ...callers, accountId: Make.bob }, others.chain)
    own.is = "hanging"
    yield* Time.adjust("1 minute")
    expect(others.looks).toBe(0)
    expect(mined).toEqual([])
    operators.shows.add(Make.word(0x100))
    yield* Time.adjust("5 seconds")
    expect(mined).toEqual([[0n, operators.chain]])
  })

  test("delay neither other nodes' rounds nor the lane's next transaction when they hang", function* () {
    const [dead, good] = yield* Effect.all(["a", "b"].map(Monitor.node))
    if (dead === undefined || good === undefined) return
    const { inFlight, mined, monitor } = yield* Monitor.start({ operatorNode: () => Effect.succeed(null) })
    dead.is = "hanging"
    const watching = yield* Effect.forkChild(
      Effect.forEach([0, 1, 2], (nonce) =>
        monitor.watch({ chain: dead.chain, profile, record: recordOf(nonce, callers) })
      )
    )
    yield* Time.adjust("1 second")
    expect(Exit.isSuccess(yield* Fiber.await(watching))).toBe(true)
    expect(inFlight.count(Make.lane)).toBe(3)
    yield* monitor.useNode(Make.lane, callers, good.chain)
    for (const nonce of [0, 1, 2]) good.shows.add(Make.word(0x100 + nonce))
    yield* Time.adjust("5 seconds")
    expect(mined.map(([, chain]) => chain)).toEqual(Array(3).fill(good.chain))
    expect(inFlight.count(Make.lane)).toBe(0)
  })
})

describe("transactions that nodes accepted", () => {
  test("are reported once, in one write per round, unless a receipt shows them first", function* () {
    const node = yield* Monitor.node("a")
    const { mined, monitor, submitted } = yield* Monitor.start({ operatorNode: () => Effect.succeed(null) })
    node.shows.add(Make.word(0x102))
    for (const nonce of [0, 1, 2, 3])
      yield* monitor.watch({ chain: node.chain, profile, record: recordOf(nonce, callers) })
    yield* Time.adjust("10 seconds")
    expect(mined.map(([nonce]) => nonce)).toEqual([2n])
    expect(submitted.map((nonces) => [...nonces].sort())).toEqual([[0n, 1n, 3n]])
    // A new version of a reported transaction.
    const [version] = recordOf(0, callers).versions
    if (version === undefined) return
    const versions = [version, { ...version, txHash: Make.word(0x200) }]
    yield* monitor.watch({ chain: node.chain, profile, record: recordOf(0, callers, { versions }) })
    yield* Time.adjust("10 seconds")
    expect(submitted).toHaveLength(1)
  })

  test("are reported without a warning when a node refuses them but has them, as after a restart", function* () {
    const warned: Array<unknown> = []
    const listen = Logger.make(({ logLevel, message }) => {
      if (logLevel === "Warn") warned.push(message)
    })
    const node = yield* Monitor.node("a")
    const { monitor, submitted } = yield* Monitor.start({ operatorNode: () => Effect.succeed(null) })
    node.has.add(Monitor.rawOf(0))
    const watching = Effect.forEach([0, 1], (nonce) =>
      monitor.watch({ chain: node.chain, profile, record: recordOf(nonce, callers) })
    )
    yield* Effect.provide(watching, Logger.layer([listen]))
    yield* Time.adjust("3 seconds")
    expect(node.given).toEqual([0, 1].map(Monitor.rawOf))
    expect(submitted.flat().sort()).toEqual([0n, 1n])
    expect(monitor.underWay()).toBe(2)
    expect(warned).toEqual([])
  })

  test("are reported only once a node accepts them", function* () {
    const node = yield* Monitor.node("a")
    const { monitor, submitted } = yield* Monitor.start({ operatorNode: () => Effect.succeed(null) })
    node.is = "dead"
    yield* monitor.watch({ chain: node.chain, profile, record: recordOf(0, callers) })
    yield* Time.adjust("10 seconds")
    expect(submitted).toEqual([])
    node.is = "healthy"
    yield* Time.adjust("5 seconds")
    expect(submitted).toEqual([])
    const [version] = recordOf(0, callers).versions
    if (version === undefined) return
    const versions = [version, { ...version, txHash: Make.word(0x200) }]
    yield* monitor.watch({ chain: node.chain, profile, record: recordOf(0, callers, { versions }) })
    yield* Time.adjust("3 seconds")
    expect(submitted).toEqual([[0n]])
  })
})

describe("a receipt", () => {
  const hash = Make.word(0x100)

  test("shown by another node of the account reaches readers at its dead node, but no other account", function* () {
    const [dead, good, others] = yield* Effect.all(["a", "b", "c"].map(Monitor.node))
    if (dead === undefined || good === undefined || others === undefined) return
    const { mined, monitor } = yield* Monitor.start({ operatorNode: () => Effect.succeed(null) })
    yield* monitor.watch({ chain: dead.chain, profile, record: recordOf(0, callers) })
    yield* monitor.watch({ chain: dead.chain, profile, record: recordOf(1, callers) })
    yield* monitor.useNode(Make.lane, callers, good.chain)
    yield* monitor.useNode(Make.lane, { ...callers, accountId: Make.bob }, others.chain)
    dead.is = "dead"
    good.shows.add(hash)
    yield* Time.adjust("5 seconds")
    expect(mined).toHaveLength(1)
    expect(yield* monitor.receiptOf(dead.chain, hash)).toEqual(receiptOf(hash))
    const told = yield* Effect.forkChild(Effect.exit(monitor.receiptOf(others.chain, hash)))
    yield* Time.adjust("2 minutes")
    expect(Exit.isFailure(yield* Fiber.join(told))).toBe(true)
  })

  test("is no longer returned once its block has left the chain", function* () {
    const node = yield* Monitor.node("a")
    let fork: Hex.Bytes32 | null = null
    const chain = {
      ...node.chain,
      block: (tag: Parameters<typeof node.chain.block>[0]) =>
        Effect.map(node.chain.block(tag), (block) =>
          block === null || fork === null ? block : { ...block, hash: fork }
        )
    }
    const { inFlight, mined, monitor } = yield* Monitor.start({ operatorNode: () => Effect.succeed(null) })
    yield* monitor.watch({ chain, profile, record: recordOf(0, callers) })
    node.shows.add(hash)
    yield* Time.adjust("5 seconds")
    expect(mined).toHaveLength(1)
    node.shows.delete(hash)
    fork = Make.word(0xf04c)
    yield* Time.adjust("1 minute")
    expect(inFlight.count(Make.lane)).toBe(1)
    const told = yield* Effect.forkChild(Effect.exit(monitor.receiptOf(chain, hash)))
    yield* Time.adjust("2 minutes")
    expect(Exit.isFailure(yield* Fiber.join(told))).toBe(true)
  })
})

test("a transaction forgotten during a poll is not settled by the nodes' replies", function* () {
  const node = yield* Monitor.node("a")
  const record = recordOf(0, callers)
  const { mined, monitor } = yield* Monitor.start({ operatorNode: () => Effect.succeed(null) })
  const chain = {
    ...node.chain,
    receipt: (txHash: Hex.Bytes32) => Effect.as(monitor.forget({ record }), receiptOf(txHash))
  }
  yield* monitor.watch({ chain, profile, record })
  yield* Time.adjust("10 seconds")
  expect(mined).toEqual([])
})

describe("nodes that are away", () => {
  const watchAll = (monitor: Effect.Success<ReturnType<typeof Monitor.start>>["monitor"]) =>
    Effect.forEach(Array(4).keys(), (nonce) =>
      monitor.watch({ chain: null, profile, record: recordOf(nonce, service) })
    )

  test("are reported once per doubled pause in an hour, and once when they return", function* () {
    const lines = yield* Log.listen
    const node = yield* Monitor.node("a")
    let operators: typeof node.chain | null = null
    const { monitor } = yield* Monitor.start({ operatorNode: () => Effect.sync(() => operators) })
    yield* watchAll(monitor)
    yield* Time.adjust("1 hour")
    operators = node.chain
    yield* Time.adjust("10 seconds")
    expect(Log.told(lines, "no node for pending transactions")).toEqual(Log.ofAnHour("WARN"))
  })

  testOver(Layer.sync(Troubles.Shared, Troubles.make))(
    "are reported once for all transactions offered to them",
    function* () {
      const lines = yield* Log.listen
      const node = yield* Monitor.node("a")
      const { monitor } = yield* Monitor.start({ operatorNode: () => Effect.succeed(node.chain) })
      node.is = "dead"
      yield* watchAll(monitor)
      node.is = "healthy"
      yield* monitor.watch({ chain: null, profile, record: recordOf(4, service) })
      yield* Time.adjust("1 second")
      expect(Log.told(lines, "the node did not take a transaction")).toEqual(["WARN", "INFO"])
    }
  )
})
