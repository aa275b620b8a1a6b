import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as References from "effect/References"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import { Lru } from "../../domain/primitives/Lru.js"
import type { Act, AuditLog } from "../ports/AuditLog.js"
import type { ChainClient, ChainRpc, ChainRpcError } from "../ports/chain/ChainRpc.js"
import { JournalError } from "../ports/journal/JournalError.js"
import type { Journals } from "../ports/journal/Journals.js"
import { LaneJournal } from "../ports/journal/LaneJournal.js"
import { OpJournal } from "../ports/journal/OpJournal.js"
import { RecoveryJournal } from "../ports/journal/RecoveryJournal.js"
import { RemoteOpJournal } from "../ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import { type Lane, type LaneKey, laneKey, type TransactionRecord } from "../ports/journal/Transactions.js"
import type { Signer, SignerError, Signers, SystemSigners } from "../ports/Signers.js"
import type { AccountId } from "../ports/Tenants.js"
import type { Health } from "./Health.js"
import * as Metrics from "./Metrics.js"
import * as Span from "./Span.js"

/**
 * Wraps ports: adds a span per call, their metrics, and every signature and transaction to the audit log. A host wraps
 * its adapters.
 */

const labelsOf = (chainId: bigint, signer: Address) => ({ chain: chainId.toString(), signer })

/** The request of this fiber, from its log annotations. */
const request: Effect.Effect<{ readonly requestId: string | null; readonly by: string | null }> = Effect.map(
  References.CurrentLogAnnotations,
  (annotations) => {
    const text = (name: string): string | null => {
      const value = annotations[name]
      return typeof value === "string" ? value : null
    }
    return { requestId: text("requestId"), by: text("endpoint") }
  }
)

type Recording = AuditLog["Service"]["record"]

const audit = (record: Recording, act: Omit<Act, "requestId" | "by">) =>
  Effect.flatMap(request, (found) => record({ ...act, ...found }))

/** Digests that signers have not answered yet, with the time, Unix milliseconds. */
const awaited = new Set<{ readonly signer: Address; readonly since: number }>()

export const signatures = (): ReadonlySet<{ readonly signer: Address; readonly since: number }> => awaited

const signer = (own: Signer, accountId: AccountId | null, record: Recording): Signer => ({
  ...own,
  sign: (digest) =>
    Effect.gen(function* () {
      const began = yield* Clock.currentTimeMillis
      // Recorded before signing: an entry without a signature does no harm, a signature without an entry does. A log
      // that fails is a failing store, not a failing key, so accepted work waits for it.
      yield* Effect.orDie(
        audit(record, {
          kind: "signature",
          accountId,
          signer: own.address,
          hash: digest,
          chainId: null,
          nonce: null
        })
      )
      const asked = { signer: own.address, since: began }
      awaited.add(asked)
      const signature = yield* own.sign(digest).pipe(
        Effect.tapError(({ reason }) =>
          Metrics.count(Metrics.signatureErrors, { signer: own.address, reason })
        ),
        Effect.ensuring(Effect.sync(() => void awaited.delete(asked)))
      )
      const millis = (yield* Clock.currentTimeMillis) - began
      yield* Metrics.note(Metrics.signatureSeconds, { signer: own.address }, millis / 1_000)
      return signature
    }).pipe(Span.named("Signer.sign", { kind: "client", attributes: { signer: own.address } }))
})

/** The accounts' keys: each signature is measured, and recorded in the audit log before it is made. */
export const signers = (port: Signers["Service"], record: Recording): Signers["Service"] => ({
  resolve: (accountId, ref) =>
    Effect.map(port.resolve(accountId, ref), (own) => signer(own, accountId, record)).pipe(
      Span.named("Signers.resolve")
    )
})

/** The operator's own keys likewise. */
export const systemSigners = (
  port: SystemSigners["Service"],
  record: Recording
): SystemSigners["Service"] => {
  const of = (key: Effect.Effect<Signer, SignerError>) => Effect.map(key, (own) => signer(own, null, record))
  const { deployer, serviceEoa, sponsor, treasury } = port
  return {
    deployer: of(deployer),
    serviceEoa: of(serviceEoa),
    sponsor: of(sponsor),
    treasury: of(treasury)
  }
}

/** The same port; `watched` wraps each of its effects, and of those that its methods return, with its name. */
const watchedBy = <Port extends object>(
  port: Port,
  watched: (name: string, call: Effect.Effect<unknown, unknown>) => Effect.Effect<unknown, unknown>
): Port =>
  Object.fromEntries(
    Object.entries(port).map(([name, member]: [string, unknown]): ReadonlyArray<unknown> => {
      if (Effect.isEffect(member)) return [name, watched(name, member as Effect.Effect<unknown, unknown>)]
      if (typeof member !== "function") return [name, member]
      return [name, (...args: ReadonlyArray<unknown>) => watched(name, member(...args))]
    })
  )

/**
 * The nodes. The host is a label only for the operator's own: callers choose the others. Reads of `own` addresses'
 * balances set the gauge.
 */
