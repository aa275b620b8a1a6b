import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type Acceptance,
  type AcceptanceResult,
  type AllocationRequest,
  type AllocationResult,
  Journal,
  JournalError,
  type Lane,
  type LeaseRequest,
  type OpRecord
} from "../../application/ports/Journal.js"
import * as Uint from "../../domain/evm/Uint.js"
import * as State from "./JournalState.js"

const fits = (bits: number, values: ReadonlyArray<bigint>): boolean =>
  values.every((value) => value >= 0n && value <= Uint.max(bits))

const outOfRange = "an integer does not fit its field"

/** Why the call contradicts what the journal holds, or the answer. Nothing has changed when it is a `Refusal`. */
type Answer<A> = Refusal | { readonly value: A }
interface Refusal {
  readonly refused: string
}
const refuse = (refused: string): Refusal => ({ refused })
const answer = <A>(value: A): Answer<A> => ({ value })
const done: Answer<void> = { value: undefined }

/** Each method runs without interruption by others: one synchronous step at one time of the clock. */
const step = <A>(run: (now: number) => Answer<A>): Effect.Effect<A, JournalError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.suspend(() => {
      const result = run(now)
      return "refused" in result
        ? Effect.fail(new JournalError({ message: result.refused }))
        : Effect.succeed(result.value)
    })
  )

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

/** Why an acceptance contradicts itself or what the journal holds. */
const contradiction = (state: State.State, acceptance: Acceptance): string | null => {
  const { accountId, chainId, deployments, endpoint, funds, ops, requestId } = acceptance
  const inRange =
    fits(256, [chainId, ...ops.map((op) => op.reserve), ...funds.map((entry) => entry.available)]) &&
    fits(
      192,
      ops.map((op) => op.nonceKey)
    ) &&
    fits(
      64,
      ops.map((op) => op.sequence)
    )
  if (!inRange) return outOfRange
  if (new Set(ops.map((op) => op.index)).size !== ops.length)
    return "two ops of one acceptance have the same index"
  if (ops.some((op) => op.space.chainId !== chainId) || deployments.some((it) => it.chainId !== chainId))
    return "an acceptance is for one chain"
  const funded = new Set(funds.map((entry) => State.spaceName(entry.space)))
  if (ops.some((op) => !funded.has(State.spaceName(op.space)))) return "the funds of a wallet are missing"
  const known = state.requests.get(requestId)
  if (
    known !== undefined &&
    (known.accountId !== accountId || known.endpoint !== endpoint || known.chainId !== chainId)
  )
    return "the request was accepted as another one"
  if (ops.some((op) => state.byElement.has(State.elementName(requestId, op.index))))
    return "the request has an op of the same index already"
  return null
}

const takenNonce = (state: State.State, { ops }: Acceptance): Answer<number | null> => {
  const nonces = new Set<string>()
  const hashes = new Set<string>()
  let taken: number | null = null
  for (const op of ops) {
    const nonce = State.nonceName(op)
    if (nonces.has(nonce) || state.byNonce.has(nonce)) {
      taken = taken ?? op.index
      continue
    }
    nonces.add(nonce)
    if (op.userOpHash === null) continue
    if (hashes.has(op.userOpHash) || State.alive(state, op.space, op.userOpHash) !== undefined)
      return refuse("another op has the same hash")
    hashes.add(op.userOpHash)
  }
  return answer(taken)
}

/**
 * The deposit at one EntryPoint does not serve another one, the balance does. What is held at any EntryPoint is
 * counted against the funds at each of them: too much at worst, never too little.
 */
const overdrawn = (
  state: State.State,
  { funds, ops, requestId }: Acceptance
): Extract<AcceptanceResult, { readonly _tag: "reserved" }> | null => {
  const available = new Map(funds.map((entry) => [State.spaceName(entry.space), entry.available]))
  const fresh = new Map<string, bigint>()
  for (const { index, reserve, space } of ops) {
    const mine = (fresh.get(State.walletName(space)) ?? 0n) + reserve
    fresh.set(State.walletName(space), mine)
    let others = 0n
    let own = mine
    for (const op of State.under(state, space))
      if (op.requestId === requestId) own += op.intent.reserve
      else others += op.intent.reserve
    if (others > 0n && others + own > (available.get(State.spaceName(space)) ?? 0n))
      return { _tag: "reserved", index, reserved: others }
  }
  return null
}

