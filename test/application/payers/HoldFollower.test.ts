import { describe, expect } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import * as HoldFollower from "../../../src/application/payers/HoldFollower.js"
import type { Budgets, Reservation } from "../../../src/application/ports/Budgets.js"
import { type BlockTag, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import * as InMemory from "../../support/journal/InMemory.js"
import { alice, bob } from "../../support/journal/Make.js"
import * as Landings from "../../support/lanes/Landings.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const chainId = 31_337n
const { entryPoint } = Landings
const profile = NetworkProfile.make({ chainId, settledDepth: 3 })
const second = 1_000
const look = 5 * second

const reservation = (name: string, id: string, wei: bigint, accountId = alice): Reservation => ({
  accountId,
  chainId,
  name,
  id,
  wei,
  limit: null,
  maxOpen: null,
  window: "day",
  expiresAt: 600 * second
})

const setting = Effect.gen(function* () {
  const stored = yield* InMemory.makeBudgets
  const noted: Array<bigint | null> = []
  const budgets: Budgets["Service"] = {
    ...stored,
    record: (of, outcomes) =>
      Effect.andThen(
        Effect.sync(() => {
          for (const outcome of outcomes.values()) if (!outcome.isEnd) noted.push(outcome.cost)
        }),
        stored.record(of, outcomes)
      )
  }
  const chain = Landings.makeChain()
  const scope = yield* Effect.scope
  const make = () => HoldFollower.make(budgets, scope)
  const reserve = (
    op: string,
    rest: { readonly account?: typeof alice; readonly validUntil?: number } = {}
  ) =>
    Effect.gen(function* () {
      const id = Keccak.hashText(op)
      yield* budgets.reserve([[reservation(HoldFollower.budget, id, 100n, rest.account)]])
      return id
    })
  const noteOf = ({ validUntil = 600, ...rest }: { validUntil?: number; userOpHash?: Hex.Bytes32 } = {}) =>
    HoldFollower.note({ ...rest, entryPoint, since: 0n, validUntil })
  const bind = (id: string, note: string) => budgets.bind({ chainId, id, wei: 100n }, note)
  const hold = (...of: Parameters<typeof reserve>) =>
    Effect.tap(reserve(...of), (userOpHash) => bind(userOpHash, noteOf({ ...of[1], userOpHash })))
  const figures = (account = alice) =>
    budgets.figures({ accountId: account, chainId, name: HoldFollower.budget }, 0, "day")
  /** Held and booked amounts after the next poll. */
  const looked = (held: bigint, booked: bigint, account = alice) =>
    Effect.map(Effect.andThen(Time.adjust(look), figures(account)), (told) =>
      expect(told).toEqual({ held, booked })
    )
  const watched = (accountId = alice) => ({ accountId, chain: chain.client, profile })
  return { bind, budgets, chain, make, hold, noted, noteOf, reserve, looked, watched }
})

describe("sponsored ops", () => {
  test("cost the chain's figure from their landing block on, booked at settled depth", function* () {
    const { chain, hold, looked, make, noted, watched } = yield* setting
    const op = yield* hold("op")
    yield* make().watch(watched())
    chain.mine(5)
    yield* looked(100n, 0n)
    chain.land(op, 30n)
    yield* looked(30n, 0n)
    chain.mine(1)
    yield* looked(30n, 0n)
    // Unchanged figures are not written again.
    expect(noted).toEqual([30n])
    chain.mine(1)
    yield* looked(0n, 30n)
  })

  test("may cost all again when the chain undoes them, and cost their second figure", function* () {
    const { chain, hold, looked, make, watched } = yield* setting
    const op = yield* hold("op")
    yield* make().watch(watched())
    chain.mine(5)
    chain.land(op, 30n)
    yield* looked(30n, 0n)
    chain.undo()
    yield* looked(100n, 0n)
    chain.mine(1)
    chain.land(op, 45n)
    chain.mine(2)
    yield* looked(0n, 45n)
  })

  test("cost nothing once their time is over at settled depth, not a block earlier, unless they have landed", function* () {
    for (const lands of [false, true]) {
      const { chain, hold, looked, make, watched } = yield* setting
      const op = yield* hold("op", { validUntil: 600 })
      yield* make().watch(watched())
      // The settled block is two below the latest: 600 seconds are block 60.
      chain.mine(62)
      yield* looked(100n, 0n)
      if (lands) chain.land(op, 30n)
      chain.mine(1)
      yield* looked(lands ? 30n : 0n, 0n)
      chain.mine(1)
      yield* looked(0n, lands ? 30n : 0n)
    }
  })

  test("cost the landed version's figure, once, and are held until the last version is over", function* () {
    for (const landing of ["first", "second", null]) {
      const { bind, chain, hold, looked, make, noteOf, watched } = yield* setting
      const first = yield* hold("first")
      const second = Keccak.hashText("second")
      yield* bind(first, noteOf({ userOpHash: second, validUntil: 900 }))
      yield* make().watch(watched())
      chain.mine(80)
      yield* looked(100n, 0n)
      if (landing !== null) chain.land(Keccak.hashText(landing), 30n)
      chain.mine(20)
      yield* looked(0n, landing === null ? 0n : 30n)
    }
  })

  test("are found under every version when a budget shares their hold later", function* () {
    const { bind, budgets, chain, make, watched } = yield* setting
    const id = "request/0/7/token"
    const wallet = entryPoint
    const pots = ["policy account one", "policy account two"].map((name) => reservation(name, id, 100n))
    const versions = ["first", "second"].map((text) => Keccak.hashText(text))
    for (const [place, userOpHash] of versions.entries()) {
      yield* budgets.reserve([pots.slice(0, place + 1)])
      const note = { userOpHash, entryPoint, since: 0n, validUntil: 600, wallet, nonce: 7n }
      yield* bind(id, HoldFollower.note(note))
    }
    yield* make().watch(watched())
    chain.mine(5)
    chain.land(versions[0] ?? Keccak.hashText(""), 7n, undefined, {
      sender: wallet,
      nonce: 7n,
      success: true
    })
    chain.mine(2)
    yield* Time.adjust(look)
    for (const pot of pots) expect(yield* budgets.figures(pot, 0, "day")).toEqual({ held: 0n, booked: 100n })
  })

  const [wallet, userOpHash] = [entryPoint, Keccak.hashText("op")]
  const note = { userOpHash, entryPoint, since: 2n, validUntil: 600, wallet, nonce: 7n }
  const notes = {
    "of this version": HoldFollower.note(note),
    "of the version before": JSON.stringify({ ...note, since: "2", nonce: "7" })
  }
  for (const [version, text] of Object.entries(notes))
    test(`free amounts of limits ${version} at settled depth only, where a reverted op moved nothing`, function* () {
      for (const success of [true, false]) {
        const { budgets, chain, make, noted, watched } = yield* setting
        const isOurs = version === "of this version"
        const limits = (["token", "ops", "fees"] as const).map((name, place) => ({
          ...reservation(
            `policy account ${name}`,
            `request/0/7/${isOurs ? "spending" : name === "fees" ? "fees" : "amounts"}`,
            [100n, 1n, 50n][place] ?? 0n
          ),
          ...(isOurs && { books: name === "fees" ? ("cost" as const) : ("held" as const) })
        }))
        yield* budgets.reserve([limits])
        for (const id of new Set(limits.map(({ id }) => id)))
          yield* budgets.bind({ chainId, id, wei: 0n, due: 2n }, text)
        const looked = Effect.andThen(
          Time.adjust(look),
          Effect.forEach(limits, (limit) => budgets.figures(limit, 0, "day"))
        )
        yield* make().watch(watched())
        chain.mine(2)
        chain.land(userOpHash, 7n, undefined, { sender: wallet, nonce: 7n, success })
        for (const blocks of [0, 1]) {
          chain.mine(blocks)
          expect((yield* looked).map(({ held }) => held)).toEqual([100n, 1n, 50n])
        }
        chain.mine(1)
        expect(yield* looked).toEqual(
          [success ? 100n : 0n, success ? 1n : 0n, 7n].map((booked) => ({ held: 0n, booked }))
        )
        expect(noted).toEqual([])
      }
    })

  test("are settled where more have landed than one search returns", function* () {
    const { chain, hold, looked, make, watched } = yield* setting
    const ops = Array.from({ length: 1_100 }, (_, at) => `op ${at}`)
    for (const op of ops) chain.land(yield* hold(op), 30n, 1n)
    chain.mine(5)
    yield* make().watch(watched())
    yield* looked(0n, 33_000n)
  })

  test("end by time where their wallet has made more ops than one search returns", function* () {
    const { bind, chain, looked, make, reserve, watched } = yield* setting
    const [sender, userOpHash] = [`0x${"ab".repeat(20)}`, yield* reserve("op")]
    const wallet = Address.unsafe(sender)
    yield* bind(
      userOpHash,
      HoldFollower.note({ userOpHash, entryPoint, since: 0n, validUntil: 600, wallet, nonce: 7n })
    )
    for (let at = 0; at < 1_100; at += 1)
      chain.land(Keccak.hashText(`other ${at}`), 30n, 1n, { sender, nonce: BigInt(at + 8) })
    chain.mine(62)
    yield* make().watch(watched())
    yield* looked(100n, 0n)
    chain.mine(1)
    yield* looked(0n, 0n)
  })

  test("are settled next to an op that may have landed in more blocks than the node searches", function* () {
    const { bind, chain, hold, make, budgets, reserve, watched } = yield* setting
    const least = (range: { readonly fromBlock: bigint; readonly toBlock: bigint }) =>
      range.toBlock - range.fromBlock < 10n
        ? chain.client.logs(range as never)
        : Effect.fail(
            new ChainRpcError({
              reason: "rejected",
              origin: "http://node",
              message: "query exceeds max block range 10"
            })
          )
    const node = { ...chain.client, logs: least } as typeof chain.client
    const [old, young] = [yield* hold("old", { validUntil: 0 }), yield* reserve("young")]
    chain.mine(3_000)
    yield* bind(
      young,
      HoldFollower.note({ userOpHash: young, entryPoint, since: 3_000n, validUntil: 99_000 })
    )
    chain.land(young, 30n)
    chain.mine(5)
    yield* make().watch({ ...watched(), chain: node })
    yield* Time.adjust(look)
    expect((yield* budgets.open(chainId)).map(({ id }) => id)).toEqual([old])
  })

  test("without an end count as spent a day after their signature", function* () {
    const { budgets, chain, make, watched } = yield* setting
    const amounts = reservation("policy account token", "request/0/7/amounts", 100n)
    yield* budgets.reserve([[amounts]])
    const note = { userOpHash: Keccak.hashText("op"), entryPoint, since: 0n, validUntil: 0 }
    yield* budgets.bind({ chainId, id: amounts.id, wei: 0n }, HoldFollower.note(note))
    chain.mine(20_000)
    for (const [seconds, held, booked] of [
      [86_000, 100n, 0n],
      [1_001, 0n, 100n]
    ] as const) {
      yield* Time.adjust(seconds * second)
      yield* make().settle(watched())
      expect(yield* budgets.figures(amounts, 0, "day")).toEqual({ held, booked })
    }
  })

  test("are settled next to a transaction of the signer that the node does not show", function* () {
    const { budgets, chain, make, watched } = yield* setting
    const payload = { to: entryPoint, value: 1n, data: Hex.empty }
    const holds = [0n, 1n].map((nonce) => reservation("policy account native", `r/${nonce}/amounts`, 100n))
    yield* budgets.reserve([holds])
    for (const [nonce, { id }] of holds.entries()) {
      const note = HoldFollower.directNote(entryPoint, BigInt(nonce), payload)
      yield* budgets.bind({ chainId, id, wei: 0n }, note)
    }
    chain.mine(9)
    const shown = { ...payload, from: entryPoint, nonce: 1n, txHash: Landings.txHashOf("1") }
    const node = {
      ...chain.client,
      transactionCount: (_: unknown, at: BlockTag) =>
        Effect.succeed(typeof at === "string" || at >= 3n ? 2n : at >= 1n ? 1n : 0n),
      transactionsIn: (at: bigint) => Effect.succeed(at === 3n ? [shown] : []),
      receipt: () => Effect.succeed({ success: true, gasUsed: 1n, effectiveGasPrice: 1n })
    } as unknown as typeof chain.client
    for (const [seconds, held, booked] of [
      [86_000, 100n, 100n],
      [1_001, 0n, 200n]
    ] as const) {
      yield* Time.adjust(seconds * second)
      yield* make().settle({ ...watched(), chain: node })
      const [pot] = holds
      if (pot !== undefined) expect(yield* budgets.figures(pot, 0, "day")).toEqual({ held, booked })
    }
  })

  test("are identified by the names of their holds when an earlier version sealed them", function* () {
    const { bind, chain, looked, make, noteOf, reserve, watched } = yield* setting
    const op = yield* reserve("op")
    yield* bind(op, noteOf())
    yield* make().watch(watched())
    chain.mine(5)
    chain.land(op, 30n)
    chain.mine(5)
    yield* looked(0n, 30n)
  })

  test("stay held while the node lags with its logs, has no block, or is silent: a landed op is not missing", function* () {
    for (const trouble of ["logs", "empty", "silent"]) {
      const { chain, hold, looked, make, watched } = yield* setting
      const op = yield* hold("op", { validUntil: 600 })
      let isEmpty = trouble === "empty"
      const block = (tag: BlockTag) => (isEmpty ? Effect.succeed(null) : chain.client.block(tag))
      chain.fallSilent(trouble === "silent")
      yield* make().watch({ ...watched(), chain: { ...chain.client, block } })
      chain.mine(60)
      chain.land(op, 30n)
      chain.mine(10)
      if (trouble === "logs") chain.fallBehindWithLogs(11)
      yield* looked(100n, 0n)
      chain.fallBehindWithLogs(0)
      chain.fallSilent(false)
      isEmpty = false
      yield* looked(0n, 30n)
    }
  })

  test("not yet signed by the sponsor do not end by the chain's clock", function* () {
    const { bind, budgets, chain, hold, make, noteOf, reserve, watched } = yield* setting
    yield* hold("sealed", { validUntil: 10_000 })
    const id = yield* reserve("reserved", { validUntil: 600 })
    yield* reserve("reserved by another account", { account: bob })
    expect(yield* HoldFollower.accountsOf(budgets, chainId)).toEqual([alice])
    yield* make().watch(watched())
    chain.mine(100)
    yield* Time.adjust(look)
    expect(yield* bind(id, noteOf({ userOpHash: id }))).toBe(true)
  })

  test("sealed while the chain is queried about others are followed after these end", function* () {
    const { chain, hold, looked, make, watched } = yield* setting
    const [asked, answer] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const asking = Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answer))
    const block = (tag: BlockTag) => Effect.andThen(asking, chain.client.block(tag))
    const follower = make()
    chain.land(yield* hold("first"), 30n)
    chain.mine(5)
    yield* follower.watch({ ...watched(), chain: { ...chain.client, block } })
    yield* Deferred.await(asked)
    const second = yield* hold("second")
    yield* follower.watch(watched())
    chain.land(second, 4n)
    chain.mine(5)
    yield* Deferred.succeed(answer, undefined)
    yield* Time.adjust(look)
    yield* looked(0n, 34n)
  })

  test("are followed account by account, including later ones, by two processes as by one", function* () {
    const { budgets, chain, hold, looked, make, watched } = yield* setting
    const [one, other] = [make(), make()]
    const first = yield* hold("first")
    const foreign = yield* hold("foreign", { account: bob })
    expect(yield* HoldFollower.accountsOf(budgets, chainId)).toEqual([alice, bob])
    yield* one.watch(watched())
    yield* other.watch(watched())
    chain.mine(5)
    chain.land(first, 30n)
    chain.land(foreign, 7n)
    chain.mine(5)
    yield* looked(0n, 30n)
    yield* looked(100n, 0n, bob)
    expect(yield* HoldFollower.accountsOf(budgets, chainId)).toEqual([bob])
    const later = yield* hold("later")
    yield* one.watch(watched())
    yield* one.watch(watched(bob))
    chain.land(later, 4n)
    chain.mine(5)
    yield* looked(0n, 34n)
    yield* looked(0n, 7n, bob)
  })
})
