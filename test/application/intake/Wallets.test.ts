import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ChainMemory from "../../../src/adapters/memory/ChainRpc.js"
import * as ChainFacts from "../../../src/application/chain/ChainFacts.js"
import * as Wallets from "../../../src/application/intake/Wallets.js"
import type { ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import * as WalletConfig from "../../../src/domain/wallet/WalletConfig.js"
import { address } from "../../support/journal/Make.js"

const initCode = Hex.unsafe("0x6001")
const proxy = Hex.unsafe("0xfe01")
const config = WalletConfig.ecdsa(address(9))
const [first, second, empty, stranger] = [address(1), address(2), address(3), address(4)]
const wallets = [first, second, empty, stranger]

/** A chain of these codes, where whoever has code is configured that often; it writes down whose code is asked for. */
const setup = Effect.gen(function* () {
  let configNonce = 1n
  const asked: Array<string> = []
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
      })
  }
  for (const wallet of [first, second]) yield* node.setCode(wallet, proxy)
  yield* node.setCode(stranger, Hex.unsafe("0xfe02"))
  const facts = ChainFacts.make()
  const read = Effect.suspend(() => {
    asked.splice(0)
    return Effect.map(Wallets.read(facts, chain, initCode, wallets), (found) =>
      wallets.map((wallet) => {
        const state = found.get(wallet)
        return state?._tag === "deployed" ? state.configuration.configNonce : state?._tag
      })
    )
  })
  const configure = () => {
    configNonce += 1n
  }
  return { asked, configure, facts, node, own, read }
})

describe("what stands at the addresses of wallets", () => {
  it.effect("is read anew each time, but the code of those that were seen, which never changes", () =>
    Effect.gen(function* () {
      const { asked, configure, read } = yield* setup
      expect(yield* read).toEqual([1n, 1n, "absent", "foreign"])
      expect(asked).toEqual(wallets)
      configure()
      expect(yield* read).toEqual([2n, 2n, "absent", "foreign"])
      expect(asked).toEqual([empty, stranger])
    })
  )

  it.effect("is what stands there now when a wallet has gone with its block", () =>
    Effect.gen(function* () {
      const { asked, node, read } = yield* setup
      yield* read
      yield* node.setCode(first, Hex.empty)
      expect(yield* read).toEqual(["absent", 1n, "absent", "foreign"])
      expect(asked).toEqual([empty, stranger, first])
    })
  )

  it.effect("is known of the node that told it, and of those proxies alone", () =>
    Effect.gen(function* () {
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
  )
})
