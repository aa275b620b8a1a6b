import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Journal, type JournalError } from "../../../application/ports/journal/Journal.js"
import type { AllocationRequest, AllocationResult } from "../../../application/ports/journal/Lanes.js"
import type { LeaseRequest } from "../../../application/ports/journal/Requests.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import * as Acceptances from "./JournalAcceptances.js"
import * as Records from "./JournalRecords.js"
import * as State from "./JournalState.js"
import { answer, done, fits, outOfRange, refuse, step } from "./JournalStep.js"
import * as RemoteSubmissions from "./RemoteSubmissions.js"

type Service = Context.Tag.Service<typeof Journal>

const lease =
  (state: State.State) =>
  (request: LeaseRequest): Effect.Effect<ReadonlyArray<bigint> | null, JournalError> =>
    step<ReadonlyArray<bigint> | null>((now) => {
      const { count, entryPoint, holder, keys, ttlMillis } = request
      if (!fits(192, [keys.from, keys.to])) return refuse(outOfRange)
      const leases = state.leases.get(State.spaceName(request)) ?? new Map()
      for (const [key, { expiresAt }] of leases) if (expiresAt <= now) leases.delete(key)
      const taken = new Set(leases.keys())
      for (const { intent } of State.under(state, request))
        if (intent.space.entryPoint === entryPoint) taken.add(intent.nonceKey)
      const free: Array<bigint> = []
      for (let key = keys.from; key <= keys.to && free.length < count; key++)
        if (!taken.has(key)) free.push(key)
      if (free.length !== count) return answer(null)
      for (const key of free) leases.set(key, { holder, expiresAt: now + ttlMillis })
      state.leases.set(State.spaceName(request), leases)
      return answer(free)
    })

const release =
  (state: State.State) =>
  (holder: string): Effect.Effect<void, JournalError> =>
    step(() => {
      for (const [space, leases] of state.leases) {
        for (const [key, owned] of leases) if (owned.holder === holder) leases.delete(key)
        if (leases.size === 0) state.leases.delete(space)
      }
      return done
    })

const refuseElements =
  (state: State.State): Service["refuse"] =>
  (requestId, failed) =>
    step(() => {
      const request = state.requests.get(requestId)
      if (request === undefined) return refuse("the request was not accepted")
      for (const element of failed) request.failed.set(element.index, element)
      return done
    })

const finish =
  (state: State.State): Service["finish"] =>
  (requestId, outcome) =>
    step(() => {
      const request = state.requests.get(requestId)
      if (request === undefined) return refuse("the request was not accepted")
      if (request.state !== "open") return answer(true)
      const unmined = request.direct.some((transaction) => transaction.state === "signed")
      if (unmined || request.ops.some(State.isUnderWay)) return answer(false)
      request.state = "final"
      request.outcome = outcome
      return answer(true)
    })

const request =
  (state: State.State): Service["request"] =>
  (requestId) =>
    step(() => {
      const found = state.requests.get(requestId)
      return answer(found === undefined || found.state === "forgotten" ? null : Records.requestRecord(found))
    })

const requestOf =
  (state: State.State): Service["requestOf"] =>
  (accountId, endpoint, key) =>
    step(() => {
      const requestId = state.byKey.get(State.keyName(accountId, endpoint, key))
      const found = requestId === undefined ? undefined : state.requests.get(requestId)
      if (!found?.idempotency) return answer(null)
      return answer({ requestId: found.requestId, bodyHash: found.idempotency.bodyHash })
    })

const unfinished = (state: State.State): Service["unfinished"] =>
  step(() =>
    answer([...state.requests.values()].filter((it) => it.state === "open").map((it) => it.requestId))
  )

const forget =
  (state: State.State): Service["forget"] =>
  (before) =>
    step(() => {
      for (const it of state.requests.values()) {
        if (it.state !== "final" || it.acceptedAt >= before) continue
        if (it.ops.some((op) => State.isUnderWay(op) || State.isCarried(op))) continue
        if (it.direct.some(State.isOpen)) continue
        if (it.idempotency !== null)
          state.byKey.delete(State.keyName(it.accountId, it.endpoint, it.idempotency.key))
        it.state = "forgotten"
        it.body = ""
        it.outcome = null
        it.idempotency = null
      }
      return done
    })