/** The authorisations as they will be; a number: the intent that contradicts one that is alive. */
const authorised = (state: State.State, { deployments }: Acceptance): State.State["deployments"] | number => {
  const rows: State.State["deployments"] = new Map()
  for (const [position, intent] of deployments.entries()) {
    const name = State.deploymentName(intent)
    const row = rows.get(name) ?? state.deployments.get(name)
    const same = row?.configHash === intent.configHash
    if (row !== undefined && !same && row.deadline >= intent.chainTime) return position
    rows.set(name, {
      configHash: intent.configHash,
      deadline: row !== undefined && same ? Math.max(row.deadline, intent.deadline) : intent.deadline
    })
  }
  return rows
}

const accept =
  (state: State.State) =>
  (acceptance: Acceptance): Effect.Effect<AcceptanceResult, JournalError> =>
    step<AcceptanceResult>(() => {
      const { accountId, chainId, endpoint, ops, requestId } = acceptance
      const contradicts = contradiction(state, acceptance)
      if (contradicts !== null) return refuse(contradicts)
      const taken = takenNonce(state, acceptance)
      if ("refused" in taken) return taken
      if (taken.value !== null) return answer({ _tag: "nonceTaken", index: taken.value })
      const overdraft = overdrawn(state, acceptance)
      if (overdraft !== null) return answer(overdraft)
      const deployments = authorised(state, acceptance)
      if (typeof deployments === "number")
        return answer({ _tag: "otherConfiguration", deployment: deployments })
      state.requests.set(requestId, { accountId, endpoint, chainId })
      for (const [name, row] of deployments) state.deployments.set(name, row)
      for (const intent of ops) {
        State.addOp(state, {
          order: state.accepted++,
          accountId,
          requestId,
          intent,
          userOpHash: intent.userOpHash,
          state: "accepted",
          txHash: null,
          success: null,
          revertData: null,
          transactions: []
        })
        // From now on the op itself holds its key.
        state.leases.get(State.spaceName(intent.space))?.delete(intent.nonceKey)
      }
      return answer({ _tag: "accepted" })
    })

