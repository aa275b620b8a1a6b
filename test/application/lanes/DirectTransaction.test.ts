import { describe, expect } from "@effect/vitest"
import { Context, Effect, Redacted, Result } from "effect"
import * as DirectTransaction from "../../../src/application/lanes/DirectTransaction.js"
import * as LaneSlot from "../../../src/application/lanes/LaneSlot.js"
import * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import { WakeUps } from "../../../src/application/lanes/requests/WakeUps.js"
import { TransactionMonitor } from "../../../src/application/lanes/TransactionMonitor.js"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import { type Signer, SignerError } from "../../../src/application/ports/Signers.js"
import { CurrentRequest } from "../../../src/application/request/CurrentRequest.js"
import * as Transaction from "../../../src/domain/evm/Transaction.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import * as Parties from "../../support/Parties.js"
import { test } from "../../support/Test.js"

const signer = Parties.signer(1)
const lane = { chainId: Make.chainId, signer: signer.address }

const prepared: DirectTransaction.Prepared = {
  to: Make.address(7),
  data: Hex.unsafe("0x1234"),
  value: 5n,
  gasLimit: 1_000n,
  prices: { maxFeePerGas: 100n, maxPriorityFeePerGas: 10n, legacy: false },
  l1Fee: 3n,
  returned: Hex.unsafe("0xabcd")
}
const cost = 1_000n * 100n + 3n + 5n

interface Tells {
  readonly latest?: bigint
  readonly pending?: bigint
  readonly balance?: bigint
  /** Why it does not tell how many transactions there are. */
  readonly fails?: ChainRpcError["reason"]
  readonly signer?: Signer
  /** How often another transaction has the nonce, before one is mined. */
  takenNonces?: number
  readonly trust?: "caller" | "operator"
}

/** A request with one transaction, which is mined as soon as it is watched. */
const world = (tells: Tells = {}) =>
  Effect.gen(function* () {
    const journals = yield* InMemory.makeJournal
    const journal = Context.get(journals, TransactionJournal)
    const requests = Context.get(journals, RequestJournal)
    const told: Array<string> = []
    const tell = (text: string) => Effect.sync(() => void told.push(text))
    const node = yield* Monitor.node("http://node")
    const { balance = 10n ** 18n, latest = 0n, pending = 0n, trust = "caller" } = tells
    const down = (reason: ChainRpcError["reason"]) =>
      Effect.fail(new ChainRpcError({ reason, origin: "http://node", message: "down" }))
    const chain = {
      ...node.chain,
      origin: "http://node",
      transactionCount: (_: unknown, tag: unknown) =>
        tells.fails !== undefined ? down(tells.fails) : Effect.succeed(tag === "pending" ? pending : latest),
      balance: () => Effect.succeed(balance)
    }
    const settle = ({ nonce, versions }: TransactionRecord) =>
      Effect.suspend(() => {
        const left = tells.takenNonces ?? 0
        tells.takenNonces = left - 1
        if (left > 0) return Effect.asVoid(journal.recordExternalUse(lane, nonce, []))
        const txHash = versions.at(-1)?.txHash ?? Make.word(0)
        const place = { txHash, blockNumber: 1n, blockHash: Make.word(0xb1), success: true }
        return Effect.asVoid(journal.settle({ ...lane, ...place, nonce, confirmations: 1 }, [], true))
      })
    let isAccepted = false
    const context = journals.pipe(
      Context.add(NonceManager.NonceManager, NonceManager.make(journal)),
      Context.add(LaneSlot.LaneSlots, {
        arrive: () => 0,
        take: (_: unknown, effect: (drainedTo: bigint) => Effect.Effect<unknown>) => effect(0n),
        waiting: () => 0
      } as unknown as LaneSlot.LaneSlots),
      Context.add(TransactionMonitor, {
        watch: ({ record }: { readonly record: TransactionRecord }) =>
          Effect.andThen(tell(`watched ${record.nonce}`), Effect.orDie(settle(record))),
        useNode: () => Effect.void,
        receiptOf: (_: unknown, txHash: Hex.Bytes32) => Effect.succeed(Monitor.receiptOf(txHash))
      } as unknown as TransactionMonitor),
      Context.add(WakeUps, {
        until: (_: string, look: Effect.Effect<unknown>) =>
          Effect.flatMap(look, (found) => (found === null ? Effect.never : Effect.succeed(found)))
      } as unknown as WakeUps),
      Context.add(CurrentRequest, {
        body: "{}",
        idempotency: null,
        resumed: false,
        accepted: () => isAccepted,
        relies: [],
        accept: (acceptance: object) =>
          Effect.suspend(() => {
            isAccepted = true
            return Effect.orDie(requests.acceptOps({ ...Make.acceptance("r", [], { lane }), ...acceptance }))
          }),
        work: Effect.void,
        rest: Effect.void,
        conclude: tell("concluded")
      } as unknown as CurrentRequest["Service"])
    )
    const run = (prepare: Effect.Effect<DirectTransaction.Prepared> = Effect.succeed(prepared)) =>
      Effect.provide(
        DirectTransaction.run({
          caller: Parties.caller(),
          endpoint: "transactSigner",
          connection: { chain, profile: Monitor.profile, trust, rpc: Redacted.make("http://node") },
          signer: tells.signer ?? signer,
          access: Monitor.callers,
          prepare
        }),
        context
      )
    const signed = Effect.map(journal.openOf(lane), (open) => open.map(({ nonce }) => nonce))
    /** Why it does not go, what was signed of it, and what was told. */
    const failed = Effect.gen(function* () {
      const failure = yield* Effect.flip(run())
      return { failure, signed: yield* signed, told }
    })
    return { failed, journal, run, told }
  })

