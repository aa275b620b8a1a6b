import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import type { LaneNode } from "../../../../src/application/lanes/monitor/FollowedTransaction.js"
import * as ReceiptSearch from "../../../../src/application/lanes/monitor/ReceiptSearch.js"
import type { AccountId } from "../../../../src/application/ports/Tenants.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

const txHash = Make.word(0x100)
const receipt = Monitor.receiptOf(txHash)
const accessOf = (accountId: AccountId) => Make.access({ accountId })

/** A search, the reading nodes of two accounts, and the operator's node. */
const world = Effect.gen(function* () {
  const [alices, bobs, operators] = yield* Effect.all([
    Monitor.node("alice"),
    Monitor.node("bob"),
    Monitor.node("operator")
  ])
  const search = ReceiptSearch.make({
    ofOperator: () => Effect.succeed(operators.chain),
    ofCaller: () => Effect.succeed(null)
  })
  search.readBy(alices.chain, Make.chainId, accessOf(Make.alice))
  search.readBy(bobs.chain, Make.chainId, accessOf(Make.bob))
  /** A node of the account, or of the operator (null), showed it. */
  const shownBy = (account: AccountId | null) => search.seen({ account } as LaneNode, receipt)
  /** Whether this node finds it now; a reader waits longer. */
  const isFoundAt = ({ chain }: Monitor.Node) =>
    Effect.gen(function* () {
      const looking = yield* Effect.forkChild(search.find(chain, txHash))
      yield* Time.adjust(0)
      const found = looking.pollUnsafe()
      yield* Fiber.interrupt(looking)
      return found !== undefined
    })
  return { alices, bobs, isFoundAt, operators, search, shownBy }
})

describe("the receipt of a mined transaction", () => {
  test("is shown only to the account whose node showed it", function* () {
    const { alices, bobs, isFoundAt, operators, shownBy } = yield* world
    shownBy(Make.alice)
    expect(yield* isFoundAt(alices)).toBe(true)
    expect(alices.looks).toBe(0)
    expect(yield* isFoundAt(bobs)).toBe(false)
    // A reader at the operator's node does not get receipts from an account's node.
    expect(yield* isFoundAt(operators)).toBe(false)
  })

  test("is shown to every account if the operator's node showed it", function* () {
    const { alices, bobs, isFoundAt, operators, shownBy } = yield* world
    shownBy(null)
    for (const node of [alices, bobs, operators]) expect(yield* isFoundAt(node)).toBe(true)
  })

  test("is requested again after it left the chain", function* () {
    const { alices, isFoundAt, search, shownBy } = yield* world
    for (const account of [Make.alice, null]) {
      shownBy(account)
      search.undone(Make.alice, txHash)
      expect(yield* isFoundAt(alices)).toBe(false)
    }
  })

  test("comes from the caller's node, otherwise from the operator's", function* () {
    const { alices, isFoundAt, operators } = yield* world
    alices.shows.add(txHash)
    expect(yield* isFoundAt(alices)).toBe(true)
    expect(operators.looks).toBe(0)
    alices.shows.clear()
    operators.shows.add(txHash)
    expect(yield* isFoundAt(alices)).toBe(true)
    alices.is = "dead"
    expect(yield* isFoundAt(alices)).toBe(true)
  })

  test("is awaited for 20 seconds, since nodes behind a balancer lag", function* () {
    const { alices, search } = yield* world
    const late = yield* Effect.forkChild(search.find(alices.chain, txHash))
    yield* Time.adjust("19 seconds")
    alices.shows.add(txHash)
    yield* Time.adjust("1 second")
    expect(yield* Fiber.join(late)).toEqual(receipt)
    alices.shows.clear()
    const never = yield* Effect.forkChild(search.find(alices.chain, txHash))
    yield* Time.adjust("21 seconds")
    expect(Exit.isFailure(yield* Fiber.await(never))).toBe(true)
  })
})
