import { describe, expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as Sponsorships from "../../../src/application/pay/Sponsorships.js"
import type { Budgets } from "../../../src/application/ports/Budgets.js"
import type { BlockTag } from "../../../src/application/ports/chain/ChainRpc.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import * as InMemory from "../../support/journal/InMemory.js"
import { alice, bob } from "../../support/journal/Make.js"
import { law } from "../../support/Law.js"
import * as Landings from "../../support/lanes/Landings.js"

const chainId = 31_337n
const { entryPoint } = Landings
const profile = NetworkProfile.make({ chainId, settledDepth: 3 })
const second = 1_000
const look = 5 * second

const setting = Effect.gen(function* () {
  const stored = yield* InMemory.makeBudgets
  const noted: Array<bigint | null> = []
  const budgets: Budgets["Type"] = {
    ...stored,
    land: (of, id, wei) =>
      Effect.zipRight(
        Effect.sync(() => noted.push(wei)),
        stored.land(of, id, wei)
      )
  }
  const chain = Landings.makeChain()
  const scope = yield* Effect.scope
  const make = () => Sponsorships.make(budgets, scope)
  const reserve = (
    op: string,
    rest: { readonly account?: typeof alice; readonly validUntil?: number } = {}
  ) =>
    Effect.gen(function* () {
      const id = Keccak.hashText(op)
      yield* budgets.reserve([
        {
          accountId: rest.account ?? alice,
          chainId,
          name: Sponsorships.budget,
          id,
          wei: 100n,
          limit: null,
          maxOpen: null,
          daily: true,
          expiresAt: 600 * second,
          note: Sponsorships.note({ entryPoint, since: 0n, validUntil: rest.validUntil ?? 600 })
        }
      ])
      return id
    })
  const hold = (...of: Parameters<typeof reserve>) =>
    Effect.tap(reserve(...of), (id) => budgets.bind(chainId, id))
  const figures = (account = alice) =>
    budgets.figures({ accountId: account, chainId, name: Sponsorships.budget }, 0)
  const watched = (accountId = alice) => ({ accountId, chain: chain.client, profile })
  return { budgets, chain, make, hold, noted, reserve, figures, watched }
})

describe("sponsored ops", () => {
  law(
    "cost what the chain says from the block on that they land in, and that is booked at settled depth",
    function* () {
      const { chain, figures, hold, make, noted, watched } = yield* setting
      const op = yield* hold("op")
      yield* make().watch(watched())
      chain.mine(5)
      yield* TestClock.adjust(look)
      expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
      chain.land(op, 30n)
      yield* TestClock.adjust(look)
      expect(yield* figures()).toEqual({ held: 30n, booked: 0n })
      chain.mine(1)
      yield* TestClock.adjust(look)
      expect(yield* figures()).toEqual({ held: 30n, booked: 0n })
      // What has not changed is not written again.
      expect(noted).toEqual([30n])
      chain.mine(1)
      yield* TestClock.adjust(look)
      expect(yield* figures()).toEqual({ held: 0n, booked: 30n })
    }
  )

  law("may cost all again when the chain undoes it, and cost what it costs the second time", function* () {
    const { chain, figures, hold, make, watched } = yield* setting
    const op = yield* hold("op")
    yield* make().watch(watched())
    chain.mine(5)
    chain.land(op, 30n)
    yield* TestClock.adjust(look)
    chain.undo()
    yield* TestClock.adjust(look)
    expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
    chain.mine(1)
    chain.land(op, 45n)
    chain.mine(2)
    yield* TestClock.adjust(look)
    expect(yield* figures()).toEqual({ held: 0n, booked: 45n })
  })

  law("cost nothing once their time is over at settled depth, and not a block earlier", function* () {
    const { chain, figures, hold, make, watched } = yield* setting
    yield* hold("op", { validUntil: 600 })
    yield* make().watch(watched())
    // The settled block is two below the latest: 600 seconds are block 60.
    chain.mine(62)
    yield* TestClock.adjust(look)
    expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
    chain.mine(1)
    yield* TestClock.adjust(look)
    expect(yield* figures()).toEqual({ held: 0n, booked: 0n })
  })

  law(
    "stay held while the node that gives the logs lags behind: what landed there is not missing",
    function* () {
      const { chain, figures, hold, make, watched } = yield* setting
      const op = yield* hold("op", { validUntil: 600 })
      yield* make().watch(watched())
      chain.mine(60)
      chain.land(op, 30n)
      chain.mine(10)
      chain.fallBehindWithLogs(11)
      yield* TestClock.adjust(look)
      expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
      chain.fallBehindWithLogs(0)
      yield* TestClock.adjust(look)
      expect(yield* figures()).toEqual({ held: 0n, booked: 30n })
    }
  )

  law("that have landed are booked at settled depth, though their time was over", function* () {
    const { chain, figures, hold, make, watched } = yield* setting
    const op = yield* hold("op", { validUntil: 600 })
    yield* make().watch(watched())
    chain.mine(62)
    chain.land(op, 30n)
    chain.mine(1)
    yield* TestClock.adjust(look)
    expect(yield* figures()).toEqual({ held: 30n, booked: 0n })
    chain.mine(1)
    yield* TestClock.adjust(look)
    expect(yield* figures()).toEqual({ held: 0n, booked: 30n })
  })

  law("that the sponsor has not signed yet are not ended by the clock of the chain", function* () {
    const { budgets, chain, hold, make, reserve, watched } = yield* setting
    yield* hold("sealed", { validUntil: 10_000 })
    const id = yield* reserve("reserved", { validUntil: 600 })
    yield* reserve("reserved by another account", { account: bob })
    expect(yield* Sponsorships.accountsOf(budgets, chainId)).toEqual([alice])
    yield* make().watch(watched())
    chain.mine(100)
    yield* TestClock.adjust(look)
    expect(yield* budgets.bind(chainId, id)).toBe(true)
  })

  law(
    "that are sealed while the chain is asked about others are followed when these have ended",
    function* () {
      const { chain, figures, hold, make, watched } = yield* setting
      const [asked, answer] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow = {
        ...chain.client,
        block: (tag: BlockTag) =>
          Deferred.succeed(asked, undefined).pipe(
            Effect.zipRight(Deferred.await(answer)),
            Effect.zipRight(chain.client.block(tag))
          )
      }
      const sponsorships = make()
      const first = yield* hold("first")
      chain.land(first, 30n)
      chain.mine(5)
      yield* sponsorships.watch({ ...watched(), chain: slow })
      yield* Deferred.await(asked)
      const second = yield* hold("second")
      yield* sponsorships.watch(watched())
      chain.land(second, 4n)
      chain.mine(5)
      yield* Deferred.succeed(answer, undefined)
      yield* TestClock.adjust(2 * look)
      expect(yield* figures()).toEqual({ held: 0n, booked: 34n })
    }
  )

  law("stay held while the node has no block, and are followed again when it has one", function* () {
    const { chain, figures, hold, make, watched } = yield* setting
    const op = yield* hold("op")
    let isEmpty = true
    const client = {
      ...chain.client,
      block: (tag: BlockTag) => (isEmpty ? Effect.succeed(null) : chain.client.block(tag))
    }
    yield* make().watch({ ...watched(), chain: client })
    chain.land(op, 30n)
    chain.mine(5)
    yield* TestClock.adjust(look)
    expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
    isEmpty = false
    yield* TestClock.adjust(look)
    expect(yield* figures()).toEqual({ held: 0n, booked: 30n })
  })

  law("stay held while the node is silent, and are followed again when it answers", function* () {
    const { chain, figures, hold, make, watched } = yield* setting
    const op = yield* hold("op")
    chain.fallSilent(true)
    yield* make().watch(watched())
    chain.mine(5)
    chain.land(op, 30n)
    chain.mine(100)
    yield* TestClock.adjust(10 * look)
    expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
    chain.fallSilent(false)
    yield* TestClock.adjust(look)
    expect(yield* figures()).toEqual({ held: 0n, booked: 30n })
  })

  law(
    "are followed account by account, those that are sealed later too, by two processes as by one",
    function* () {
      const { budgets, chain, figures, hold, make, watched } = yield* setting
      const [one, other] = [make(), make()]
      const first = yield* hold("first")
      const foreign = yield* hold("foreign", { account: bob })
      expect(yield* Sponsorships.accountsOf(budgets, chainId)).toEqual([alice, bob])
      yield* one.watch(watched())
      yield* other.watch(watched())
      chain.mine(5)
      chain.land(first, 30n)
      chain.land(foreign, 7n)
      chain.mine(5)
      yield* TestClock.adjust(look)
      expect(yield* figures()).toEqual({ held: 0n, booked: 30n })
      expect(yield* figures(bob)).toEqual({ held: 100n, booked: 0n })
      expect(yield* Sponsorships.accountsOf(budgets, chainId)).toEqual([bob])
      const later = yield* hold("later")
      yield* one.watch(watched())
      yield* one.watch(watched(bob))
      chain.land(later, 4n)
      chain.mine(5)
      yield* TestClock.adjust(look)
      expect(yield* figures()).toEqual({ held: 0n, booked: 34n })
      expect(yield* figures(bob)).toEqual({ held: 0n, booked: 7n })
    }
  )
})
