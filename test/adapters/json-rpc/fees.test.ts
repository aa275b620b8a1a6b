import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as JsonRpcChain from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as NodeFees from "../../../src/adapters/json-rpc/node/NodeFees.js"
import type { ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Transaction from "../../../src/domain/evm/Transaction.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import { startAnvil } from "../../../src/hosts/cli/dev/Anvil.js"
import { funded, fundedKey, minedReceipt } from "../../support/ChainScript.js"
import { callsOf, json } from "../../support/HostileNode.js"
import { acme } from "../../support/NamedBy.js"
import * as SetClock from "../../support/SetClock.js"
import * as Time from "../../support/Time.js"
import { use } from "../../support/Use.js"
import { block, connect, http, reasonOf } from "./support.js"

const old = { ...block, baseFeePerGas: undefined }
const history = (
  tips: ReadonlyArray<number | null>,
  ratios: ReadonlyArray<unknown> = tips.map(() => 0.5)
) => ({
  oldestBlock: "0x5",
  baseFeePerGas: [...tips.map(() => "0x64"), "0x65"],
  gasUsedRatio: ratios,
  reward: tips.map((tip) => (tip === null ? [] : [`0x${tip.toString(16)}`]))
})
const missing = new Error("the method does not exist/is not available")

type Said = Partial<Record<string, unknown>>

/** A node with these replies, errors refused; counts the calls. */
const node = (said: () => Said) => {
  const asked: Array<string> = []
  const started = http((response, body) => {
    const answers = callsOf(body).map(({ id, method }) => {
      asked.push(method)
      const value = said()[method] ?? null
      return value instanceof Error
        ? { jsonrpc: "2.0", id, error: { code: -32_601, message: value.message } }
        : { jsonrpc: "2.0", id, result: value }
    })
    json(response, body.startsWith("[") ? answers : answers[0])
  })
  return { started, asked }
}

const asking = <A, E>(
  said: () => Said,
  use: (chain: ChainClient, asked: Array<string>) => Effect.Effect<A, E>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { asked, started } = node(said)
      const chain = yield* Effect.flatMap(started, (running) => connect(running))
      return yield* use(chain, asked)
    })
  )

const feesOf = (said: Said) =>
  asking(
    () => said,
    (chain) => chain.fees
  )

const market: Said = {
  eth_getBlockByNumber: block,
  eth_feeHistory: history([3]),
  eth_maxPriorityFeePerGas: "0x2",
  eth_gasPrice: "0x70"
}

