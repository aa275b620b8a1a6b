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
    (address) => Effect.result(chain.balance(address)),
    { concurrency: "unbounded" }
  )

export const hash = Hex.unsafe32(`0x${"5e".repeat(32)}`)
export const other = `0x${"0d".repeat(32)}`
export const address = Address.unsafe(`0x${"ad".repeat(20)}`)
export const block = {
  number: "0x5",
  hash: other,
  timestamp: "0x64",
  gasLimit: "0x1c9c380",
  baseFeePerGas: "0x7"
}
export const log = { address, topics: [other], data: "0x01", logIndex: "0x3" }
export const receipt = {
  transactionHash: hash,
  status: "0x1",
  blockNumber: "0x5",
  blockHash: other,
  gasUsed: "0x5208",
  cumulativeGasUsed: "0x5209",
  effectiveGasPrice: "0x1",
  from: address,
  logs: [log]
}
export const transaction = {
  hash,
  from: address,
  nonce: "0x7",
  to: null,
  input: "0x60",
  value: "0x1",
  gas: "0x5208",
  gasPrice: "0x3",
  blockNumber: "0x5"
}

/** The failure of a read; it contains only the origin of the URL. */
export const failure = (effect: Effect.Effect<unknown, ChainRpcError>, node: HostileNode) =>
  Effect.map(Effect.flip(effect), (error) => {
    expect(error._tag).toBe("ChainRpcError")
    expect(error.origin).toBe(new URL(node.url).origin)
    expect(JSON.stringify({ ...error, text: String(error), message: error.message })).not.toContain(secret)
    return error
  })

export const reasonOf = (effect: Effect.Effect<unknown, ChainRpcError>, node: HostileNode) =>
  Effect.map(failure(effect, node), ({ reason }) => reason)