const identify =
  (state: State.State): Service["identify"] =>
  (requestId, ops) =>
    step(() => {
      const noted = new Map<State.Op, Bytes32>()
      for (const { index, userOpHash } of ops) {
        const [op] = State.elements(state, requestId, [index])
        if (op === undefined) return refuse("only an accepted op without a hash can be given one")
        if ((noted.get(op) ?? op.userOpHash) === userOpHash) continue
        if (noted.has(op) || op.userOpHash !== null || op.state !== "accepted")
          return refuse("only an accepted op without a hash can be given one")
        const { authority, chainId } = op.intent.space
        const isSame = ({ intent: { space } }: State.Op) =>
          space.authority === authority && space.chainId === chainId
        if (
          State.alive(state, { authority, chainId }, userOpHash) !== undefined ||
          [...noted].some(([other, hash]) => hash === userOpHash && isSame(other))
        )
          return refuse("another op has the same hash")
        noted.set(op, userOpHash)
      }
      for (const [op, hash] of noted) State.addHash(state, op, hash)
      return done
    })

const giveUp =
  (state: State.State, keep: "none" | "signed"): Service["abandon"] =>
  (requestId, indexes) =>
    step(() => {
      const ops = State.elements(state, requestId, indexes)
      if (ops.some((op) => op.state !== "accepted"))
        return refuse("an op that may be on its way, or has landed, cannot be given up")
      for (const op of ops)
        if (keep === "none" || !State.isHolding(state, op)) State.moveOp(state, op, "abandoned", null)
      return done
    })

/** Why the request may not have a transaction of its own on that chain; null: it may. */
const notDirect = (state: State.State, chainId: bigint, requestId: string): string | null => {
  const request = state.requests.get(requestId)
  if (request?.chainId !== chainId) return "the request was not accepted on this chain"
  if (request.state !== "open") return "the request is final"
  return request.direct.some((it) => State.isOpen(it) || it.state === "settled")
    ? "the request has a signed transaction already"
    : null
}

const allocate =
  (state: State.State) =>
  (request: AllocationRequest): Effect.Effect<AllocationResult, JournalError> =>
    step<AllocationResult>(() => {
      const { access, balance, chainId, chainNonce, direct, maxCost, signer } = request
      if (!fits(256, [chainId, maxCost, balance]) || !fits(64, [chainNonce, request.drainedTo]))
        return refuse(outOfRange)
      if (direct !== null && request.ops.length > 0)
        return refuse("a request's own transaction carries no ops")
      if (new Set(request.ops.map(State.elementName)).size !== request.ops.length)
        return refuse("a transaction carries an op only once")
      const ops = request.ops
        .flatMap((ref) => state.byElement.get(State.elementName(ref)) ?? [])
        .filter(({ intent: { space } }) => space.chainId === chainId && space.authority === signer)
      if (ops.length !== request.ops.length || ops.some((op) => op.state !== "accepted"))
        return refuse("an op is not accepted, or is of another chain or authority")
      if (new Set(ops.map((op) => op.intent.space.entryPoint)).size > 1)
        return refuse("a transaction carries ops of one EntryPoint")
      const wrong = direct === null ? null : notDirect(state, chainId, direct)
      if (wrong !== null) return refuse(wrong)
      const lane = State.laneOf(state, request)
      const { nonce, reserved } = State.next(lane, request)
      if (!fits(64, [nonce])) return refuse(outOfRange)
      if (!State.admits(lane, { direct, ops }, request.drainedTo)) return answer({ _tag: "otherRoute" })
      if (reserved + maxCost > balance) return answer({ _tag: "insufficientFunds", reserved })
      const transaction: State.Transaction = {
        chainId,
        signer,
        nonce,
        state: "allocated",
        access,
        maxCost,
        ops,
        direct,
        versions: new Map(),
        order: 0,
        signedAt: 0,
        mined: null
      }
      State.forgetUnsigned(lane, nonce)
      for (const op of ops) op.transactions.push(transaction)
      if (direct !== null) state.requests.get(direct)?.direct.push(transaction)
      state.lanes.set(State.laneName(request), lane.set(nonce, transaction))
      return answer({ _tag: "allocated", nonce })
    })

