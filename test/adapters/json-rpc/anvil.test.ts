import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { afterAll, beforeAll, beforeEach } from "vitest"
import * as EthersChainRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import { type ChainClient, ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Transaction from "../../../src/domain/evm/Transaction.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { startAnvil } from "../../../src/hosts/cli/dev/Anvil.js"
import { NodeProvider } from "../../../src/hosts/cli/support/NodeProvider.js"
import { chainRpcSuite } from "../../ports/ChainRpc.suite.js"
import { echo, echoCode, funded, minedReceipt, sign } from "../../support/ChainScript.js"
import { acme } from "../../support/NamedBy.js"
import { use } from "../../support/Use.js"

const anvil = use(startAnvil)
let exchanges: Array<ReadonlyArray<string>> = []

const runtime = ManagedRuntime.make(
  EthersChainRpc.layer({
    egress: { allowLoopback: true },
    onExchange: ({ methods }) => exchanges.push(methods)
  })
)

beforeAll(async () => {
  const provider = new NodeProvider(anvil.url, anvil.chainId, { staticNetwork: true })
  await provider.send("anvil_setCode", [echo, echoCode])
  provider.destroy()
})
afterAll(async () => {
  await runtime.dispose()
})
beforeEach(() => {
  exchanges = []
})

chainRpcSuite("anvil over HTTP", {
  run: (effect) => runtime.runPromise(effect),
  url: () => anvil.url,
  deadUrl: "http://127.0.0.1:1/",
  chainId: 31_337n
})

const on = <A, E>(use: (chain: ChainClient) => Effect.Effect<A, E>, path = ""): Promise<A> =>
  runtime.runPromise(
    Effect.flatMap(ChainRpc, (rpc) => Effect.flatMap(rpc.connect(`${anvil.url}${path}`, acme), use))
  )

const together = { concurrency: "unbounded" } as const

describe("HTTP round trips to anvil", () => {
  it("concurrent reads leave in one HTTP request", () =>
    // A different URL: a node whose fees have not been read yet.
    on(
      (chain) =>
        Effect.gen(function* () {
          yield* Effect.all(
            [
              chain.block("latest"),
              chain.fees,
              chain.balance(funded),
              chain.code(echo),
              chain.transactionCount(funded, "pending"),
              chain.call({ to: echo, data: Hex.empty }),
              chain.simulate([{ from: funded, to: echo, data: Hex.empty }]),
              chain.logs({ fromBlock: "latest", toBlock: "latest", topics: [] }),
              Effect.flatMap(Effect.succeed(echo), (address) => chain.balance(address))
            ],
            together
          )
          expect(exchanges.length).toBe(1)
          expect(exchanges[0]?.length).toBe(11)
        }),
      "/?first"
    ))

  it("600 calls of one moment leave in three requests, and every answer finds its asker", () =>
    on((chain) =>
      Effect.gen(function* () {
        const data = Array.from({ length: 600 }, (_, n) =>
          Hex.unsafe(`0x${(n + 1).toString(16).padStart(64, "0")}`)
        )
        const answers = yield* Effect.forEach(data, (each) => chain.call({ to: echo, data: each }), together)
        expect(answers.map((answer) => answer.data)).toEqual(data)
        expect(exchanges.map(({ length }) => length)).toEqual([257, 257, 86])
      })
    ))

  it("a sent transaction leaves in its own request, next to concurrent reads", () =>
    on((chain) =>
      Effect.gen(function* () {
        const nonce = yield* chain.transactionCount(funded, "pending")
        const raw = yield* sign(chain, { nonce, data: Hex.unsafe(`0x${"01".repeat(32)}`) })
        exchanges = []
        yield* Effect.all([chain.balance(funded), chain.sendRawTransaction(raw)], together)
        expect(exchanges).toContainEqual(["eth_sendRawTransaction"])
        expect(exchanges).toContainEqual(["eth_getBalance"])
        expect(exchanges.length).toBe(2)
        expect((yield* minedReceipt(chain, Transaction.hash(raw))).success).toBe(true)
      })
    ))
})

describe("calls to anvil", () => {
  it("creation code runs without an address, and leaves the runtime code", () =>
    on((chain) =>
      Effect.gen(function* () {
        // codecopy(0, 12, 2); return(0, 2), behind it the runtime code.
        const data = Hex.unsafe("0x6002600c60003960026000f360ff")
        expect(yield* chain.call({ data })).toEqual({ success: true, data: "0x60ff" })
        expect(yield* chain.call({ data: Hex.unsafe("0x63deadbeef6000526004601cfd") })).toEqual({
          success: false,
          data: "0xdeadbeef"
        })
      })
    ))

  it("a call that halts the EVM fails without data", () =>
    on((chain) =>
      Effect.gen(function* () {
        for (const data of ["0xfe", "0x01", "0xef", "0x600456", "0x5b600056"])
          expect(yield* chain.call({ data: Hex.unsafe(data), gas: 200_000n })).toMatchObject({
            success: false,
            data: "0x"
          })
      })
    ))

  it("a call with too little gas to begin with is rejected", () =>
    on((chain) =>
      Effect.map(Effect.flip(chain.call({ to: echo, data: Hex.empty, gas: 100n })), (error) =>
        expect(error.reason).toBe("rejected")
      )
    ))

  it("overrides give an account code, balance and storage for the call", () =>
    on((chain) =>
      Effect.gen(function* () {
        const address = Address.unsafe(`0x${"7e".repeat(20)}`)
        const slot = Hex.unsafe32(`0x${"00".repeat(31)}05`)
        const value = Hex.unsafe32(`0x${"ab".repeat(32)}`)
        // mstore(0, sload(5)); mstore(32, selfbalance()); return(0, 64)
        const code = Hex.unsafe("0x6005546000524760205260406000f3")
        const call = { to: address, data: Hex.empty }
        const overrides = new Map([[address, { code, balance: 77n, stateDiff: { [slot]: value } }]])
        expect(yield* chain.call(call, overrides)).toEqual({
          success: true,
          data: `${value}${77n.toString(16).padStart(64, "0")}`
        })
        expect(yield* chain.call(call)).toEqual({ success: true, data: "0x" })
      })
    ))

  it("a simulated call that its sender cannot pay rejects the simulation", () =>
    on((chain) =>
      Effect.map(
        Effect.flip(chain.simulate([{ from: echo, to: funded, data: Hex.empty, value: 10n ** 30n }])),
        (error) => expect(error).toMatchObject({ reason: "rejected", rpcCode: expect.any(Number) })
      )
    ))

  it("simulated calls see what the ones before them did", () =>
    on((chain) =>
      Effect.gen(function* () {
        const poor = Address.unsafe(`0x${"90".repeat(20)}`)
        const results = yield* chain.simulate([
          { from: funded, to: poor, data: Hex.empty, value: 5n },
          { from: poor, to: funded, data: Hex.empty, value: 5n }
        ])
        expect(results.map(({ success }) => success)).toEqual([true, true])
      })
    ))
})
