import type * as Effect from "effect/Effect"
import type { Acceptance, AcceptanceResult, JournalError } from "../../application/ports/Journal.js"
import * as State from "./JournalState.js"
import { type Answer, answer, fits, outOfRange, refuse, step } from "./JournalStep.js"

/** Why an acceptance contradicts itself or what the journal holds. */
const contradiction = (state: State.State, acceptance: Acceptance): string | null => {
  const { accountId, chainId, deployments, endpoint, failed, funds, ops, requestId } = acceptance
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
  if (failed.some((element) => ops.some((op) => op.index === element.index)))
    return "an element is both accepted and refused"
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
  if (known !== undefined && known.state !== "open") return "the request is final"
  if (ops.some(({ index }) => state.byElement.has(State.elementName({ requestId, index }))))
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

/** Another request that has the idempotency key of a new one. */
const owner = (state: State.State, acceptance: Acceptance): string | undefined => {
  const { accountId, endpoint, idempotency, requestId } = acceptance
  if (idempotency === null || state.requests.has(requestId)) return undefined
  return state.byKey.get(State.keyName(accountId, endpoint, idempotency.key))
}

const requestOf = (state: State.State, acceptance: Acceptance, now: number): State.Request => {
  const { accountId, body, chainId, endpoint, idempotency, requestId } = acceptance
  const known = state.requests.get(requestId)
  if (known !== undefined) return known
  const request: State.Request = {
    requestId,
    accountId,
    endpoint,
    chainId,
    acceptedAt: now,
    body,
    idempotency,
    state: "open",
    outcome: null,
    failed: new Map(),
    ops: [],
    direct: []
  }
  state.requests.set(requestId, request)
  if (idempotency !== null) state.byKey.set(State.keyName(accountId, endpoint, idempotency.key), requestId)
  return request
}

export const accept =
  (state: State.State) =>
  (acceptance: Acceptance): Effect.Effect<AcceptanceResult, JournalError> =>
    step<AcceptanceResult>((now) => {
      const { accountId, failed, ops, requestId } = acceptance
      const contradicts = contradiction(state, acceptance)
      if (contradicts !== null) return refuse(contradicts)
      const other = owner(state, acceptance)
      if (other !== undefined) return answer({ _tag: "known", requestId: other })
      const taken = takenNonce(state, acceptance)
      if ("refused" in taken) return taken
      if (taken.value !== null) return answer({ _tag: "nonceTaken", index: taken.value })
      const overdraft = overdrawn(state, acceptance)
      if (overdraft !== null) return answer(overdraft)
      const deployments = authorised(state, acceptance)
      if (typeof deployments === "number")
        return answer({ _tag: "otherConfiguration", deployment: deployments })
      const request = requestOf(state, acceptance, now)
      for (const [name, row] of deployments) state.deployments.set(name, row)
      for (const element of failed) request.failed.set(element.index, element)
      for (const intent of ops) {
        const op: State.Op = {
          order: state.accepted++,
          accountId,
          requestId,
          intent,
          userOpHash: intent.userOpHash,
          state: "accepted",
          txHash: null,
          success: null,
          revertData: null,
          handover: null,
          transactions: []
        }
        State.addOp(state, op)
        request.ops.push(op)
        request.failed.delete(intent.index)
        // From now on the op itself holds its key.
        state.leases.get(State.spaceName(intent.space))?.delete(intent.nonceKey)
      }
      return answer({ _tag: "accepted" })
    })
