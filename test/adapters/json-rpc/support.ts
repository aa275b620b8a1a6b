import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as EthersChainRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import type { ChainClient, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { type HostileNode, httpNode, secret, tcpNode } from "../../support/HostileNode.js"
import { acme } from "../../support/NamedBy.js"

export const options: EthersChainRpc.Options = {
  egress: { allowLoopback: true },
  http: { responseBytes: 64 * 1_024 },
  retry: { baseMillis: 1, maxMillis: 5 }
}

const acquire = (make: () => Promise<HostileNode>) =>
  Effect.acquireRelease(Effect.promise(make), (node) => Effect.promise(node.close))

export const http = (answer: (response: ServerResponse, body: string, turn: number) => void) =>
  acquire(() => httpNode(answer))
export const tcp = (talk: (socket: Socket) => void) => acquire(() => tcpNode(talk))

export const connect = (node: HostileNode, more: EthersChainRpc.Options = {}) =>
  Effect.flatMap(EthersChainRpc.make({ ...options, ...more }), (rpc) => rpc.connect(node.url, acme))

export const raw = Hex.unsafe("0x02c0")
export const call = { to: Address.zero, data: Hex.empty }
export const balances = (chain: ChainClient, count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => Address.unsafe(`0x${n.toString(16).padStart(40, "0")}`)),
    (address) => Effect.either(chain.balance(address)),
    { concurrency: "unbounded" }
  )

/** The failure of a read; nothing of the URL but its origin may be in it. */
export const failure = (effect: Effect.Effect<unknown, ChainRpcError>, node: HostileNode) =>
  Effect.map(Effect.flip(effect), (error) => {
    expect(error._tag).toBe("ChainRpcError")
    expect(error.origin).toBe(new URL(node.url).origin)
    expect(JSON.stringify({ ...error, text: String(error), message: error.message })).not.toContain(secret)
    return error
  })

export const reasonOf = (effect: Effect.Effect<unknown, ChainRpcError>, node: HostileNode) =>
  Effect.map(failure(effect, node), ({ reason }) => reason)