const identify =
  (state: State.State): Context.Tag.Service<typeof Journal>["identify"] =>
  (requestId, ops) =>
    step(() => {
      const noted = new Map<State.Op, (typeof ops)[number]["userOpHash"]>()
      for (const { index, userOpHash } of ops) {
        const op = state.byElement.get(State.elementName(requestId, index))
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

const abandon =
  (state: State.State) =>
  (requestId: string, indexes: ReadonlyArray<number>): Effect.Effect<void, JournalError> =>
    step(() => {
      const ops = new Set(
        indexes.flatMap((index) => state.byElement.get(State.elementName(requestId, index)) ?? [])
      )
      if ([...ops].some((op) => op.state !== "accepted"))
        return refuse("an op that may be on its way, or has landed, cannot be given up")
      for (const op of ops) State.abandonOp(state, op)
      return done
    })

const laneOf = (state: State.State, lane: Lane): Map<bigint, State.Transaction> =>
  state.lanes.get(State.laneName(lane)) ?? new Map()

const allocate =
  (state: State.State) =>
  (request: AllocationRequest): Effect.Effect<AllocationResult, JournalError> =>
    step<AllocationResult>(() => {
      const { balance, chainId, chainNonce, maxCost, requestId } = request
      if (!fits(256, [maxCost, balance]) || !fits(64, [chainNonce])) return refuse(outOfRange)
      if (new Set(request.ops).size !== request.ops.length)
        return refuse("two ops of one transaction have the same index")
      if (state.requests.get(requestId)?.chainId !== chainId)
        return refuse("the request was not accepted on this chain")
      const ops = request.ops.flatMap(
        (index) => state.byElement.get(State.elementName(requestId, index)) ?? []
      )
      if (
        ops.length !== request.ops.length ||
        ops.some((op) => !State.isUnderWay(op) || State.isSignedElsewhere(op, null))
      )
        return refuse("an op is not accepted, is final, or is in a signed transaction already")
      const lane = laneOf(state, request)
      const { nonce, reserved } = State.next(lane, request)
      if (!fits(64, [nonce])) return refuse(outOfRange)
      if (reserved + maxCost > balance) return answer({ _tag: "insufficientFunds", reserved })
      const transaction: State.Transaction = {
        nonce,
        state: "allocated",
        maxCost,
        ops,
        versions: new Map(),
        txHash: null
      }
      for (const op of ops) op.transactions = [...op.transactions, transaction]
      state.lanes.set(State.laneName(request), lane.set(nonce, transaction))
      return answer({ _tag: "allocated", nonce })
    })

const unallocate =
  (state: State.State) =>
  (lane: Lane, nonce: bigint): Effect.Effect<void, JournalError> =>
    step(() => {
      const transaction = laneOf(state, lane).get(nonce)
      if (transaction?.state !== "allocated" && transaction?.state !== "free")
        return refuse("only a nonce that is handed out and not signed can be handed back")
      transaction.state = "free"
      transaction.maxCost = 0n
      transaction.ops = []
      return done
    })

const recordSigned =
  (state: State.State): Context.Tag.Service<typeof Journal>["recordSigned"] =>
  (signed) =>
    step(() => {
      if (!fits(256, [signed.maxFeePerGas, signed.maxPriorityFeePerGas])) return refuse(outOfRange)
      const transaction = laneOf(state, signed).get(signed.nonce)
      if (transaction?.state !== "allocated" && transaction?.state !== "signed")
        return refuse("only for a nonce that is handed out and open can bytes be stored")
      if (transaction.ops.some((op) => op.state === "abandoned"))
        return refuse("the transaction carries an op that was given up")
      if (transaction.ops.some((op) => State.isSignedElsewhere(op, transaction)))
        return refuse("the transaction carries an op of another signed transaction")
      transaction.state = "signed"
      if (!transaction.versions.has(signed.txHash)) transaction.versions.set(signed.txHash, signed)
      for (const op of transaction.ops.filter(State.isUnderWay)) {
        op.state = "sent"
        op.txHash = signed.txHash
      }
      return done
    })

const settle =
  (state: State.State): Context.Tag.Service<typeof Journal>["settle"] =>
  (mined, ops) =>
    step(() => {
      if (!fits(64, [mined.blockNumber])) return refuse(outOfRange)
      const transaction = laneOf(state, mined).get(mined.nonce)
      const mayMine =
        transaction?.state === "signed"
          ? transaction.versions.has(mined.txHash)
          : transaction?.state === "settled" && transaction.txHash === mined.txHash
      if (transaction === undefined || !mayMine)
        return refuse("only the one transaction that was signed for a nonce can settle it")
      transaction.state = "settled"
      transaction.txHash = mined.txHash
      for (const outcome of ops) {
        const op = State.alive(state, { authority: mined.signer, chainId: mined.chainId }, outcome.userOpHash)
        if (op === undefined || !State.isUnderWay(op)) continue
        op.txHash = outcome.txHash
        op.revertData = outcome.revertData
        if (outcome.success === null) State.abandonOp(state, op)
        else State.settleOp(state, op, outcome.success)
      }
      return done
    })

const toRecord = (op: State.Op): OpRecord => ({
  accountId: op.accountId,
  requestId: op.requestId,
  index: op.intent.index,
  userOpHash: op.userOpHash,
  space: {
    authority: op.intent.space.authority,
    chainId: op.intent.space.chainId,
    entryPoint: op.intent.space.entryPoint,
    wallet: op.intent.space.wallet
  },
  nonceKey: op.intent.nonceKey,
  sequence: op.intent.sequence,
  state: op.state,
  txHash: op.txHash,
  success: op.success,
  revertData: op.revertData
})

const findOp =
  (state: State.State): Context.Tag.Service<typeof Journal>["findOp"] =>
  (accountId, chainId, userOpHash) =>
    step<OpRecord | null>(() => {
      const ops = state.byHash.get(State.hashName(chainId, userOpHash)) ?? []
      const own = ops.filter((op) => op.accountId === accountId)
      const found = own.findLast((op) => op.state !== "abandoned") ?? own.at(-1)
      return answer(found === undefined ? null : toRecord(found))
    })

/** A journal that ends with the process: for tests, and for embedders that need no durability. */
export const make: Effect.Effect<Context.Tag.Service<typeof Journal>> = Effect.sync(() => {
  const state = State.make()
  return {
    lease: lease(state),
    release: release(state),
    accept: accept(state),
    identify: identify(state),
    abandon: abandon(state),
    allocate: allocate(state),
    unallocate: unallocate(state),
    recordSigned: recordSigned(state),
    settle: settle(state),
    findOp: findOp(state)
  }
})

export const layer: Layer.Layer<Journal> = Layer.effect(Journal, make)
