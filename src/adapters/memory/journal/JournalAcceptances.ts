import type * as Effect from "effect/Effect"
import type { JournalError } from "../../../application/ports/journal/Journal.js"
import type { Acceptance, AcceptanceResult } from "../../../application/ports/journal/Requests.js"
import * as State from "./JournalState.js"
import { type Answer, answer, fits, outOfRange, refuse, step } from "./JournalStep.js"

/** The ops that it replaces: of the same elements and with the same nonces, under which something was signed. */
const replaced = (state: State.State, { ops, requestId }: Acceptance): ReadonlySet<State.Op> =>
  new Set(
    ops.flatMap((intent) =>
      State.elements(state, requestId, [intent.index]).filter(
        (op) =>
          op.state === "accepted" &&
          State.nonceName(op.intent) === State.nonceName(intent) &&
          State.isHolding(state, op)
      )
    )
  )

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
  const alive = ops.filter(({ index }) => state.byElement.has(State.elementName({ requestId, index })))
  if (alive.length > replaced(state, acceptance).size)
    return "the request has an op of the same index already"
  return null
}

const takenNonce = (
  state: State.State,
  { ops }: Acceptance,
  old: ReadonlySet<State.Op>
): Answer<number | null> => {
  const nonces = new Set<string>()
  const hashes = new Set<string>()
  let taken: number | null = null
  for (const op of ops) {
    const nonce = State.nonceName(op)
    const owner = state.byNonce.get(nonce)
    if (nonces.has(nonce) || (owner !== undefined && !old.has(owner))) {
      taken = taken ?? op.index
      continue
    }
    nonces.add(nonce)
    if (op.userOpHash === null) continue
    const same = State.alive(state, op.space, op.userOpHash)
    if (hashes.has(op.userOpHash) || (same !== undefined && !old.has(same)))
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
  { funds, ops, requestId }: Acceptance,
  old: ReadonlySet<State.Op>
): Extract<AcceptanceResult, { readonly _tag: "reserved" }> | null => {
  const available = new Map(funds.map((entry) => [State.spaceName(entry.space), entry.available]))
  const fresh = new Map<string, bigint>()
  for (const { index, reserve, space } of ops) {
    const mine = (fresh.get(State.walletName(space)) ?? 0n) + reserve
    fresh.set(State.walletName(space), mine)
    let others = 0n
    let own = mine
    for (const op of State.under(state, space))
      if (old.has(op)) continue
      else if (op.requestId === requestId) own += op.intent.reserve
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
      const old = replaced(state, acceptance)
      const taken = takenNonce(state, acceptance, old)
      if ("refused" in taken) return taken
      if (taken.value !== null) return answer({ _tag: "nonceTaken", index: taken.value })
      const overdraft = overdrawn(state, acceptance, old)
      if (overdraft !== null) return answer(overdraft)
      const deployments = authorised(state, acceptance)
      if (typeof deployments === "number")
        return answer({ _tag: "otherConfiguration", deployment: deployments })
      const request = requestOf(state, acceptance, now)
      for (const [name, row] of deployments) state.deployments.set(name, row)
      for (const element of failed) request.failed.set(element.index, element)
      for (const op of old) State.moveOp(state, op, "abandoned", null)
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