describe("the fees of a chain with a base fee", () => {
  it.live("fees are the next base fee and the median tip of the blocks that were not empty", () =>
    Effect.gen(function* () {
      expect(yield* feesOf(market)).toEqual({ nextBaseFee: 101n, tip: 3n })
      const odd = history([900, 5, 0, 4, 0, null, 6], [0.5, 0.1, 0, 1, 0, 0.3, 0.9])
      expect(yield* feesOf({ ...market, eth_feeHistory: odd })).toEqual({ nextBaseFee: 101n, tip: 6n })
    })
  )

  it.live("fees have the tip that the node suggests when that is more, or when all blocks were empty", () =>
    Effect.gen(function* () {
      const suggests = { ...market, eth_maxPriorityFeePerGas: "0x9" }
      expect(yield* feesOf(suggests)).toEqual({ nextBaseFee: 101n, tip: 9n })
      const empty = { ...market, eth_feeHistory: history([0, 0, 0], [0, 0, 0]) }
      expect(yield* feesOf(empty)).toEqual({ nextBaseFee: 101n, tip: 2n })
    })
  )

  it.live("fees are known while the node has not yet indexed its latest block", () =>
    Effect.gen(function* () {
      const short = { baseFeePerGas: ["0x65"], gasUsedRatio: [], oldestBlock: "0x6", reward: [] }
      expect(yield* feesOf({ ...market, eth_feeHistory: short })).toEqual({ nextBaseFee: 101n, tip: 2n })
    })
  )

  it.live("fees use the paid tips when the node suggests none; the suggestion is read once", () =>
    asking(
      () => ({ ...market, eth_maxPriorityFeePerGas: missing }),
      (chain, asked) =>
        Effect.gen(function* () {
          for (let n = 0; n < 3; n += 1) expect(yield* chain.fees).toEqual({ nextBaseFee: 101n, tip: 3n })
          expect(asked.filter((method) => method === "eth_maxPriorityFeePerGas")).toHaveLength(1)
          expect(asked.filter((method) => method === "eth_feeHistory")).toHaveLength(3)
        })
    )
  )

  it.effect("fees cost one call once a base fee is known, two when the tip is old", () => {
    let said: Said = market
    return asking(
      () => said,
      (chain, asked) =>
        Effect.gen(function* () {
          yield* chain.fees
          said = { ...market, eth_maxPriorityFeePerGas: "0x9" }
          asked.length = 0
          yield* Time.adjust(NodeFees.tipMillis - 1)
          expect(yield* chain.fees).toEqual({ nextBaseFee: 101n, tip: 3n })
          expect(asked).toEqual(["eth_feeHistory"])
          asked.length = 0
          yield* Time.adjust(1)
          expect(yield* chain.fees).toEqual({ nextBaseFee: 101n, tip: 9n })
          expect(asked).toEqual(["eth_feeHistory", "eth_maxPriorityFeePerGas"])
        })
    )
  })

  it.effect("fees keep an old tip no longer when the machine's clock is set back", () => {
    let said: Said = market
    return asking(
      () => said,
      (chain) =>
        Effect.gen(function* () {
          yield* chain.fees
          said = { ...market, eth_maxPriorityFeePerGas: "0x9" }
          expect(yield* SetClock.by(-3_600_000)(chain.fees)).toEqual({ nextBaseFee: 101n, tip: 9n })
        })
    )
  })

  it.live("fees come from the other blocks when one block cannot be read", () =>
    Effect.gen(function* () {
      const whole = history([3, 3, 3])
      for (const odd of [["0x"], [], null, "0x3", { 0: "0x3" }]) {
        const eth_feeHistory = {
          ...whole,
          baseFeePerGas: [null, ...whole.baseFeePerGas.slice(1)],
          reward: [whole.reward[0], odd, whole.reward[2]]
        }
        expect(yield* feesOf({ ...market, eth_feeHistory })).toEqual({ nextBaseFee: 101n, tip: 3n })
      }
    })
  )

  it.live(
    "are the gas price where there is no history, or a senseless one, and the history again once it is back",
    () =>
      Effect.gen(function* () {
        const price = { nextBaseFee: null, tip: 0x70n }
        const odd: ReadonlyArray<unknown> = [
          missing,
          null,
          [],
          { baseFeePerGas: [] },
          { ...history([3]), baseFeePerGas: ["100"] },
          { ...history([3]), baseFeePerGas: Array(2_000).fill("0x64") },
          { ...history([3]), reward: Array(2_000).fill(["0x3"]) }
        ]
        for (const each of odd) {
          expect(yield* feesOf({ ...market, eth_feeHistory: each })).toEqual(price)
          let broken = false
          yield* asking(
            () => (broken ? { ...market, eth_feeHistory: each } : market),
            (chain) =>
              Effect.gen(function* () {
                expect(yield* chain.fees).toEqual({ nextBaseFee: 101n, tip: 3n })
                broken = true
                expect(yield* chain.fees).toEqual(price)
                broken = false
                if (each !== missing) expect(yield* chain.fees).toEqual({ nextBaseFee: 101n, tip: 3n })
              })
          )
        }
      })
  )

  it.live("fees are unknown when the node says nothing, or lies about the tip", () =>
    Effect.gen(function* () {
      const silent = { eth_feeHistory: missing, eth_maxPriorityFeePerGas: missing, eth_gasPrice: missing }
      const tipless = { ...silent, eth_feeHistory: { ...history([3]), reward: null } }
      const lying = { ...market, eth_maxPriorityFeePerGas: 9 }
      const reasons: Array<string> = []
      for (const said of [silent, tipless, lying]) {
        const { started } = node(() => said)
        reasons.push(
          yield* Effect.scoped(
            Effect.flatMap(started, (running) =>
              Effect.flatMap(connect(running), (chain) => reasonOf(chain.fees, running))
            )
          )
        )
      }
      expect(reasons).toEqual(["unsupported", "unsupported", "notAnRpc"])
    })
  )
})

describe("the fees of a chain without a base fee", () => {
  const legacy: Said = {
    ...market,
    eth_getBlockByNumber: old,
    // What Geth and anvil say there.
    eth_feeHistory: { ...history([0, 7]), baseFeePerGas: ["0x0", "0x0", "0x0"] }
  }

  it.live("fees without a base fee are the gas price; later reads query nothing more", () =>
    asking(
      () => legacy,
      (chain, asked) =>
        Effect.gen(function* () {
          expect(yield* chain.fees).toEqual({ nextBaseFee: null, tip: 0x70n })
          asked.length = 0
          expect(yield* chain.fees).toEqual({ nextBaseFee: null, tip: 0x70n })
          expect(asked).toEqual(["eth_gasPrice"])
        })
    )
  )
})

describe("anvil before London", () => {
  const anvil = use(() => startAnvil({ args: ["--hardfork", "berlin", "--gas-price", "7000000000"] }))

  it.live("anvil before London takes a legacy transaction at its gas price, and refuses type 2", () =>
    Effect.gen(function* () {
      const rpc = yield* JsonRpcChain.make({ egress: { allowLoopback: true } })
      const chain = yield* rpc.connect(anvil.url, acme)
      expect((yield* chain.block("latest"))?.baseFeePerGas).toBeNull()
      const fees = yield* chain.fees
      expect(fees.nextBaseFee).toBeNull()
      expect(fees.tip).toBeGreaterThanOrEqual(7_000_000_000n)
      const signed = (legacy: boolean) => {
        const transaction: Transaction.Transaction = {
          chainId: BigInt(anvil.chainId),
          nonce: 0n,
          legacy,
          maxFeePerGas: fees.tip,
          maxPriorityFeePerGas: fees.tip,
          gasLimit: 21_000n,
          to: funded,
          value: 1n,
          data: Hex.empty
        }
        const signature = fundedKey.sign(Transaction.signingDigest(transaction)).serialized
        return Transaction.serialize(transaction, Hex.unsafe(signature))
      }
      expect((yield* Effect.flip(chain.sendRawTransaction(signed(false)))).reason).toBe("rejected")
      const raw = signed(true)
      yield* chain.sendRawTransaction(raw)
      const receipt = yield* minedReceipt(chain, Keccak.hash(raw))
      expect(receipt).toMatchObject({ success: true, from: funded, effectiveGasPrice: fees.tip })
    })
  )
})
