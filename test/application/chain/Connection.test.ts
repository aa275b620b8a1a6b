import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Connection from "../../../src/application/chain/Connection.js"
import { ChainRpc, ChainRpcError, type NamedBy } from "../../../src/application/ports/chain/ChainRpc.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"

const caller: Caller = {
  principal: { accountId: Make.alice, name: "Alice", tier: "pro", scopes: new Set(["write"]), paused: false },
  requestId: "r"
}

/** A caller's node and the operator's, of these chains; null: that one refuses to tell its chain. */
const world = (chains: { readonly caller?: bigint; readonly operator?: bigint | null }, rpc = true) =>
  Effect.gen(function* () {
    const connected: Array<readonly [string, NamedBy]> = []
    const { chain } = yield* Monitor.node("any")
    const rejected = new ChainRpcError({ reason: "rejected", origin: "http://operator", message: "no key" })
    const { caller: named = Make.chainId, operator = Make.chainId } = chains
    const nodes = {
      "http://caller": { ...chain, chainId: Effect.succeed(named) },
      "http://operator": {
        ...chain,
        chainId: operator === null ? Effect.fail(rejected) : Effect.succeed(operator)
      }
    }
    const profile = { ...Monitor.profile, rpc: rpc ? Redacted.make("http://operator") : null }
    const given = <A, E>(effect: Effect.Effect<A, E, ChainRpc | Networks>) =>
      effect.pipe(
        Effect.provideService(ChainRpc, {
          connect: (url, by) =>
            Effect.sync(() => {
              connected.push([url, by])
              return url === "http://caller" ? nodes["http://caller"] : nodes["http://operator"]
            })
        }),
        Effect.provideService(Networks, {
          chainIds: Effect.succeed([Make.chainId]),
          profile: (account, chainId) =>
            Effect.succeed(account === Make.alice && chainId === Make.chainId ? profile : null)
        })
      )
    return { connected, given, nodes, profile }
  })

describe("a connection to the node that a caller names", () => {
  it.effect("is trusted as the caller's, and of the chain that the node tells", () =>
    Effect.gen(function* () {
      const { connected, given, nodes, profile } = yield* world({})
      const connection = yield* given(Connection.open(caller, "http://caller"))
      expect(connection).toMatchObject({ trust: "caller", profile })
      expect(connection.chain).toBe(nodes["http://caller"])
      expect(Redacted.value(connection.rpc)).toBe("http://caller")
      expect(connected).toEqual([["http://caller", { account: Make.alice }]])
    })
  )

  it.effect("is refused on a chain that the account has not", () =>
    Effect.gen(function* () {
      const { given } = yield* world({ caller: 5n })
      const failure = yield* Effect.flip(given(Connection.open(caller, "http://caller")))
      expect(failure).toMatchObject({ code: "unsupported_chain", message: "unsupported chain id 5" })
    })
  )
})

describe("a connection to the operator's node", () => {
  it.effect("is trusted as the operator's, whatever node the caller names", () =>
    Effect.gen(function* () {
      const { connected, given, nodes } = yield* world({})
      const connection = yield* given(Connection.openOperator(caller, "http://caller"))
      expect(connection.trust).toBe("operator")
      expect(connection.chain).toBe(nodes["http://operator"])
      expect(Redacted.value(connection.rpc)).toBe("http://operator")
      expect(connected).toEqual([
        ["http://caller", { account: Make.alice }],
        ["http://operator", "operator"]
      ])
    })
  )

  it.effect("is refused when that node serves another chain: a key would sign by what it tells", () =>
    Effect.gen(function* () {
      const { given } = yield* world({ operator: Make.chainId + 1n })
      const failure = yield* Effect.flip(given(Connection.openOperator(caller, "http://caller")))
      expect(failure).toMatchObject({
        code: "node_refused",
        details: [{ path: "", message: "the operator's node serves another chain" }]
      })
    })
  )

  it.effect("is refused where there is none, and when it does not tell its chain", () =>
    Effect.gen(function* () {
      const without = yield* world({}, false)
      const missing = yield* Effect.flip(without.given(Connection.openOperator(caller, "http://caller")))
      expect(missing.code).toBe("operator_rpc_missing")
      const silent = yield* world({ operator: null })
      const failure = yield* Effect.flip(silent.given(Connection.openOperator(caller, "http://caller")))
      expect(failure.code).toBe("node_refused")
    })
  )
})