const unallocate =
  (state: State.State): Service["unallocate"] =>
  (lane, nonce) =>
    step(() => {
      const transaction = State.find(state, lane, nonce)
      if (transaction?.state !== "allocated" && transaction?.state !== "free")
        return refuse("only a nonce that is handed out and not signed can be handed back")
      transaction.state = "free"
      transaction.ops = []
      transaction.direct = null
      return done
    })

/** Why the first bytes of a nonce may not be stored; null: they may. */
const notSigned = (state: State.State, transaction: State.Transaction, drainedTo: bigint): string | null => {
  const { chainId, direct, ops } = transaction
  if (ops.some((op) => op.state === "abandoned")) return "the transaction carries an op that was given up"
  if (ops.some((op) => op.state === "sent"))
    return "the transaction carries an op that is sent some other way"
  if (ops.some((op) => op.userOpHash === null)) return "the transaction carries an op without a hash"
  if (!State.admits(State.laneOf(state, transaction), transaction, drainedTo))
    return "a transaction of another route was signed since the allocation"
  return direct === null ? null : notDirect(state, chainId, direct)
}

const recordSigned =
  (state: State.State): Service["recordSigned"] =>
  (signed) =>
    step((now) => {
      const { addedCost, chainId, maxFeePerGas, maxPriorityFeePerGas, raw, txHash } = signed
      if (!fits(256, [addedCost, maxFeePerGas, maxPriorityFeePerGas])) return refuse(outOfRange)
      const transaction = State.find(state, signed, signed.nonce)
      if (transaction?.state !== "allocated" && transaction?.state !== "signed")
        return refuse("only for a nonce that is handed out and open can bytes be stored")
      if (transaction.state === "allocated") {
        const wrong = notSigned(state, transaction, signed.drainedTo)
        if (wrong !== null) return refuse(wrong)
        transaction.state = "signed"
        transaction.order = state.signed++
      }
      if (transaction.versions.has(txHash)) return done
      transaction.versions.set(txHash, { txHash, raw, maxFeePerGas, maxPriorityFeePerGas })
      transaction.maxCost += addedCost
      transaction.signedAt = now
      const name = State.hashName(chainId, txHash)
      state.byTxHash.set(name, [...(state.byTxHash.get(name) ?? []), transaction])
      for (const op of transaction.ops.filter(State.isUnderWay)) State.moveOp(state, op, "sent", txHash)
      return done
    })

/** The mined transaction is signed again. */
const withdraw = (state: State.State, transaction: State.Transaction): void => {
  transaction.state = "signed"
  transaction.mined = null
  const newest = [...transaction.versions.keys()].at(-1) ?? null
  for (const op of transaction.ops) if (op.state !== "abandoned") State.moveOp(state, op, "sent", newest)
  State.reopen(state, State.concerned(transaction))
}

const settle =
  (state: State.State): Service["settle"] =>
  ({ blockHash, blockNumber, nonce, success, txHash, ...lane }, outcomes, final) =>
    step(() => {
      if (!fits(64, [blockNumber])) return refuse(outOfRange)
      const transaction = State.find(state, lane, nonce)
      const isSettled = transaction?.state === "settled" && transaction.mined?.txHash === txHash
      const mayMine =
        transaction !== undefined && State.isOpen(transaction) && transaction.versions.has(txHash)
      if (transaction === undefined || (!isSettled && !mayMine))
        return refuse("only the one transaction that was signed for a nonce can settle it")
      if (isSettled) return answer(State.concerned(transaction))
      const { mined } = transaction
      if (mined !== null && (mined.txHash !== txHash || mined.blockHash !== blockHash))
        withdraw(state, transaction)
      transaction.state = final ? "settled" : "mined"
      transaction.mined = { txHash, success, blockNumber, blockHash }
      State.settleOps(state, transaction.ops, outcomes)
      if (final) State.letGo(state, transaction)
      return answer(State.concerned(transaction))
    })

