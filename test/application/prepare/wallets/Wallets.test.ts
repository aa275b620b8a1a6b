import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as ChainFacts from "../../../../src/application/chain/ChainFacts.js"
import type { ChainClient } from "../../../../src/application/ports/chain/ChainRpc.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import * as Wallets from "../../../../src/application/prepare/wallets/Wallets.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Words from "../../../../src/domain/primitives/Words.js"
import * as WalletConfig from "../../../../src/domain/wallet/WalletConfig.js"
import { address } from "../../../support/journal/Make.js"
import * as ChainMemory from "../../../support/memory/ChainRpc.js"
import { test } from "../../../support/Test.js"

const initCode = Hex.unsafe("0x6001")
const proxy = Hex.unsafe("0xfe01")
const config = WalletConfig.ecdsa(address(9))
const [first, second, empty, stranger] = [address(1), address(2), address(3), address(4)]
const wallets = [first, second, empty, stranger]

/**
 * A chain with these codes, where each deployed wallet has this config nonce; records the addresses whose code is read.
 */
const setup = Effect.gen(function* () {
  let configNonce = 1n
  const asked: Array<string> = []
  const called: Array<string> = []
  const node = yield* ChainMemory.make({
    chainId: 31_337n,
    execute: ({ to }, { client }) =>
      Effect.gen(function* () {
        const code = to === undefined ? null : yield* Effect.orDie(client("http://node").code(to))
        const configuration = Words.encode([WalletConfig.part(config), Words.uint(configNonce, 64)])
        const data = code === null ? proxy : code === "0x" ? Hex.empty : configuration
        return { success: true, data, gasUsed: 21_000n, logs: [] }
      })
  })
  const own = node.client("http://node")
  const chain: ChainClient = {
    ...own,
    code: (of) =>
      Effect.suspend(() => {
        asked.push(of)
        return own.code(of)
      }),
    call: (call, ...rest) =>
      Effect.suspend(() => {
        if (call.to !== undefined && wallets.includes(call.to)) called.push(call.to)
        return own.call(call, ...rest)
      })
  }
  for (const wallet of [first, second]) yield* node.setCode(wallet, proxy)
  yield* node.setCode(stranger, Hex.unsafe("0xfe02"))
  const facts = ChainFacts.make()
  const readOf = (wanted: ReadonlySet<typeof first>) =>
    Effect.suspend(() => {
      asked.splice(0)
      called.splice(0)
      return Effect.map(Wallets.read(facts, chain, initCode, wallets, { wanted }), (found) =>
        wallets.map((wallet) => {
          const state = found.get(wallet)
          return state?._tag === "deployed" ? state.configuration.configNonce : state?._tag
        })
      )
    })
  const read = readOf(new Set())
  const readWanted = readOf(new Set(wallets))
  const configure = () => {
    configNonce += 1n
  }
  return { asked, called, configure, facts, node, own, read, readWanted }
})

describe("the state at wallet addresses", () => {
  test("is read each time, except the immutable code of known wallets", function* () {
    const { asked, configure, read } = yield* setup
    expect(yield* read).toEqual([1n, 1n, "absent", "foreign"])
    expect(asked).toEqual(wallets)
    configure()
    expect(yield* read).toEqual([2n, 2n, "absent", "foreign"])
    expect(asked).toEqual([empty, stranger])
  })

  test("is the current state when a wallet has gone with its block", function* () {
    const { asked, node, read } = yield* setup
    yield* read
    yield* node.setCode(first, Hex.empty)
    expect(yield* read).toEqual(["absent", 1n, "absent", "foreign"])
    expect(asked).toEqual([empty, stranger, first])
  })

  test("is queried only at deployed addresses when the request creates all", function* () {
    const { called, read, readWanted } = yield* setup
    expect(yield* readWanted).toEqual([1n, 1n, "absent", "foreign"])
    expect(called).toEqual([first, second, stranger])
    expect(yield* read).toEqual([1n, 1n, "absent", "foreign"])
    expect(called).toEqual(wallets)
  })

  test("is known per node, and only for those proxies", function* () {
    const { facts, node, own, read } = yield* setup
    yield* read
    const { client } = node
    const another = client("http://another")
    const lastSeen = (chain: ChainClient, code: Hex.Hex, ...of: ReadonlyArray<typeof first>) =>
      Wallets.lastSeen(facts, chain, code, of)
    expect(lastSeen(own, initCode, first)).toBeNull()
    expect(lastSeen(another, initCode, first)).toBeNull()
    const seen = yield* Wallets.read(facts, another, initCode, [first])
    expect(seen.get(first)?._tag).toBe("deployed")
    expect(lastSeen(another, initCode, first)).toEqual(seen)
    expect(lastSeen(another, initCode, first, second)).toBeNull()
    expect(lastSeen(another, Hex.unsafe("0x6002"), first)).toBeNull()
  })
})

describe("the wallet that a request names", () => {
  const profile = NetworkProfile.make({
    chainId: 31_337n,
    factory: address(0xfa),
    beacon: address(0xbe),
    creationCode: Hex.unsafe("0xabcd"),
    defaultCustody: 1
  })
  const formula = Result.getOrThrow(Wallets.formula(profile, {}))
  const bob = Result.getOrThrow(Wallets.saltOf("bob", ""))
  const named = (selector: Wallets.Selector) =>
    Result.match(Wallets.select(selector, formula, profile, "operations[0]"), {
      onFailure: ({ details }) => details[0]?.path,
      onSuccess: (wallet) => wallet
    })

  it("has with its salt the custody that its address implies, when the request states none", () => {
    for (const custody of Wallets.custodies) {
      const wallet = formula.predict(bob, custody, false)
      for (const walletCustody of [0, custody] as const) {
        const selector = { salt: "bob", wallet, walletCustody }
        expect(named(selector)).toBe(wallet)
        expect(Wallets.custodyOf(bob, selector, wallet, formula, profile)).toBe(custody)
      }
      const other = custody === 5 ? 1 : 5
      expect(named({ salt: "bob", wallet, walletCustody: other })).toBe("operations[0].wallet")
      expect(named({ salt: "eve", wallet, walletCustody: 0 })).toBe("operations[0].wallet")
    }
  })

  it("has the operator's default custody for a bare salt and for a legacy wallet, whose address implies none", () => {
    expect(named({ salt: "bob", walletCustody: 0 })).toBe(formula.predict(bob, 1, false))
    const legacy = formula.predict(bob, 1, true)
    const selector = { salt: "bob", wallet: legacy, walletCustody: 0, legacyWallet: true } as const
    expect(named(selector)).toBe(legacy)
    expect(Wallets.custodyOf(bob, selector, legacy, formula, profile)).toBe(1)
  })
})
