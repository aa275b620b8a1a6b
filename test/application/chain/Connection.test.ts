import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Connection from "../../../src/application/chain/Connection.js"
import { ChainRpc, ChainRpcError, type NamedBy } from "../../../src/application/ports/chain/ChainRpc.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import type { Failure } from "../../../src/application/request/Failure.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as Make from "../../support/journal/Make.js"
import { law } from "../../support/Law.js"
import * as Monitor from "../../support/lanes/Monitor.js"

const caller: Caller = {
  principal: { accountId: Make.alice, name: "Alice", tier: "pro", scopes: new Set(["write"]), paused: false },
  requestId: "r"
}

const withoutNode = 77n

/**
 * A caller's node and the operator's, of these chains; null: that one refuses to tell its chain. The operator has nodes of
 * the `others` too, and none of `withoutNode`.
 */
const world = (
  chains: { readonly caller?: bigint; readonly operator?: bigint | null },
  rpc = true,
  others: ReadonlyArray<bigint> = []
) =>
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
          chainIds: Effect.succeed([Make.chainId, ...others, withoutNode]),
          profile: (account, chainId) => {
            const served = chainId === Make.chainId || others.includes(chainId)
            const bare = chainId === withoutNode ? { ...profile, chainId, rpc: null } : null
            return Effect.succeed(account === Make.alice ? (served ? { ...profile, chainId } : bare) : null)
          }
        })
      )
    return { connected, given, nodes, profile }
  })

describe("a connection to the node that a caller names", () => {
  law("is trusted as the caller's, and of the chain that the node tells", function* () {
    const { connected, given, nodes, profile } = yield* world({})
    const connection = yield* given(Connection.open(caller, { rpc: "http://caller" }))
    expect(connection).toMatchObject({ trust: "caller", profile })
    expect(connection.chain).toBe(nodes["http://caller"])
    expect(Redacted.value(connection.rpc)).toBe("http://caller")
    expect(connected).toEqual([["http://caller", { account: Make.alice }]])
  })

  law("is refused on a chain that the account has not", function* () {
    const { given } = yield* world({ caller: 5n })
    const failure = yield* Effect.flip(given(Connection.open(caller, { rpc: "http://caller" })))
    expect(failure).toMatchObject({ code: "unsupported_chain", message: "unsupported chain id 5" })
  })

  law("serves the chain that is named beside it, or is refused", function* () {
    const { given } = yield* world({})
    const chainId = Number(Make.chainId)
    const connection = yield* given(Connection.open(caller, { rpc: "http://caller", chainId }))
    expect(connection.trust).toBe("caller")
    const failure = yield* Effect.flip(
      given(Connection.open(caller, { rpc: "http://caller", chainId: chainId + 1 }))
    )
    expect(failure).toMatchObject({
      code: "invalid_rpc",
      details: [{ path: "settings.chainId", message: `the node serves chain ${chainId}` }]
    })
  })
})

describe("a request that names no node", () => {
  const refused = (effect: Effect.Effect<unknown, Failure>) =>
    Effect.map(Effect.flip(effect), ({ code, details }) => ({ code, details }))

  law("goes to the operator's, where he has one of one chain only", function* () {
    const { connected, given, profile } = yield* world({})
    for (const open of [Connection.open, Connection.openOperator]) {
      const connection = yield* given(open(caller, {}))
      expect(connection).toMatchObject({ trust: "operator", profile })
      expect(Redacted.value(connection.rpc)).toBe("http://operator")
    }
    expect(connected).toEqual([
      ["http://operator", "operator"],
      ["http://operator", "operator"]
    ])
  })

  law("says its chain where the operator has nodes of several", function* () {
    const { given } = yield* world({}, true, [9n])
    expect(yield* refused(given(Connection.open(caller, {}, "rpc")))).toEqual({
      code: "invalid_request",
      details: [
        { path: "rpc", message: "rpc or chainId is required: the operator has nodes of several chains" }
      ]
    })
    const connection = yield* given(Connection.open(caller, { chainId: Number(Make.chainId) }))
    expect(connection.profile.chainId).toBe(Make.chainId)
  })

  law("goes on where it was accepted, however many nodes the operator has by then", function* () {
    const { given } = yield* world({}, true, [9n])
    const connection = yield* given(Connection.open({ ...caller, chainId: Make.chainId }, {}))
    expect(connection.profile.chainId).toBe(Make.chainId)
  })

  law("is refused where the operator has none", function* () {
    const { given } = yield* world({}, false)
    expect(yield* refused(given(Connection.open(caller, {})))).toEqual({
      code: "invalid_request",
      details: [{ path: "settings.rpc", message: "settings.rpc is required" }]
    })
    expect(yield* refused(given(Connection.open(caller, { chainId: Number(withoutNode) })))).toEqual({
      code: "operator_rpc_missing",
      details: [{ path: "settings.chainId", message: `chain ${withoutNode}` }]
    })
    expect(yield* refused(given(Connection.open(caller, { chainId: 5 })))).toEqual({
      code: "unsupported_chain",
      details: [{ path: "settings.chainId", message: "the operator does not serve it" }]
    })
  })

  law("hears nothing that the operator's node says", function* () {
    const { given } = yield* world({ operator: null })
    const failure = yield* Effect.flip(given(Connection.open(caller, {})))
    expect(failure.code).toBe("node_refused")
    expect(JSON.stringify(failure)).not.toContain("http://operator")
  })
})

