import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import * as FollowedTransaction from "../../../../src/application/lanes/monitor/FollowedTransaction.js"
import { LaneNodes } from "../../../../src/application/lanes/monitor/LaneNodes.js"
import * as NodePolls from "../../../../src/application/lanes/monitor/NodePolls.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

const { callers, profile, receiptOf, recordOf } = Monitor

const entryOf = (nonce: number, home: FollowedTransaction.LaneNode | null = null) =>
  FollowedTransaction.make({ profile, record: recordOf(nonce, callers) }, home, {
    now: 0,
    taken: true,
    waited: 0
  })

const minedOf = (nonce: number, checkedBlock: bigint, node: FollowedTransaction.LaneNode) => ({
  ...FollowedTransaction.mine(entryOf(nonce, node), node, receiptOf(Make.word(0x100 + nonce))),
  checkedBlock
})

/** A lane with the operator's node and a node of the account. */
const lane = Effect.gen(function* () {
  const nodes = new LaneNodes()
  const [operators, own] = [yield* Monitor.node("a"), yield* Monitor.node("b")]
  const home = nodes.ofOperator(operators.chain)
  const other = nodes.ofCaller(own.chain, callers.accountId)
  return { nodes, operators, own, home, other, scope: yield* Effect.scope }
})

describe("a round", () => {
  test("requests receipts of 256 signed transactions in turn and of 16 mined ones, longest unchecked first", function* () {
    const { home } = yield* lane
    const signed = Array.from({ length: 300 }, (_, nonce) => entryOf(nonce, home))
    const mined = Array.from({ length: 20 }, (_, n) => minedOf(1_000 + n, BigInt(100 - n), home))
    const turn = NodePolls.turnOf([...mined, ...signed])
    expect(turn.slice(0, 256)).toEqual(signed.slice(0, 256))
    expect(turn.slice(256).map((entry) => entry.checkedBlock)).toEqual(
      Array.from({ length: 16 }, (_, n) => BigInt(81 + n))
    )
    expect(NodePolls.turnOf([...mined, ...signed.slice(0, 100)])).toHaveLength(120)
  })

  test("waits two seconds for a node, which is then silent and not polled again while it is busy", function* () {
    const { home, nodes, operators, scope } = yield* lane
    operators.is = "hanging"
    const ask = Effect.forkChild(NodePolls.ask(nodes, [entryOf(0, home)], { now: 0, scope }))
    const first = yield* ask
    yield* Time.adjust(1_999)
    expect(first.pollUnsafe()).toBeUndefined()
    yield* Time.adjust(1)
    yield* Fiber.join(first)
    expect([home.isSilent, operators.looks]).toEqual([true, 1])
    yield* Fiber.join(yield* ask)
    expect(operators.looks).toBe(1)
  })

  test("does not wait for a previously silent node if it polls others", function* () {
    const { home, nodes, operators, own, scope } = yield* lane
    operators.is = "hanging"
    home.isSilent = true
    const told = yield* NodePolls.ask(nodes, [entryOf(0, home)], { now: 0, scope })
    expect([operators.looks, own.looks]).toEqual([1, 1])
    expect(told.map(({ answers }) => answers.size)).toEqual([0, 1])
  })
})

describe("offered bytes", () => {
  const [version] = recordOf(0, callers).versions

  test("are awaited for a second, after which the node is silent and may have them", function* () {
    const { home, operators, scope } = yield* lane
    if (version === undefined) return
    operators.is = "hanging"
    const offered = yield* Effect.forkChild(NodePolls.broadcast(home, version, scope))
    yield* Time.adjust(999)
    expect([offered.pollUnsafe(), home.isSilent]).toEqual([undefined, false])
    yield* Time.adjust(1)
    expect([yield* Fiber.join(offered), home.isSilent]).toEqual([false, true])
  })

  test("are no longer awaited when the engine stops, before or during the offer", function* () {
    const { home, operators } = yield* lane
    if (version === undefined) return
    operators.is = "hanging"
    const scope = yield* Scope.make()
    const offered = yield* Effect.forkChild(NodePolls.broadcast(home, version, scope))
    yield* Time.settle
    yield* Scope.close(scope, Exit.void)
    const late = yield* Effect.forkChild(NodePolls.broadcast(home, version, scope))
    yield* Time.settle
    expect([offered.pollUnsafe(), late.pollUnsafe()]).toEqual([Exit.succeed(false), Exit.succeed(false)])
    expect(home.isSilent).toBe(false)
  })
})