const nothing = { signed: [], told: [] }

test("a transaction of the EOA itself is signed as it was prepared, under the next nonce, and told with what it returned", function* () {
  const { journal, run } = yield* world({ latest: 5n, pending: 7n })
  const { receipt, returned } = yield* run()
  expect(returned).toBe("0xabcd")
  const record = yield* journal.findTransaction(Make.alice, Make.chainId, receipt.txHash)
  expect(record).toMatchObject({ nonce: 7n, direct: "r", ops: [], state: "settled" })
  const { to, data, value, gasLimit, prices } = prepared
  const signed = Result.getOrThrow(Transaction.parse(record?.versions[0]?.raw ?? Hex.empty))
  expect(signed.transaction).toMatchObject({ to, data, value, gasLimit, ...prices })
})

describe("a transaction of the EOA itself", () => {
  test("has the nonce of the latest block where more wait, the next where another's has used its own, and goes once at a time", function* () {
    for (const [tells, watched] of [
      [{ latest: 5n, pending: 4n }, [5n]],
      [{ latest: 5n, pending: 5n + 1_024n }, [5n + 1_024n]],
      [{ takenNonces: 2 }, [0n, 1n, 2n]]
    ] as const) {
      const { run, told } = yield* world({ ...tells })
      yield* run()
      expect(told).toEqual([...watched.map((nonce) => `watched ${nonce}`), "concluded"])
    }
  })

  test("keeps no more of what its call returns than 64 KiB", function* () {
    for (const [bytes, isKept] of [
      [65_536, true],
      [65_537, false]
    ] as const) {
      const returned = Hex.unsafe(`0x${"11".repeat(bytes)}`)
      const mined = yield* (yield* world()).run(Effect.succeed({ ...prepared, returned }))
      expect(mined.returned).toBe(isKept ? returned : null)
    }
  })

  test("is not signed under a nonce that cannot be: its lane would wait for it for ever", function* () {
    const most = 2n ** 64n - 2n
    for (const [latest, pending] of [
      [5n, 5n + 1_025n],
      [most + 1n, 0n],
      [most - 1n, most + 1n]
    ] as const)
      for (const trust of ["caller", "operator"] as const) {
        const { failed } = yield* world({ latest, pending, trust })
        const details = [{ path: trust === "caller" ? "settings.rpc" : "" }]
        expect(yield* failed).toMatchObject({ failure: { code: "node_refused", details }, ...nothing })
      }
  })

  test("does not go without the wei for it: what it may cost, its value and its data together", function* () {
    const enough = yield* world({ balance: cost })
    yield* enough.run()
    expect(yield* (yield* world({ balance: cost - 1n })).failed).toMatchObject({
      failure: { code: "insufficient_funds", details: [{ path: "settings.signer", missing: "1" }] },
      ...nothing
    })
  })

  test("ends when its key refuses to sign, and not when its key or its node cannot be asked now", function* () {
    const keyThat = (reason: "refused" | "unavailable") => ({
      signer: { ...signer, sign: () => Effect.fail(new SignerError({ reason, message: "no" })) }
    })
    for (const [tells, code, told] of [
      [keyThat("refused"), "signer_unavailable", ["concluded"]],
      [keyThat("unavailable"), "signer_unavailable", []],
      [{ trust: "caller", fails: "unreachable" }, "invalid_rpc", []],
      [{ trust: "caller", fails: "unavailable" }, "node_unavailable", []],
      [{ trust: "operator", fails: "unreachable" }, "node_unavailable", []],
      [{ trust: "operator", fails: "unavailable" }, "node_unavailable", []]
    ] as const)
      expect(yield* (yield* world({ ...tells })).failed).toMatchObject({
        failure: { code },
        told,
        signed: []
      })
  })
})
