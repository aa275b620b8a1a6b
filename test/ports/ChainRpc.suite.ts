import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type ChainClient, ChainRpc } from "../../src/application/ports/chain/ChainRpc.js"
import * as Transaction from "../../src/domain/evm/Transaction.js"
import * as Address from "../../src/domain/primitives/Address.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import * as Uint from "../../src/domain/primitives/Uint.js"
import { echo, echoCode, funded, minedReceipt, sign } from "../support/ChainScript.js"
import { acme, bolt } from "../support/NamedBy.js"

/** A chain that mines each transaction on arrival, with `echo` at its address and `funded` funded. */
export interface Fixture {
  /** Runs with the port; its layer lives as long as the fixture. */
  readonly run: <A, E>(effect: Effect.Effect<A, E, ChainRpc>) => Promise<A>
  readonly url: () => string
  /** A URL without a listener. */
  readonly deadUrl: string
  readonly chainId: bigint
}

const nobody = Address.unsafe("0x00000000000000000000000000000000000000aa")
const unknownHash = Hex.unsafe32(`0x${"5e".repeat(32)}`)

const word = (value: bigint): Hex.Bytes32 => Hex.unsafe32(`0x${Uint.toWord(value)}`)

/** The laws of every way to reach a node. */
export const chainRpcSuite = (name: string, fixture: Fixture): void => {
  const on = <A, E>(use: (chain: ChainClient) => Effect.Effect<A, E>): Promise<A> =>
    fixture.run(Effect.flatMap(ChainRpc, (rpc) => Effect.flatMap(rpc.connect(fixture.url(), acme), use)))

  /** Sends a call to `echo` and returns its receipt. */
  const mine = (chain: ChainClient, data: Hex.Hex) =>
    Effect.gen(function* () {
      const nonce = yield* chain.transactionCount(funded, "pending")
      const raw = yield* sign(chain, { nonce, data })
      yield* chain.sendRawTransaction(raw)
      return { raw, receipt: yield* minedReceipt(chain, Transaction.hash(raw)), nonce }
    })

  describe(`${name}: connections`, () => {
    it("one URL has one client for each account that names it, and shows scheme and host only", () =>
      fixture.run(
        Effect.gen(function* () {
          const rpc = yield* ChainRpc
          const first = yield* rpc.connect(fixture.url(), acme)
          expect(yield* rpc.connect(fixture.url(), acme)).toBe(first)
          expect(yield* rpc.connect(fixture.url(), bolt)).not.toBe(first)
          expect(yield* rpc.connect(fixture.url(), "operator")).not.toBe(first)
          expect(first.origin).toBe(new URL(fixture.url()).origin)
        })
      ))

    it("a URL that is not http or https is invalid", () =>
      fixture.run(
        Effect.gen(function* () {
          const rpc = yield* ChainRpc
          for (const url of [
            "",
            "nonsense",
            "ftp://127.0.0.1",
            "file:///etc/passwd",
            "ws://127.0.0.1:1",
            "http://"
          ])
            for (const by of [acme, "operator"] as const)
              expect((yield* Effect.flip(rpc.connect(url, by))).reason).toBe("invalidUrl")
        })
      ))

    it("an absent node is unreachable", () =>
      fixture.run(
        Effect.gen(function* () {
          const rpc = yield* ChainRpc
          const chainId = Effect.flatMap(rpc.connect(fixture.deadUrl, acme), (chain) => chain.chainId)
          const error = yield* Effect.flip(chainId)
          expect(error.reason).toBe("unreachable")
          expect(error.origin).toBe(new URL(fixture.deadUrl).origin)
        })
      ))
  })

  describe(`${name}: the state of the chain`, () => {
    it("knows its chain id", () =>
      on((chain) => Effect.map(chain.chainId, (id) => expect(id).toBe(fixture.chainId))))

    it("returns a block by its number like the latest one, and null for a future one", () =>
      on((chain) =>
        Effect.gen(function* () {
          const latest = yield* chain.block("latest")
          if (latest === null) return yield* Effect.die(new Error("there is no latest block"))
          expect(yield* chain.block(latest.number)).toEqual(latest)
          expect(yield* chain.block(latest.number + 1_000n)).toBeNull()
          expect(latest.baseFeePerGas).not.toBeNull()
          expect(latest.hash).toMatch(/^0x[0-9a-f]{64}$/)
        })
      ))

    it("reads the fees of the next block", () =>
      on((chain) =>
        Effect.map(chain.fees, ({ nextBaseFee, tip }) => {
          expect(nextBaseFee).toBeGreaterThan(0n)
          expect(tip).toBeGreaterThanOrEqual(0n)
        })
      ))

    it("reads balance, code and nonce, also of unused accounts", () =>
      on((chain) =>
        Effect.gen(function* () {
          expect(yield* chain.balance(funded)).toBeGreaterThan(10n ** 18n)
          expect(yield* chain.code(echo)).toBe(echoCode)
          expect(yield* chain.balance(nobody)).toBe(0n)
          expect(yield* chain.code(nobody)).toBe("0x")
          expect(yield* chain.transactionCount(nobody, "latest")).toBe(0n)
        })
      ))
  })

  describe(`${name}: calls`, () => {
    it("a call returns the code's output", () =>
      on((chain) =>
        Effect.gen(function* () {
          const data = Hex.concat(word(7n), Hex.unsafe("0xabcd"))
          expect(yield* chain.call({ to: echo, data })).toEqual({ success: true, data })
        })
      ))

    it("a revert is a result with the revert data, also when empty", () =>
      on((chain) =>
        Effect.gen(function* () {
          const data = Hex.concat(word(0n), Hex.unsafe("0xdeadbeef"))
          expect(yield* chain.call({ from: funded, to: echo, data })).toEqual({ success: false, data })
          expect(yield* chain.call({ to: echo, data: Hex.empty })).toEqual({ success: false, data: "0x" })
        })
      ))

    it("a call that its sender cannot pay is rejected, not reverted", () =>
      on((chain) =>
        Effect.gen(function* () {
          const call = { from: nobody, to: echo, data: Hex.empty, value: 1n }
          const error = yield* Effect.flip(chain.call(call))
          expect(error.reason).toBe("rejected")
          expect(error.message.toLowerCase()).toContain("insufficient funds")
        })
      ))

    it("a call at an older block runs on its state; at a future block it is unavailable", () =>
      on((chain) =>
        Effect.gen(function* () {
          const heir = Address.unsafe(
            `0x${Uint.toWord(yield* chain.transactionCount(funded, "latest")).slice(26)}ee`
          )
          const data = word(3n)
          const call = { from: heir, to: echo, data, value: 5n }
          const nonce = yield* chain.transactionCount(funded, "pending")
          const raw = yield* sign(chain, { nonce, to: heir, value: 10n })
          yield* chain.sendRawTransaction(raw)
          const { blockNumber } = yield* minedReceipt(chain, Transaction.hash(raw))
          const good = { success: true, data }
          expect(yield* chain.call(call)).toEqual(good)
          expect(yield* chain.call(call, undefined, blockNumber)).toEqual(good)
          expect(yield* chain.call(call, new Map(), "latest")).toEqual(good)
          expect((yield* Effect.flip(chain.call(call, undefined, blockNumber - 1n))).reason).toBe("rejected")
          const free = { to: echo, data }
          expect(yield* chain.call(free, undefined, blockNumber - 1n)).toEqual(good)
          const early = yield* Effect.flip(chain.call(free, undefined, blockNumber + 1_000n))
          expect(early.reason).toBe("unavailable")
        })
      ))

    it("simulated calls return status, data, gas and logs of each", () =>
      on((chain) =>
        Effect.gen(function* () {
          const good = Hex.concat(word(9n), Hex.unsafe("0x01"))
          const bad = Hex.concat(word(0n), Hex.unsafe("0x02"))
          const [first, second, ...more] = yield* chain.simulate([
            { from: funded, to: echo, data: good },
            { from: funded, to: echo, data: bad }
          ])
          expect(more).toEqual([])
          expect(first).toMatchObject({ success: true, data: good })
          expect(first?.gasUsed).toBeGreaterThan(21_000n)
          expect(first?.logs).toEqual([{ address: echo, topics: [word(9n)], data: "0x01", logIndex: 0 }])
          expect(second).toMatchObject({ success: false, data: bad, logs: [] })
        })
      ))
  })

  describe(`${name}: transactions`, () => {
    it("a sent transaction is known, has its receipt, and takes the nonce", () =>
      on((chain) =>
        Effect.gen(function* () {
          const data = Hex.concat(word(11n), Hex.unsafe("0xc0ffee"))
          const { nonce, raw, receipt } = yield* mine(chain, data)
          expect(receipt).toMatchObject({
            txHash: Transaction.hash(raw),
            success: true,
            from: funded,
            logs: [{ address: echo, topics: [word(11n)], data: "0xc0ffee", logIndex: 0 }]
          })
          expect(receipt.cumulativeGasUsed).toBeGreaterThanOrEqual(receipt.gasUsed)
          expect(receipt.effectiveGasPrice).toBeGreaterThan(0n)
          expect((yield* chain.block(receipt.blockNumber))?.hash).toBe(receipt.blockHash)
          expect((yield* chain.transaction(receipt.txHash))?.blockNumber).toBe(receipt.blockNumber)
          expect(yield* chain.transactionCount(funded, "latest")).toBe(nonce + 1n)
        })
      ))

    it("a transaction reads as signed, waiting and mined", () =>
      on((chain) =>
        Effect.gen(function* () {
          const nonce = yield* chain.transactionCount(funded, "pending")
          const fields = {
            to: echo,
            data: Hex.concat(word(12n), Hex.unsafe("0xab")),
            value: 3n,
            gasLimit: 123_456n,
            maxFeePerGas: 50_000_000_000n,
            maxPriorityFeePerGas: 7n
          }
          const later = yield* sign(chain, { nonce: nonce + 1n, ...fields })
          yield* chain.sendRawTransaction(later)
          const txHash = Transaction.hash(later)
          const told = { txHash, from: funded, nonce: nonce + 1n, ...fields }
          expect(yield* chain.transaction(txHash)).toEqual({ ...told, blockNumber: null })
          yield* chain.sendRawTransaction(yield* sign(chain, { nonce }))
          const { blockNumber } = yield* minedReceipt(chain, txHash)
          expect(yield* chain.transaction(txHash)).toEqual({ ...told, blockNumber })
        })
      ))

    it("a reverted transaction is mined, took its nonce, and left no log", () =>
      on((chain) =>
        Effect.gen(function* () {
          const { receipt } = yield* mine(chain, word(0n))
          expect(receipt.success).toBe(false)
          expect(receipt.logs).toEqual([])
        })
      ))

    it("an unsent transaction is unknown and has no receipt", () =>
      on((chain) =>
        Effect.gen(function* () {
          expect(yield* chain.receipt(unknownHash)).toBeNull()
          expect(yield* chain.transaction(unknownHash)).toBeNull()
        })
      ))

    it("a transaction ahead of its turn waits, known and without a receipt, until its predecessor comes", () =>
      on((chain) =>
        Effect.gen(function* () {
          const nonce = yield* chain.transactionCount(funded, "pending")
          const later = yield* sign(chain, { nonce: nonce + 1n, data: word(1n) })
          yield* chain.sendRawTransaction(later)
          expect(yield* chain.transaction(Transaction.hash(later))).toMatchObject({
            from: funded,
            blockNumber: null
          })
          expect(yield* chain.receipt(Transaction.hash(later))).toBeNull()
          yield* chain.sendRawTransaction(yield* sign(chain, { nonce, data: word(1n) }))
          const receipt = yield* minedReceipt(chain, Transaction.hash(later))
          expect(receipt.success).toBe(true)
        })
      ))

    it("malformed bytes, a used nonce and a foreign chain are rejected with the node's words", () =>
      on((chain) =>
        Effect.gen(function* () {
          const nonce = yield* chain.transactionCount(funded, "latest")
          for (const raw of [
            Hex.unsafe("0x02c0"),
            yield* sign(chain, { nonce: nonce - 1n }),
            yield* sign(chain, { nonce, chainId: fixture.chainId + 1n })
          ]) {
            const error = yield* Effect.flip(chain.sendRawTransaction(raw))
            expect(error.reason).toBe("rejected")
            expect(error.rpcCode).toBeTypeOf("number")
            expect(error.message).not.toBe("")
          }
          expect(yield* chain.transactionCount(funded, "latest")).toBe(nonce)
        })
      ))
  })

  describe(`${name}: logs`, () => {
    it("are found by address, topics and blocks", () =>
      on((chain) =>
        Effect.gen(function* () {
          const topic = word(0xfeedn)
          const { receipt: first } = yield* mine(chain, Hex.concat(topic, Hex.unsafe("0x01")))
          const { receipt: second } = yield* mine(chain, Hex.concat(topic, Hex.unsafe("0x02")))
          const range = { fromBlock: first.blockNumber, toBlock: "latest" } as const
          const found = yield* chain.logs({ ...range, topics: [topic] })
          expect(found.map(({ data, txHash }) => [data, txHash])).toEqual([
            ["0x01", first.txHash],
            ["0x02", second.txHash]
          ])
          const counts = yield* Effect.forEach(
            [
              { ...range, topics: [topic], address: [echo] },
              { ...range, topics: [[topic, word(1n)]], address: [nobody, echo] },
              { ...range, topics: [null] },
              { ...range, topics: [topic], address: [nobody] },
              { ...range, topics: [word(0xbeefn)] },
              { ...range, topics: [topic, topic] },
              { ...range, toBlock: first.blockNumber, topics: [topic] }
            ],
            (filter) => Effect.map(chain.logs(filter), (logs) => logs.length)
          )
          expect(counts).toEqual([2, 2, 2, 0, 0, 0, 1])
        })
      ))

    it("logs of one block are found by its hash, and each block names its parent", () =>
      on((chain) =>
        Effect.gen(function* () {
          const topic = word(0xfadedn)
          yield* mine(chain, Hex.concat(topic, Hex.unsafe("0x01")))
          const { receipt } = yield* mine(chain, Hex.concat(topic, Hex.unsafe("0x02")))
          yield* mine(chain, Hex.concat(topic, Hex.unsafe("0x03")))
          const found = yield* chain.logsOf(receipt.blockHash, { topics: [topic], address: [echo] })
          expect(found).toMatchObject([{ data: "0x02", blockNumber: receipt.blockNumber }])
          expect(yield* chain.logsOf(receipt.blockHash, { topics: [topic], address: [nobody] })).toEqual([])
          const header = yield* chain.header(receipt.blockNumber)
          const before = yield* chain.header(receipt.blockNumber - 1n)
          expect(header).toMatchObject({ hash: receipt.blockHash, parentHash: before?.hash })
          expect((yield* chain.header("latest"))?.number).toBeGreaterThan(receipt.blockNumber)
          expect(yield* chain.header(10n ** 9n)).toBeNull()
        })
      ))
  })
}