export const chainRpc = (
  port: ChainRpc["Service"],
  own: Pick<Health, "isOwn" | "submits">
): ChainRpc["Service"] => {
  const known = new WeakMap<ChainClient, ChainClient>()
  const watch = (client: ChainClient, node: string): ChainClient => {
    const watched = watchedBy(client, (method, call) =>
      call.pipe(
        Effect.tapError((error) =>
          Metrics.count(Metrics.rpcErrors, { node, reason: (error as ChainRpcError).reason })
        ),
        Span.named(`ChainRpc.${method}`, { kind: "client", attributes: { node } })
      )
    )
    return {
      ...watched,
      balance: (address) =>
        Effect.tap(watched.balance(address), (wei) =>
          own.isOwn(address)
            ? Effect.flatMap(client.chainId, (chainId) =>
                Effect.andThen(
                  own.submits(chainId, address),
                  Metrics.note(Metrics.eoaBalance, labelsOf(chainId, address), Number(wei))
                )
              ).pipe(Effect.ignore)
            : Effect.void
        )
    }
  }
  return {
    connect: (...where) =>
      Effect.map(port.connect(...where), (client) => {
        const made = known.get(client) ?? watch(client, where.includes("operator") ? client.origin : "caller")
        known.set(client, made)
        return made
      })
  }
}

const nameOf = (it: Lane & { readonly nonce: bigint }): string => `${laneKey(it)}:${it.nonce}`

/** Most open transactions whose account is remembered. */
const mostKnown = 100_000

/** A port of the journal with a span per call; failed calls are counted. */
const spanned = <Port extends object>(port: Port): Port =>
  watchedBy(port, (name, call) =>
    call.pipe(
      Effect.tapError(() => Metric.update(Metrics.journalErrors, 1)),
      Span.named(`Journal.${name}`)
    )
  )

/** Records every transaction in the audit log before its bytes are stored. */
const transactions = (
  methods: TransactionJournal["Service"],
  record: Recording
): TransactionJournal["Service"] => {
  const accounts = new Lru<string, AccountId>(mostKnown)
  const note = (lane: Lane & { readonly nonce: bigint }, accountId: AccountId) =>
    accounts.set(nameOf(lane), accountId)
  const noteAll = (records: ReadonlyArray<Pick<TransactionRecord, "access" | "nonce" | keyof Lane>>) =>
    Effect.sync(() => {
      for (const each of records) note(each, each.access.accountId)
    })
  /** The entry stays when the journal refuses the bytes: they were signed, but never left the process. */
  const storing = <A>(
    signed: Lane & { readonly nonce: bigint; readonly txHash: Bytes32 },
    store: Effect.Effect<A, JournalError>,
    isStored: (result: A) => boolean
  ) =>
    Effect.gen(function* () {
      const { chainId, nonce, signer, txHash } = signed
      const accountId = accounts.get(nameOf(signed)) ?? null
      yield* Effect.mapError(
        audit(record, { kind: "transaction", accountId, signer, hash: txHash, chainId, nonce }),
        ({ message }) => new JournalError({ message: `not stored: ${message}` })
      )
      const result = yield* store
      if (isStored(result)) yield* Metrics.count(Metrics.transactionsSigned, { chain: chainId.toString() })
      return result
    })
  return {
    ...methods,
    open: Effect.tap(methods.open, noteAll),
    openOf: (lane) => Effect.tap(methods.openOf(lane), noteAll),
    record: (recording) =>
      Effect.andThen(
        noteAll([recording]),
        storing(recording, methods.record(recording), ({ _tag }) => _tag === "recorded")
      ),
    replace: (replacement) => storing(replacement, methods.replace(replacement), (isStored) => isStored),
    settle: (mined, ops, final) =>
      Effect.tap(methods.settle(mined, ops, final), () =>
        Effect.andThen(
          Metrics.count(Metrics.transactionsMined, {
            chain: mined.chainId.toString(),
            outcome: mined.success ? "success" : "reverted"
          }),
          Metrics.note(Metrics.bundleOps, { chain: mined.chainId.toString() }, ops.length)
        )
      ),
    recordExternalUse: (lane, nonce, ops) =>
      Effect.tap(methods.recordExternalUse(lane, nonce, ops), () =>
        Metrics.count(Metrics.transactionsMined, { chain: lane.chainId.toString(), outcome: "foreign" })
      )
  }
}

/** The journal's ports, observed. */
export const journal = (ports: Context.Context<Journals>, record: Recording): Context.Context<Journals> =>
  Context.empty().pipe(
    Context.add(RequestJournal, spanned(Context.get(ports, RequestJournal))),
    Context.add(OpJournal, spanned(Context.get(ports, OpJournal))),
    Context.add(LaneJournal, spanned(Context.get(ports, LaneJournal))),
    Context.add(TransactionJournal, transactions(spanned(Context.get(ports, TransactionJournal)), record)),
    Context.add(RecoveryJournal, spanned(Context.get(ports, RecoveryJournal))),
    Context.add(RemoteOpJournal, spanned(Context.get(ports, RemoteOpJournal)))
  )

/** Reads the lanes' open transactions into the metrics; idle lanes are set to 0. */
export const lanes = (
  port: Pick<TransactionJournal["Service"], "open">
): Effect.Effect<Effect.Effect<void>> =>
  Effect.sync(() => {
    const known = new Map<LaneKey, Lane>()
    return Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const open = (yield* port.open).filter(({ state }) => state === "signed")
      for (const { chainId, signer } of open) known.set(laneKey({ chainId, signer }), { chainId, signer })
      for (const lane of known.values()) {
        const own = open.filter(({ chainId, signer }) => chainId === lane.chainId && signer === lane.signer)
        const oldest = own.reduce((least, { signedAt }) => Math.min(least, signedAt), now)
        yield* Metrics.note(Metrics.lanePending, labelsOf(lane.chainId, lane.signer), own.length)
        yield* Metrics.note(
          Metrics.laneOldestSeconds,
          labelsOf(lane.chainId, lane.signer),
          (now - oldest) / 1_000
        )
      }
    }).pipe(Effect.catch(() => Metric.update(Metrics.journalErrors, 1)))
  })