const finalise =
  (state: State.State): Service["finalise"] =>
  (lane, nonce) =>
    step(() => {
      const transaction = State.find(state, lane, nonce)
      if (transaction?.state !== "mined" && transaction?.state !== "settled")
        return refuse("only a mined transaction reaches settled depth")
      if (transaction.state === "mined") {
        transaction.state = "settled"
        State.letGo(state, transaction)
      }
      return answer(State.concerned(transaction))
    })

const unsettle =
  (state: State.State): Service["unsettle"] =>
  (lane, nonce) =>
    step(() => {
      const transaction = State.find(state, lane, nonce)
      if (transaction?.state !== "mined" && transaction?.state !== "signed")
        return refuse("only a mined transaction that is not settled vanishes")
      if (transaction.state === "mined") withdraw(state, transaction)
      return answer(State.concerned(transaction))
    })

const recordExternalUse =
  (state: State.State): Service["recordExternalUse"] =>
  (lane, nonce) =>
    step(() => {
      const transaction = State.find(state, lane, nonce)
      if (transaction?.state !== "signed" && transaction?.state !== "foreign")
        return refuse("only a signed transaction that is not mined loses its nonce")
      if (transaction.state === "signed") {
        transaction.state = "foreign"
        State.letGo(state, transaction)
      }
      return answer(State.concerned(transaction))
    })

const findTransaction =
  (state: State.State): Service["findTransaction"] =>
  (accountId, chainId, txHash) =>
    step(() => {
      const all = state.byTxHash.get(State.hashName(chainId, txHash)) ?? []
      const found = all.find((it) => it.access.accountId === accountId)
      return answer(found === undefined ? null : Records.transactionRecord(found))
    })

const transactionOf =
  (state: State.State): Service["transactionOf"] =>
  ({ chainId, signer }, txHash) =>
    step(() => {
      const all = state.byTxHash.get(State.hashName(chainId, txHash)) ?? []
      const found = all.find((it) => it.signer === signer)
      return answer(found === undefined ? null : Records.transactionRecord(found))
    })

const findOp =
  (state: State.State): Service["findOp"] =>
  (accountId, chainId, userOpHash) =>
    step(() => {
      const ops = state.byHash.get(State.hashName(chainId, userOpHash)) ?? []
      const own = ops.filter((op) => op.accountId === accountId)
      const found = own.findLast((op) => op.state !== "abandoned") ?? own.at(-1)
      return answer(found === undefined ? null : Records.opRecord(found))
    })

/** A journal that ends with the process: for tests, and for embedders that need no durability. */
export const make: Effect.Effect<Service> = Effect.sync(() => {
  const state = State.make()
  return {
    lease: lease(state),
    release: release(state),
    accept: Acceptances.accept(state),
    refuse: refuseElements(state),
    finish: finish(state),
    request: request(state),
    requestOf: requestOf(state),
    unfinished: unfinished(state),
    forget: forget(state),
    identify: identify(state),
    abandon: giveUp(state, "none"),
    abandonUnsigned: giveUp(state, "signed"),
    allocate: allocate(state),
    unallocate: unallocate(state),
    recordSigned: recordSigned(state),
    settle: settle(state),
    finalise: finalise(state),
    unsettle: unsettle(state),
    recordExternalUse: recordExternalUse(state),
    submitRemotely: RemoteSubmissions.submitRemotely(state),
    recordInclusions: RemoteSubmissions.recordInclusions(state),
    revertInclusions: RemoteSubmissions.revertInclusions(state),
    finaliseInclusions: RemoteSubmissions.finaliseInclusions(state),
    revokeRemote: RemoteSubmissions.revokeRemote(state),
    remoteSubmissions: step(() => answer(Records.handovers(state.requests.values()))),
    open: step(() => answer(Records.openRecords(state.lanes.values()))),
    openOf: (lane) => step(() => answer(Records.openRecords([State.laneOf(state, lane)]))),
    findTransaction: findTransaction(state),
    transactionOf: transactionOf(state),
    findOp: findOp(state)
  }
})

export const layer: Layer.Layer<Journal> = Layer.effect(Journal, make)
