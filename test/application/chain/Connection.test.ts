import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as Connection from "../../../src/application/chain/Connection.js"
import type { Failure } from "../../../src/application/failures/Failure.js"
import { ChainRpc, ChainRpcError, type NamedBy } from "../../../src/application/ports/chain/ChainRpc.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import * as Parties from "../../support/Parties.js"
import { test } from "../../support/Test.js"

const caller = Parties.caller()

const withoutNode = 77n

/**
 * Chains of the caller's node and of the operator's; null: the node refuses to report its chain. The operator has nodes
 * of the `others` too, and lacks nodes of `withoutNode`.
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
    /** Code and details of the refusal. */
    const refused = (effect: Effect.Effect<unknown, Failure, ChainRpc | Networks>) =>
      Effect.map(Effect.flip(given(effect)), ({ code, details }) => [
        code,
        ...details.map((each) => [each.path, each.message])
      ])
    return { connected, given, nodes, profile, refused }
  })

const { open, openOperator } = Connection
const callers = { rpc: "http://caller" }
const chainId = Number(Make.chainId)

test("a connection to a caller's node has the caller's trust and the chain that the node reports", function* () {
  const { connected, given, nodes, profile } = yield* world({})
  for (const settings of [callers, { ...callers, chainId }]) {
    const connection = yield* given(open(caller, settings))
    expect(connection).toMatchObject({ trust: "caller", profile })
    expect(connection.chain).toBe(nodes["http://caller"])
    expect(Redacted.value(connection.rpc)).toBe("http://caller")
  }
  expect(connected).toEqual(Array(2).fill(["http://caller", { account: Make.alice }]))
})

test("a request without a node uses the operator's, where the operator has one chain or the request names the chain", function* () {
  const { connected, given, profile } = yield* world({})
  for (const opening of [open(caller, {}), openOperator(caller, {})]) {
    const connection = yield* given(opening)
    expect(connection).toMatchObject({ trust: "operator", profile })
    expect(Redacted.value(connection.rpc)).toBe("http://operator")
  }
  expect(connected).toEqual(Array(2).fill(["http://operator", "operator"]))
  const several = yield* world({}, true, [9n])
  // An accepted request stays with its node.
  for (const opening of [open(caller, { chainId }), open({ ...caller, chainId: Make.chainId }, {})])
    expect((yield* several.given(opening)).profile.chainId).toBe(Make.chainId)
})

test("a connection to the operator's node has the operator's trust, whatever node the caller names", function* () {
  const { connected, given, nodes } = yield* world({})
  const connection = yield* given(openOperator(caller, callers))
  expect(connection.trust).toBe("operator")
  expect(connection.chain).toBe(nodes["http://operator"])
  expect(Redacted.value(connection.rpc)).toBe("http://operator")
  expect(connected).toEqual([
    ["http://caller", { account: Make.alice }],
    ["http://operator", "operator"]
  ])
})

test("no connection is made to a node of another chain or to a missing node", function* () {
  const several = "rpc or chainId is required: the operator has nodes of several chains"
  const served = "the node serves chain 31337"
  const foreign = "the operator's node serves another chain"
  const silent = yield* world({ operator: null })
  for (const [{ refused }, opening, why] of [
    [
      yield* world({ caller: 5n }),
      open(caller, callers),
      ["unsupported_chain", ["settings.rpc", "the node serves chain 5"]]
    ],
    [
      yield* world({}),
      open(caller, { ...callers, chainId: 1 }),
      ["invalid_rpc", ["settings.chainId", served]]
    ],
    [yield* world({}, true, [9n]), open(caller, {}, "rpc"), ["invalid_request", ["rpc", several]]],
    [
      yield* world({}, false),
      open(caller, {}),
      ["invalid_request", ["settings.rpc", "settings.rpc is required"]]
    ],
    [
      yield* world({}, false),
      open(caller, { chainId: Number(withoutNode) }),
      ["operator_rpc_missing", ["settings.chainId", `chain ${withoutNode}`]]
    ],
    [
      yield* world({}, false),
      open(caller, { chainId: 5 }),
      ["unsupported_chain", ["settings.chainId", "the operator does not serve it"]]
    ],
    // A key would sign for the chain that the node reports.
    [yield* world({ operator: 5n }), openOperator(caller, callers), ["node_refused", ["", foreign]]]
  ] as const)
    expect(yield* refused(opening)).toEqual(why)
  expect((yield* (yield* world({}, false)).refused(openOperator(caller, callers)))[0]).toBe(
    "operator_rpc_missing"
  )
  for (const opening of [open(caller, {}), openOperator(caller, callers)]) {
    const failure = yield* Effect.flip(silent.given(opening))
    expect(failure.code).toBe("node_refused")
    expect(JSON.stringify(failure)).not.toContain("http://operator")
  }
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

  it("is unavailable and unnamed when it is the operator's and does not reply", () => {
    for (const reason of reasons) {
      const failure = told("operator", { reason })
      expect(failure).toMatchObject({ _tag: "Unavailable", code: "node_unavailable", retryAfterSeconds: 5 })
      expect(JSON.stringify(failure)).not.toContain("http://node")
    }
  })

  it("is unavailable when it is the caller's and reports that it cannot reply now; otherwise it is not a node", () => {
    const codes = reasons.map((reason) => told("caller", { reason }).code)
    const [now, never] = ["node_unavailable", "invalid_rpc"]
    expect(codes).toEqual([never, never, never, now, never, now])
  })

  it("has refused when it processed the request, whether the operator's or the caller's", () => {
    for (const trust of ["caller", "operator"] as const)
      for (const reason of ["rejected", "unsupported"] as const)
        expect(told(trust, { reason })).toMatchObject({ _tag: "Unprocessable", code: "node_refused" })
  })

  it("is retried after the delay it requested, at the earliest after some seconds", () => {
    const asking = (retryAfterMillis: number) => told("caller", { reason: "rateLimited", retryAfterMillis })
    expect(asking(61_001)).toMatchObject({ retryAfterSeconds: 62 })
    expect(asking(1)).toMatchObject({ retryAfterSeconds: 5 })
  })

  it("quotes its error and names the source", () => {
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

test("accepts only EntryPoints that the operator accepts", function* () {
  const profile = { ...Monitor.profile, entryPoints: [EntryPoint.canonical["v0.8"]] }
  expect(yield* Connection.entryPointVersion(profile, EntryPoint.canonical["v0.8"])).toBe("v0.8")
  for (const other of [EntryPoint.canonical["v0.7"], Make.address(0xe7)]) {
    const failure = yield* Effect.flip(Connection.entryPointVersion(profile, other))
    expect(failure.code).toBe("unsupported_entry_point")
  }
  // An EntryPoint that the operator accepts and the service does not know has no version.
  const unknown = { ...profile, entryPoints: [Make.address(0xe7)] }
  const failure = yield* Effect.flip(Connection.entryPointVersion(unknown, Make.address(0xe7)))
  expect(failure.code).toBe("unsupported_entry_point")
})
