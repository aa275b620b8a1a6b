import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as BundledOps from "../../../domain/erc4337/BundledOps.js"
import type * as EntryPoint from "../../../domain/erc4337/EntryPoint.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as EoaNonces from "../../chain/EoaNonces.js"
import * as EoaTransactions from "../../chain/EoaTransactions.js"
import * as Inclusions from "../../chain/Inclusions.js"
import { Requests } from "../../lanes/requests/Requests.js"
import { WakeUps } from "../../lanes/requests/WakeUps.js"
import { type ChainClient, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import { RecoveryJournal } from "../../ports/journal/RecoveryJournal.js"
import { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import * as Delays from "../../request/Delays.js"
import type { Failure } from "../../request/Failure.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import * as Obstacles from "../Obstacles.js"
import { callerOf, type Requirements as Work } from "../TakeUp.js"
import * as Matching from "./Matching.js"
import * as OpenWork from "./OpenWork.js"

/**
 * Holds the chain against a journal that may be older than it, before accepted work of a lane is taken up: after a
 * backup was restored, or a standby that lagged was promoted, the chain has transactions of which the journal does not
 * know. What they did of the accepted work is recorded; what they may have done is held until the operator decides.
 */
export interface Recovery {
  /** Looks at the lane unless all of its work that nothing here works on was looked at. */
  readonly examine: (
    lane: Lane,
    requestIds: ReadonlyArray<string>
  ) => Effect.Effect<void, Obstacles.Obstacle, Needs>
  /** Whether the chain was held against the request. */
  readonly isExamined: (requestId: string) => boolean
  /** Whether the request may expire: what the chain has of it is known, or no node has told for so long. */
  readonly mayExpire: (lane: Lane, requestId: string, patienceMillis: number) => Effect.Effect<boolean>
  /** Forgets what is not open any more: should it come back, the journal has become older. */
  readonly keep: (open: ReadonlySet<string>) => void
}

export type Needs = Work | RecoveryJournal | RemoteOpJournal | RequestJournal | TransactionJournal

/** A node that refuses to show what it has so often, and shows nothing meanwhile, has what depends on it held. */
const mostRefusals = 3
/** Wallets that one question for logs names. */
const walletsAtOnce = 200
/** Requests by whose nodes a lane is looked at, until one answers. */
const mostNodes = 8

type Group = ReadonlyArray<OpenWork.OpenWork>

interface Op {
  readonly work: OpenWork.OpenWork
  readonly index: number
}
type Seen = Inclusions.Seen & { readonly userOpHash: Hex.Bytes32 }

const nameOf = ({ chainId, signer }: Lane): string => `${chainId}:${signer}`

const ofJournal = ({ message }: JournalError) => Obstacles.passing(message)
const ofNode = ({ message }: ChainRpcError) => Obstacles.passing(message)
/** What its node, or the operator's configuration, has against the request. */
const ofFailure = (failure: Failure) =>
  Delays.ofFailure(failure) === null ? Obstacles.of(failure.message) : Obstacles.passing(failure.message)
const isRefusal = (error: ChainRpcError | JournalError): boolean =>
  error instanceof ChainRpcError && (error.reason === "rejected" || error.reason === "unsupported")

const grouped = <A>(all: ReadonlyArray<A>, keyOf: (each: A) => unknown): ReadonlyArray<ReadonlyArray<A>> => {
  const groups = new Map<unknown, Array<A>>()
  for (const each of all) {
    const key = keyOf(each)
    const known = groups.get(key)
    if (known === undefined) groups.set(key, [each])
    else known.push(each)
  }
  return [...groups.values()]
}

/** Null: there is nothing of it to look for here; it cannot go on either, or is over. Fails when its node cannot be asked. */
const prepare = (requestId: string) =>
  Effect.gen(function* () {
    const record = yield* Effect.mapError((yield* RequestJournal).request(requestId), ofJournal)
    if (record === null || record.outcome !== null) return null
    const work = OpenWork.of(callerOf(record), record)
    return work === null ? null : yield* Effect.mapError(work, ofFailure)
  })

/** The nonces of the EOA as the first node that answers tells them; null: none of the requests names one. */
const noncesOf = (lane: Lane, requestIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    let failure: Obstacles.Obstacle | null = null
    for (const requestId of requestIds.slice(0, mostNodes)) {
      const prepared = yield* Effect.result(prepare(requestId))
      if (Result.isFailure(prepared)) failure = prepared.failure
      if (Result.isFailure(prepared) || prepared.success === null) continue
      const { chain, profile } = prepared.success.connection
      const told = yield* Effect.result(
        Effect.all(
          [chain.transactionCount(lane.signer, "latest"), chain.transactionCount(lane.signer, "pending")],
          { concurrency: "unbounded" }
        )
      )
      if (Result.isFailure(told)) failure = ofNode(told.failure)
      else {
        const [latest, pending] = told.success
        const nonces = { latest, next: BigInts.max(latest, pending) }
        if (EoaNonces.canBe(nonces)) return { ...nonces, isRemote: profile.remoteBundler !== null }
        failure = Obstacles.passing(`${chain.origin} gives a nonce of the EOA that cannot be`)
      }
    }
    return failure === null ? null : yield* failure
  })

/** Holds the requests; names them in the log. */
const hold = (lane: Lane, doubts: ReadonlyMap<string, string>) =>
  Effect.gen(function* () {
    const recovery = yield* RecoveryJournal
    for (const [requestId, why] of doubts)
      if (yield* recovery.hold(lane, requestId, why))
        yield* Effect.annotateLogs(
          Effect.logError(
            "an accepted request is held, since it may have been done already: decide with castellan requests release or castellan requests drop"
          ),
          { requestId, reason: why }
        )
  })

/** The ops of these wallets on the chain that are none of the journal's, and all nonces that their ops have used. */
const straysOf = (
  chain: ChainClient,
  { address, version }: { readonly address: Address; readonly version: EntryPoint.Version },
  lane: Lane,
  wallets: ReadonlyArray<Address>,
  since: number
) =>
  Effect.gen(function* () {
    const recovery = yield* RecoveryJournal
    const head = yield* chain.block("latest")
    const seen: Array<Seen> = []
    for (let from = 0; from < wallets.length; from += walletsAtOnce) {
      const some = wallets.slice(from, from + walletsAtOnce)
      for (const [userOpHash, each] of yield* Inclusions.ofWallets(
        chain,
        address,
        some,
        head?.number ?? 0n,
        since
      ))
        seen.push({ ...each, userOpHash })
    }
    const known = yield* recovery.known(
      lane.chainId,
      address,
      seen.map(({ userOpHash }) => userOpHash)
    )
    const unknown = seen.filter(({ userOpHash }) => !known.has(userOpHash))
    let isOurs = false
    // A transaction may carry hundreds of them.
    const strays = yield* Effect.forEach(
      grouped(unknown, ({ blockNumber, txHash }) => `${blockNumber} ${txHash}`),
      (carried) =>
        Effect.gen(function* () {
          const [first] = carried
          if (first === undefined) return []
          const [transaction, block] = yield* Effect.all(
            [chain.transaction(first.txHash), chain.block(first.blockNumber)],
            { concurrency: "unbounded" }
          )
          if (transaction?.from === lane.signer) isOurs = true
          const at = (block?.timestamp ?? Number.MAX_SAFE_INTEGER / 1_000) * 1_000
          // The hash is proof: what is no op of the bundle has another one.
          const calls = new Map(
            BundledOps.read(version, transaction?.data ?? Hex.empty).map((op) => [
              UserOperation.hash(version, address, lane.chainId, op),
              op.callData
            ])
          )
          return carried.map(
            (each): Matching.Stray<Seen> => ({
              id: each,
              sender: each.sender,
              nonce: each.nonce,
              at,
              callData: calls.get(each.userOpHash) ?? null
            })
          )
        })
    )
    return { isOurs, strays: strays.flat(), used: seen, head: head?.number ?? 0n }
  })

/** The ops are the elements' own: they are recorded as landed, and watched until they are for good. */
const adoptOps = (lane: Lane, adopted: Matching.Matched<Op, Seen>["adopted"], head: bigint) =>
  Effect.gen(function* () {
    const recovery = yield* RecoveryJournal
    const remoteOps = yield* RemoteOpJournal
    const wakeUps = yield* WakeUps
    for (const own of grouped(adopted, ({ wanted }) => wanted.work)) {
      const [first] = own
      if (first === undefined) continue
      const { access, connection, record } = first.wanted.work
      yield* recovery.identifyAnew(
        lane,
        record.requestId,
        own.map(({ stray, wanted }) => ({ index: wanted.index, userOpHash: stray.userOpHash }))
      )
      yield* remoteOps.recordInclusions(
        lane.signer,
        lane.chainId,
        own.map(({ stray }) => {
          const confirmations = Inclusions.confirmationsOf(stray.blockNumber, head)
          const final = confirmations >= connection.profile.settledDepth
          return { ...stray, confirmations, landedAs: stray.userOpHash, final }
        }),
        access
      )
      yield* wakeUps.notify([record.requestId])
      yield* Effect.annotateLogs(
        Effect.logWarning(
          "ops of an accepted request are on the chain that the journal did not know of: they are done"
        ),
        {
          requestId: record.requestId,
          txHashes: [...new Set(own.map(({ stray }) => stray.txHash))].join(", ")
        }
      )
    }
  })

const doubtOf = ({ stray, wanted, why }: Matching.Doubt<Op, Seen>): string =>
  why === "otherNonce"
    ? `element ${wanted.index}: wallet ${stray.sender} has made the same call in transaction ${stray.txHash}, under a nonce that is not the element's, and the journal does not know of it`
    : `element ${wanted.index}: wallet ${stray.sender} has an op in transaction ${stray.txHash} that the journal does not know of and the node does not show`

/** Ops of one EntryPoint that one node is asked for. */
const examineOps = (lane: Lane, group: Group) =>
  Effect.gen(function* () {
    const [first] = group
    if (first?.entryPoint == null) return
    const recovery = yield* RecoveryJournal
    const wanted = group.flatMap((work) =>
      work.ops.map((op) => ({ ...op, id: { work, index: op.id } satisfies Op }))
    )
    if (wanted.length === 0) return
    const wallets = [...new Set(wanted.map(({ wallet }) => wallet))]
    const since = Math.min(...group.map(({ record }) => record.acceptedAt))
    const { head, isOurs, strays, used } = yield* straysOf(
      first.connection.chain,
      first.entryPoint,
      lane,
      wallets,
      since
    )
    if (strays.length === 0) return
    const { adopted, doubts } = Matching.ops(wanted, strays)
    yield* adoptOps(lane, adopted, head)
    yield* hold(lane, new Map(doubts.map((doubt) => [doubt.wanted.work.record.requestId, doubtOf(doubt)])))
    if (adopted.length + doubts.length === 0 && !isOurs) return
    // The journal is the older one: of the other ops, too, bytes may be on their way. They keep the nonces that are left.
    const done = new Set(adopted.map(({ wanted: { index, work } }) => `${index} ${work.record.requestId}`))
    for (const { ops, record } of group) {
      const open = ops.filter(
        ({ id, nonce, wallet }) =>
          nonce !== null &&
          !done.has(`${id} ${record.requestId}`) &&
          !used.some(
            (each) =>
              each.sender === wallet && Nonce.keyOf(each.nonce) === Nonce.keyOf(nonce) && each.nonce >= nonce
          )
      )
      if (open.length > 0)
        yield* recovery.expose(
          lane,
          record.requestId,
          open.map(({ id }) => id)
        )
    }
  })

/** Nonces of which the node is asked for the transactions, whether or not it tells how many there were before. */
const fewNonces = 64n

/** The key's mined transactions that the journal does not know and that may be of requests that were accepted then or later. */
const unknownOf = (chain: ChainClient, lane: Lane, from: bigint | null, latest: bigint, accepted: number) =>
  Effect.gen(function* () {
    const transactionJournal = yield* TransactionJournal
    const head = yield* chain.block("latest")
    const block = yield* Inclusions.olderThan(chain, head?.number ?? 0n, accepted)
    const before = yield* Effect.option(chain.transactionCount(lane.signer, block))
    const told = Option.isSome(before) ? BigInts.max(from ?? 0n, before.value) : from
    const low = told ?? 0n
    const known = new Set(
      (yield* transactionJournal.transactionsBetween(lane, low, latest)).map(({ nonce }) => nonce)
    )
    if (Option.isNone(before) && (told === null || latest - low > fewNonces)) {
      const all = yield* EoaTransactions.since(chain, lane.signer, accepted - Inclusions.skewMillis)
      return all.filter(({ nonce }) => nonce >= low && !known.has(nonce))
    }
    const nonces: Array<bigint> = []
    for (let nonce = low; nonce < latest; nonce += 1n) if (!known.has(nonce)) nonces.push(nonce)
    return yield* EoaTransactions.read(chain, lane.signer, nonces)
  })

/** Transactions of the key itself that one node is asked for. */
const examineDirects = (lane: Lane, group: Group, from: bigint | null, latest: bigint) =>
  Effect.gen(function* () {
    const [first] = group
    if (first === undefined) return
    const transactionJournal = yield* TransactionJournal
    const accepted = Math.min(...group.map(({ record }) => record.acceptedAt))
    const transactions = yield* unknownOf(first.connection.chain, lane, from, latest, accepted)
    const wanted = group.flatMap((work) => (work.direct === null ? [] : { ...work.direct, work }))
    for (const { transaction, wanted: own } of Matching.directs(wanted, transactions)) {
      const { requestId } = own.work.record
      yield* transactionJournal.adopt({
        ...lane,
        nonce: transaction.nonce,
        requestId,
        access: own.work.access,
        transaction
      })
      yield* Effect.annotateLogs(
        Effect.logWarning(
          "the transaction of an accepted request is on the chain and the journal did not know of it: it is done"
        ),
        { requestId, txHash: transaction.txHash }
      )
    }
  })

export const make = (): Recovery => {
  const examined = new Set<string>()
  /** By lane: the nonce that the chain has to have used before what its pool held at the first look is known. */
  const targets = new Map<string, bigint>()
  const firstSeen = new Map<string, number>()
  const refusals = new Map<string, number>()

  /** What a node refuses to show for long keeps all that it might show held. */
  const held = (
    lane: Lane,
    what: string,
    group: Group,
    look: Effect.Effect<void, ChainRpcError | JournalError, Needs>
  ) => {
    // By node: that another one answers says nothing of this one.
    const nodes = new Set(group.map(({ connection }) => Redacted.value(connection.rpc)))
    const name = [nameOf(lane), what, ...nodes].join(" ")
    return Effect.matchEffect(look, {
      onSuccess: () => Effect.sync(() => void refusals.delete(name)),
      onFailure: (error) => {
        const count = (refusals.get(name) ?? 0) + 1
        if (!isRefusal(error) || count < mostRefusals) {
          if (isRefusal(error)) refusals.set(name, count)
          return Effect.fail(Obstacles.passing(error.message))
        }
        refusals.delete(name)
        const why = `what its key and its wallets have done since the journal's last entry cannot be read: ${error.message}`
        return Effect.mapError(
          hold(lane, new Map(group.map(({ record }) => [record.requestId, why]))),
          ofJournal
        )
      }
    })
  }

  /** What a node does not show keeps those that named it, and nobody else. */
  const lookAt = (silent: Map<string, Obstacles.Obstacle>, ...args: Parameters<typeof held>) =>
    Effect.catch(held(...args), (obstacle) =>
      Effect.sync(() => {
        for (const { record } of args[2]) silent.set(record.requestId, obstacle)
      })
    )

  /** Fails while the pool holds transactions of the key that the journal does not know. */
  const awaitPool = (lane: Lane, { latest, next }: EoaNonces.EoaNonces) =>
    Effect.gen(function* () {
      const name = nameOf(lane)
      const target = targets.get(name)
      if (target === undefined) {
        const transactionJournal = yield* TransactionJournal
        const known = new Set(
          (yield* Effect.mapError(transactionJournal.transactionsBetween(lane, latest, next), ofJournal)).map(
            ({ nonce }) => nonce
          )
        )
        for (let nonce = latest; nonce < next; nonce += 1n)
          if (!known.has(nonce)) targets.set(name, nonce + 1n)
      }
      if (latest < (targets.get(name) ?? 0n))
        return yield* Obstacles.passing(
          "transactions of its key wait for a block that the journal does not know of: its accepted requests wait for them"
        )
    })

  /** Fails while the chain has used nonces of signed transactions, and it is not known whether that was theirs. */
  const awaitSigned = (lane: Lane, latest: bigint) =>
    Effect.gen(function* () {
      const transactionJournal = yield* TransactionJournal
      const signed = yield* Effect.mapError(transactionJournal.openOf(lane), ofJournal)
      if (!signed.some(({ nonce, state }) => state === "signed" && nonce < latest)) return
      targets.set(nameOf(lane), latest)
      return yield* Obstacles.passing(
        "the chain has used nonces of its signed transactions, and it is not known for good by what: its accepted requests wait for that"
      )
    })

  const look = (lane: Lane, requestIds: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const recovery = yield* RecoveryJournal
      const requests = yield* Requests
      const name = nameOf(lane)
      const nonces = yield* noncesOf(lane, requestIds)
      if (nonces === null) return requestIds
      const known = yield* Effect.mapError(recovery.knownTo(lane), ofJournal)
      const isBehind = known === null || nonces.next > known
      if (!isBehind && !nonces.isRemote) return requestIds
      yield* awaitPool(lane, nonces)
      // What lost its nonce would go on under another one, under which it may have been done already.
      if (isBehind) {
        yield* awaitSigned(lane, nonces.latest)
        // What this look adopts, and what others sign before a silent node has answered, shall not end it.
        yield* Effect.mapError(recovery.keepUnread(lane), ofJournal)
      }
      const open = (yield* Effect.mapError(recovery.openIn(lane), ofJournal)).filter(
        ({ requestId }) => !requests.isWorkedOn(requestId)
      )
      const works: Array<OpenWork.OpenWork> = []
      const silent = new Map<string, Obstacles.Obstacle>()
      for (const { requestId } of open) {
        const prepared = yield* Effect.result(prepare(requestId))
        if (Result.isFailure(prepared)) silent.set(requestId, prepared.failure)
        else if (prepared.success !== null) works.push(prepared.success)
      }
      for (const group of grouped(works, ({ connection }) => connection.chain)) {
        const withOps = group.filter(({ ops }) => ops.length > 0)
        for (const part of grouped(withOps, ({ entryPoint }) => entryPoint?.address))
          yield* lookAt(silent, lane, `ops ${part[0]?.entryPoint?.address}`, part, examineOps(lane, part))
        const directs = group.filter(({ direct }) => direct !== null)
        if (isBehind)
          yield* lookAt(silent, lane, "directs", directs, examineDirects(lane, directs, known, nonces.latest))
      }
      // A request whose own node is silent is looked at when that answers again: until then nothing is known for all.
      if (silent.size === 0) yield* Effect.mapError(recovery.explain(lane, nonces.latest), ofJournal)
      targets.delete(name)
      const told = requestIds.filter((requestId) => !silent.has(requestId))
      const [obstacle] = silent.values()
      return told.length === 0 && obstacle !== undefined ? yield* obstacle : told
    })

  return {
    examine: (lane, requestIds) =>
      Effect.gen(function* () {
        const left = requestIds.filter((requestId) => !examined.has(requestId))
        if (left.length === 0) return
        const name = nameOf(lane)
        if (!firstSeen.has(name)) firstSeen.set(name, yield* MonotonicTime.millis)
        for (const requestId of yield* look(lane, left)) examined.add(requestId)
        firstSeen.delete(name)
      }),
    isExamined: (requestId) => examined.has(requestId),
    mayExpire: (lane, requestId, patienceMillis) =>
      Effect.gen(function* () {
        if (examined.has(requestId)) return true
        const name = nameOf(lane)
        if (targets.has(name)) return false
        const now = yield* MonotonicTime.millis
        const since = firstSeen.get(name) ?? now
        firstSeen.set(name, since)
        return now - since >= patienceMillis
      }),
    keep: (open) => {
      for (const requestId of examined) if (!open.has(requestId)) examined.delete(requestId)
    }
  }
}
