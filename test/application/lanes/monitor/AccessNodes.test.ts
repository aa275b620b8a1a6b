import { describe, expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as AccessNodes from "../../../../src/application/lanes/monitor/AccessNodes.js"
import { ChainRpcError, type NamedBy } from "../../../../src/application/ports/chain/ChainRpc.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import { test } from "../../../support/Test.js"

const { callers, service } = Monitor

/** Nodes of a process, and the party for which each was connected. */
const world = (operators: string | null, forbidden: ReadonlyArray<string> = []) =>
  Effect.map(Monitor.node("any"), ({ chain }) => {
    const connected: Array<readonly [string, NamedBy]> = []
    const nodes = AccessNodes.make(
      {
        connect: (url, by) => {
          connected.push([url, by])
          return forbidden.includes(url)
            ? Effect.fail(new ChainRpcError({ reason: "forbidden", origin: url, message: "not allowed" }))
            : Effect.succeed(chain)
        }
      },
      {
        chainIds: Effect.succeed([Make.chainId]),
        profile: () =>
          Effect.succeed({
            ...Monitor.profile,
            rpc: operators === null ? null : Redacted.make(operators)
          })
      }
    )
    return { chain, connected, nodes }
  })

describe("the node that the caller named", () => {
  test("is connected as the account's, even if only the journal remembers the caller", function* () {
    const { chain, connected, nodes } = yield* world("http://operator")
    expect(yield* nodes.ofCaller(callers)).toBe(chain)
    expect(connected).toEqual([["http://caller", { account: callers.accountId }]])
  })

  test("is null if it is no longer allowed or its URL cannot be read", function* () {
    const { connected, nodes } = yield* world("http://operator", ["http://caller"])
    expect(yield* nodes.ofCaller(callers)).toBeNull()
    expect(connected).toHaveLength(1)
    expect(yield* nodes.ofCaller({ ...callers, rpc: null })).toBeNull()
    expect(connected).toHaveLength(1)
  })

  test("is null for a transaction that a system key signed, since the operator's stored URL may be outdated", function* () {
    const { connected, nodes } = yield* world("http://operator")
    expect(yield* nodes.ofCaller(service)).toBeNull()
    expect(connected).toEqual([])
  })
})

describe("the operator's node", () => {
  test("is the current profile's, connected as the operator's", function* () {
    const { chain, connected, nodes } = yield* world("http://operator")
    for (const access of [callers, service]) expect(yield* nodes.ofOperator(access, 1n)).toBe(chain)
    expect(connected).toEqual(Array(2).fill(["http://operator", "operator"]))
  })

  test("is null if the profile has no node or the connection fails", function* () {
    const without = yield* world(null)
    expect(yield* without.nodes.ofOperator(service, 1n)).toBeNull()
    const refused = yield* world("http://operator", ["http://operator"])
    expect(yield* refused.nodes.ofOperator(service, 1n)).toBeNull()
  })

  test("is not polled if it equals the caller's node", function* () {
    const { nodes } = yield* world("http://caller")
    expect(yield* nodes.ofOperator(callers, 1n)).toBeNull()
    expect(yield* nodes.ofOperator({ ...service, rpc: callers.rpc }, 1n)).not.toBeNull()
  })
})