describe("a connection to the operator's node", () => {
  law("is trusted as the operator's, whatever node the caller names", function* () {
    const { connected, given, nodes } = yield* world({})
    const connection = yield* given(Connection.openOperator(caller, { rpc: "http://caller" }))
    expect(connection.trust).toBe("operator")
    expect(connection.chain).toBe(nodes["http://operator"])
    expect(Redacted.value(connection.rpc)).toBe("http://operator")
    expect(connected).toEqual([
      ["http://caller", { account: Make.alice }],
      ["http://operator", "operator"]
    ])
  })

  law("is refused when that node serves another chain: a key would sign by what it tells", function* () {
    const { given } = yield* world({ operator: Make.chainId + 1n })
    const failure = yield* Effect.flip(given(Connection.openOperator(caller, { rpc: "http://caller" })))
    expect(failure).toMatchObject({
      code: "node_refused",
      details: [{ path: "", message: "the operator's node serves another chain" }]
    })
  })

  law("is refused where there is none, and when it does not tell its chain", function* () {
    const without = yield* world({}, false)
    const missing = yield* Effect.flip(
      without.given(Connection.openOperator(caller, { rpc: "http://caller" }))
    )
    expect(missing.code).toBe("operator_rpc_missing")
    const silent = yield* world({ operator: null })
    const failure = yield* Effect.flip(
      silent.given(Connection.openOperator(caller, { rpc: "http://caller" }))
    )
    expect(failure.code).toBe("node_refused")
  })
})

describe("a node that fails before anything is sent", () => {
  const reasons = [
    "invalidUrl",
    "forbidden",
    "unreachable",
    "unavailable",
    "notAnRpc",
    "rateLimited"
  ] as const
  const told = (trust: "caller" | "operator", over: Partial<ChainRpcError>) => {
    const error = {
      reason: "unreachable" as const,
      origin: "http://node",
      message: "http://node: no",
      ...over
    }
    return Connection.refusal(trust)(new ChainRpcError(error))
  }

  it("is unavailable where it is the operator's and gives no answer, and is named to nobody", () => {
    for (const reason of reasons) {
      const failure = told("operator", { reason })
      expect(failure).toMatchObject({ _tag: "Unavailable", code: "node_unavailable", retryAfterSeconds: 5 })
      expect(JSON.stringify(failure)).not.toContain("http://node")
    }
  })

  it("is unavailable where it is the caller's and says that it cannot answer now; else it is none", () => {
    const codes = reasons.map((reason) => told("caller", { reason }).code)
    const [now, never] = ["node_unavailable", "invalid_rpc"]
    expect(codes).toEqual([never, never, never, now, never, now])
  })

  it("has refused where it looked at the request, whoever's it is", () => {
    for (const trust of ["caller", "operator"] as const)
      for (const reason of ["rejected", "unsupported"] as const)
        expect(told(trust, { reason })).toMatchObject({ _tag: "Unprocessable", code: "node_refused" })
  })

  it("is asked again when it has asked to be, no sooner than in some seconds", () => {
    const asking = (retryAfterMillis: number) => told("caller", { reason: "rateLimited", retryAfterMillis })
    expect(asking(61_001)).toMatchObject({ retryAfterSeconds: 62 })
    expect(asking(1)).toMatchObject({ retryAfterSeconds: 5 })
  })

  it("says what it said, and in whose words", () => {
    const message = (over: Partial<ChainRpcError>) => told("caller", over).details[0]?.message
    expect(message({ reason: "unavailable", message: "http://node: HTTP status 503" })).toBe(
      "http://node answered with HTTP status 503"
    )
    expect(message({ reason: "unavailable", message: "header not found", rpcCode: -32_000 })).toBe(
      "http://node answered: header not found"
    )
    expect(message({ reason: "rateLimited" })).toBe("http://node limits the rate of requests")
  })
})

describe("an EntryPoint", () => {
  law("is one that the operator accepts, and not any that is known", function* () {
    const profile = { ...Monitor.profile, entryPoints: [EntryPoint.canonical["v0.8"]] }
    expect(yield* Connection.entryPointVersion(profile, EntryPoint.canonical["v0.8"])).toBe("v0.8")
    for (const other of [EntryPoint.canonical["v0.7"], Make.address(0xe7)]) {
      const failure = yield* Effect.flip(Connection.entryPointVersion(profile, other))
      expect(failure.code).toBe("unsupported_entry_point")
    }
    // What the operator accepts and the service does not know has no version.
    const unknown = { ...profile, entryPoints: [Make.address(0xe7)] }
    const failure = yield* Effect.flip(Connection.entryPointVersion(unknown, Make.address(0xe7)))
    expect(failure.code).toBe("unsupported_entry_point")
  })
})
