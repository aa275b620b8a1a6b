import { describe, expect } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import { SigningKey } from "ethers"
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
import * as Secp256k1 from "../../../src/domain/crypto/Secp256k1.js"
import * as Transaction from "../../../src/domain/evm/Transaction.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import { law } from "../../support/Law.js"
import * as Monitor from "../../support/lanes/Monitor.js"

const key = new SigningKey(Make.word(1))
const signer: Signer = {
  address: Secp256k1.addressOf(key.publicKey.slice(2)),
  publicKey: key.publicKey.slice(2),
  type: "PRIVATE_KEY",
  sign: (digest) => Effect.sync(() => Hex.unsafe(key.sign(digest).serialized))
}
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
          Effect.zipRight(tell(`watched ${record.nonce}`), Effect.orDie(settle(record))),
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
            return Effect.orDie(requests.accept({ ...Make.acceptance("r", [], { lane }), ...acceptance }))
          }),
        work: Effect.void,
        rest: Effect.void,
        conclude: tell("concluded")
      } as unknown as CurrentRequest["Type"])
    )
    const { access, requestId } = { access: Monitor.callers, requestId: "r" }
    const principal = { accountId: Make.alice, name: "Alice", tier: "pro", scopes: new Set(), paused: false }
    const run = (prepare: Effect.Effect<DirectTransaction.Prepared> = Effect.succeed(prepared)) =>
      Effect.provide(
        DirectTransaction.run({
          caller: { principal, requestId } as never,
          endpoint: "transactSigner",
          connection: { chain, profile: Monitor.profile, trust, rpc: Redacted.make("http://node") },
          signer: tells.signer ?? signer,
          access,
          prepare
        }),
        context
      )
    const signed = Effect.map(journal.openOf(lane), (open) => open.map(({ nonce }) => nonce))
    /** Why it does not go. */
    const failure = Effect.flip(run())
    return { failure, journal, run, signed, told }
  })

describe("a transaction of the EOA itself", () => {
  law("is signed as it was prepared, under the next nonce, and told with what it returned", function* () {
    const { journal, run } = yield* world({ latest: 5n, pending: 7n })
    const { receipt, returned } = yield* run()
    expect(returned).toBe("0xabcd")
    const record = yield* journal.findTransaction(Make.alice, Make.chainId, receipt.txHash)
    expect(record).toMatchObject({ nonce: 7n, direct: "r", ops: [], state: "settled" })
    const raw = record?.versions[0]?.raw ?? Hex.empty
    expect(Either.getOrThrow(Transaction.parse(raw)).transaction).toMatchObject({
      to: prepared.to,
      data: prepared.data,
      value: 5n,
      gasLimit: 1_000n,
      ...prepared.prices
    })
  })

  law("has the nonce of the latest block where the node tells a lower one of what waits", function* () {
    const { run, told } = yield* world({ latest: 5n, pending: 4n })
    yield* run()
    expect(told).toEqual(["watched 5", "concluded"])
  })

  law(
    "goes again under the next nonce when somebody else's has used its own, and once at a time",
    function* () {
      const { run, told } = yield* world({ takenNonces: 2 })
      yield* run()
      expect(told).toEqual(["watched 0", "watched 1", "watched 2", "concluded"])
    }
  )

  law("keeps no more of what its call returns than 64 KiB", function* () {
    for (const [bytes, isKept] of [
      [65_536, true],
      [65_537, false]
    ] as const) {
      const returned = Hex.unsafe(`0x${"11".repeat(bytes)}`)
      const { run } = yield* world()
      const mined = yield* run(Effect.succeed({ ...prepared, returned }))
      expect(mined.returned).toBe(isKept ? returned : null)
    }
  })

  law("is not signed under a nonce that cannot be: its lane would wait for it for ever", function* () {
    const most = 2n ** 64n - 2n
    for (const [latest, pending] of [
      [5n, 5n + 1_025n],
      [most + 1n, 0n],
      [most - 1n, most + 1n]
    ] as const)
      for (const trust of ["caller", "operator"] as const) {
        const { failure, signed, told } = yield* world({ latest, pending, trust })
        expect(yield* failure).toMatchObject({
          code: "node_refused",
          details: [{ path: trust === "caller" ? "settings.rpc" : "" }]
        })
        expect(yield* signed).toEqual([])
        expect(told).toEqual([])
      }
    const deep = yield* world({ latest: 5n, pending: 5n + 1_024n })
    yield* deep.run()
    expect(deep.told).toEqual([`watched ${5n + 1_024n}`, "concluded"])
  })

  law("does not go without the wei for it: what it may cost, its value and its data together", function* () {
    const enough = yield* world({ balance: cost })
    yield* enough.run()
    const { failure, signed, told } = yield* world({ balance: cost - 1n })
    expect(yield* failure).toMatchObject({
      code: "insufficient_funds",
      details: [{ path: "settings.signer", missing: "1" }]
    })
    expect(yield* signed).toEqual([])
    expect(told).toEqual([])
  })

  law(
    "ends when its key refuses to sign, and not when its key or its node cannot be asked now",
    function* () {
      const refusing = Effect.fail(new SignerError({ reason: "refused", message: "no" }))
      const keyless = yield* world({ signer: { ...signer, sign: () => refusing } })
      expect(yield* keyless.failure).toMatchObject({ code: "signer_unavailable" })
      expect(keyless.told).toEqual(["concluded"])
      const away = Effect.fail(new SignerError({ reason: "unavailable", message: "no answer" }))
      const silent = yield* world({ signer: { ...signer, sign: () => away } })
      expect(yield* silent.failure).toMatchObject({ code: "signer_unavailable" })
      expect(silent.told).toEqual([])
      for (const [trust, fails, code] of [
        ["caller", "unreachable", "invalid_rpc"],
        ["caller", "unavailable", "node_unavailable"],
        ["operator", "unreachable", "node_unavailable"],
        ["operator", "unavailable", "node_unavailable"]
      ] as const) {
        const { failure, signed, told } = yield* world({ trust, fails })
        expect(yield* failure).toMatchObject({ code })
        expect(told).toEqual([])
        expect(yield* signed).toEqual([])
      }
    }
  )
})
