import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type * as Records from "../../../application/ports/journal/Records.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type { DeploymentIntent, Metadata } from "../../../application/ports/journal/Requests.js"
import type { Lane } from "../../../application/ports/journal/Transactions.js"
import * as ErrorCode from "../ErrorCode.js"
import * as Terms from "../listing/Terms.js"
import * as Rows from "../Rows.js"
import * as Store from "../Store.js"
import * as Events from "./Events.js"
import * as KnownWork from "./KnownWork.js"
import * as Leases from "./Leases.js"
import * as Claims from "./tables/Claims.js"
import * as NewOps from "./tables/NewOps.js"
import * as Ops from "./tables/Ops.js"
import * as RequestRows from "./tables/RequestRows.js"

/**
 * Accepts elements as ops. Writes are optimistic: a conflict rolls back the transaction, the store reads each obstacle, and
 * the transaction runs again without the refused requests.
 */

type Refusal = Exclude<Records.AcceptanceResult, { readonly _tag: "accepted" }>
type Refusals = ReadonlyMap<string, Refusal>

/** Rolls back the transaction and refuses these requests. Null: other requests' rows conflict; read them first. */
class Again extends Data.TaggedError("Again")<{ readonly refused: Refusals | null }> {}

const again = (requestId: string, refusal: Refusal) =>
  Effect.fail(new Again({ refused: new Map([[requestId, refusal]]) }))

/** Attempts of one list. Each retry follows a conflict with a row that another process has just committed. */
const mostTries = 8

const isTaken = (error: unknown): boolean =>
  Store.isSqlError(error) &&
  [" (SQLITE_CONSTRAINT_UNIQUE)", " (SQLITE_CONSTRAINT_PRIMARYKEY)", " (23505)"].includes(
    ErrorCode.suffix(error)
  )

const lockOf = ({ chainId, create2Salt, factory }: DeploymentIntent): string =>
  `deployment:${chainId}:${factory}:${create2Salt}`

const locksOf = (parts: ReadonlyArray<Records.Opening>): ReadonlyArray<string> =>
  parts.flatMap(({ deployments, ops }) => [
    ...ops.map(({ space }) => `wallet:${space.authority}:${space.chainId}:${space.wallet}`),
    ...deployments.map(lockOf)
  ])

const check = (lane: Lane, part: Records.Opening): Effect.Effect<void, JournalError> => {
  const { deployments, failed, funds, ops } = part
  const indexes = new Set(ops.map((op) => op.index))
  if (indexes.size < ops.length) return Store.refuse("two ops of one acceptance have the same index")
  if (failed.some(({ index }) => indexes.has(index)))
    return Store.refuse("an element is both accepted and refused")
  if (ops.some(({ requestId }) => requestId !== part.requestId))
    return Store.refuse("an op is of another request")
  const isOther = ({ space }: Records.PreparedOp) =>
    space.chainId !== lane.chainId || space.authority !== lane.signer
  if (ops.some(isOther) || deployments.some(({ chainId }) => chainId !== lane.chainId))
    return Store.refuse("an acceptance is for one lane")
  const funded = new Set(funds.map(({ space }) => NewOps.spaceName(space)))
  if (ops.some((op) => !NewOps.isDirect(op) && !funded.has(NewOps.spaceName(op.space))))
    return Store.refuse("the funds of a wallet are missing")
  return Effect.andThen(
    Store.fits(256, [lane.chainId, ...funds.map(({ available }) => available)]),
    NewOps.fits(ops)
  )
}

const termColumns: Rows.Columns = { request_id: "text", term: "text" }

const writeTerms = (store: Store.Store, terms: ReadonlyArray<readonly [requestId: string, term: string]>) =>
  Rows.each(
    store,
    `insert into request_terms (account_id, term, accepted_at, request_no)
     select requests.account_id, given.term, requests.accepted_at, requests.request_no
     from (%) as given join requests on requests.request_id = given.request_id
     where true on conflict do nothing`,
    termColumns,
    terms
  )

/** False: a valid authorisation exists for another configuration. `requestId` null: no accepted request caused it. */
const authorised = ({ sql }: Store.Store, requestId: string | null, intent: DeploymentIntent) =>
  Effect.gen(function* () {
    const { chainTime, configHash, create2Salt, deadline, factory } = intent
    const chainId = intent.chainId.toString()
    const tables = [sql("deployments"), sql("unbound_deployments")] as const
    const [others, own] = requestId === null ? tables : ([tables[1], tables[0]] as const)
    const alive = yield* sql`
      select 1 from ${others} where chain_id = ${chainId} and factory = ${factory}
        and create2_salt = ${create2Salt} and config_hash <> ${configHash} and deadline >= ${chainTime}`
    if (alive.length > 0) return false
    const rows = yield* sql`
      insert into ${own} ${sql.insert({
        chain_id: chainId,
        factory,
        create2_salt: create2Salt,
        config_hash: configHash,
        deadline,
        ...(requestId !== null && { request_id: requestId })
      })}
      on conflict (chain_id, factory, create2_salt) do update set
        deadline = case
          when ${own}.config_hash = excluded.config_hash and ${own}.deadline > excluded.deadline
          then ${own}.deadline else excluded.deadline end,
        ${sql.literal(requestId === null ? "" : "request_id = excluded.request_id,")}
        config_hash = excluded.config_hash
      where ${own}.config_hash = excluded.config_hash or ${own}.deadline < ${chainTime}
      returning factory`
    return rows.length > 0
  })

export const authorise =
  (store: Store.Store): RequestJournal["Service"]["authorise"] =>
  (intent) =>
    store.locking([lockOf(intent)])(authorised(store, null, intent))

const writeRest = (
  store: Store.Store,
  parts: ReadonlyArray<Records.Opening & { readonly metadata?: Metadata }>
) =>
  Effect.gen(function* () {
    for (const { deployments, requestId } of parts)
      for (const [position, intent] of deployments.entries())
        if (!(yield* authorised(store, requestId, intent)))
          return yield* again(requestId, { _tag: "otherConfiguration", deployment: position })
    // The op now holds the leased key.
    const given = parts.flatMap(({ ops }) => ops.flatMap((op) => (op.kind === "given" ? op : [])))
    yield* Leases.end(store, given)
    yield* writeTerms(
      store,
      parts.flatMap(({ metadata = {}, ops, requestId }) =>
        [
          ...Store.distinct(ops.map(({ space }) => Terms.ofWallet(space.wallet))),
          ...Terms.ofMetadata(metadata)
        ].map((term) => [requestId, term] as const)
      )
    )
  })

/** The refusal of a request whose nonce is taken; null: its nonces are claimed. */
const takenOf = (store: Store.Store, { ops }: Records.Opening, claimed: Set<string>) =>
  Effect.map(NewOps.firstTaken(store, ops, claimed), ({ isSettled, names, op }): Refusal | null => {
    if (op !== null) return { _tag: "nonceTaken", index: op.index, isSettled }
    for (const name of names) claimed.add(name)
    return null
  })

const requestColumns: Rows.Columns = {
  request_id: "text",
  account_id: "text",
  endpoint: "text",
  chain_id: "text",
  signer: "text",
  lane_key: "text",
  body: "text",
  idempotency_key: "text",
  body_hash: "text",
  elements: "integer",
  failed: "text",
  note: "text",
  metadata: "text",
  state: "text",
  accepted_at: "bigint",
  not_before: "bigint",
  due_at: "bigint",
  context: "text",
  unopened: "integer",
  previews: "text",
  policies: "text"
}

const writeRequests = (store: Store.Store, list: ReadonlyArray<Records.Acceptance>, now: number) => {
  const rows = list.map((it) => [
    it.requestId,
    it.accountId,
    it.endpoint,
    it.lane.chainId.toString(),
    it.lane.signer,
    RequestRows.laneKeyColumn(it.key),
    store.seal.close(RequestRows.sealName(it.requestId), it.body),
    it.idempotency?.key ?? null,
    it.idempotency?.bodyHash ?? null,
    it.elements,
    RequestRows.failedColumn(it.failed),
    it.note,
    Terms.write(it.metadata),
    "open",
    now,
    it.schedule?.notBefore ?? null,
    it.schedule?.dueAt ?? null,
    it.contextDigest,
    it.unopened,
    it.previews == null ? null : store.seal.close(RequestRows.previewsName(it.requestId), it.previews),
    it.policies === undefined || it.policies.length === 0 ? null : JSON.stringify(it.policies)
  ])
  return Rows.insert(store, "requests", requestColumns, rows)
}

/**
 * Existing requests, by id or idempotency key. A request with its own id was accepted by a call whose answer was lost, and
 * gets that answer.
 */
const knownOf = (store: Store.Store, list: ReadonlyArray<Records.Acceptance>, now: number) =>
  Effect.gen(function* () {
    const { sql } = store
    const refused = new Map<string, Refusal>()
    const accepted = new Set<string>()
    /** Refused before these requests arrived under their keys. */
    const earlier: Array<string> = []
    const owners = new Map<string, Records.Acceptance>()
    for (const acceptance of list) {
      const { accountId, endpoint, idempotency, requestId } = acceptance
      const [own] = yield* sql<{ readonly state: string }>`
        select state from requests where request_id = ${requestId}`
      if (own?.state === "forgotten") refused.set(requestId, { _tag: "over" })
      else if (own !== undefined) accepted.add(requestId)
      if (own !== undefined || idempotency === null) continue
      const [row] = yield* RequestRows.byKeys(store, [{ accountId, endpoint, key: idempotency.key }])
      const name = JSON.stringify([accountId, endpoint, idempotency.key])
      const before = owners.get(name)
      const kept = RequestRows.keptIn(row)
      if (row?.declined_at != null && Number(row.declined_at) > (acceptance.arrivedAt ?? now))
        refused.set(requestId, { _tag: "over" })
      else if (row?.declined_at != null) earlier.push(row.request_id)
      if (kept !== null) refused.set(requestId, { _tag: "known", ...kept })
      else if (before?.idempotency != null)
        refused.set(requestId, {
          _tag: "known",
          requestId: before.requestId,
          bodyHash: before.idempotency.bodyHash
        })
      else owners.set(name, acceptance)
    }
    if (earlier.length > 0)
      yield* sql`delete from requests where ${sql.in("request_id", earlier)} and declined_at is not null`
    return { accepted, refused }
  })

/** Reads obstacles only after a conflict. */
const tried = <Answer>(
  store: Store.Store,
  parts: ReadonlyArray<Records.Opening>,
  attempt: (refused: Refusals, isCareful: boolean) => Effect.Effect<Answer, Again | JournalError | SqlError>
): Effect.Effect<Answer, JournalError> => {
  const locks = locksOf(parts)
  const next = (refused: Refusals, tries: number): Effect.Effect<Answer, JournalError> =>
    attempt(refused, tries > 0).pipe(
      Effect.catchIf(isTaken, () => Effect.fail(new Again({ refused: null }))),
      store.locking(locks),
      Effect.catchTag("Again", (obstacle) =>
        tries === mostTries
          ? Store.refuse("others accept the same at the same time")
          : next(new Map([...refused, ...(obstacle.refused ?? [])]), tries + 1)
      )
    )
  return next(new Map(), 0)
}

const accepted: Records.AcceptanceResult = { _tag: "accepted" }

/** A fixed order of idempotency keys prevents deadlocks. */
const inOrder = (list: ReadonlyArray<Records.Acceptance>) =>
  list.length === 1
    ? list
    : list.toSorted((one, other) =>
        (one.idempotency?.key ?? one.requestId) < (other.idempotency?.key ?? other.requestId) ? -1 : 1
      )

const write = (
  store: Store.Store,
  lane: Lane,
  list: ReadonlyArray<Records.Acceptance>,
  before: Refusals,
  isCareful: boolean
) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const known = isCareful ? yield* knownOf(store, list, now) : null
    const held = yield* KnownWork.readHeld(store, lane, list)
    const claimed = new Set<string>()
    const results: Array<Records.AcceptanceResult> = []
    const fresh: Array<Records.Acceptance> = []
    for (const acceptance of list) {
      const { requestId } = acceptance
      const refusal = before.get(requestId) ?? known?.refused.get(requestId)
      if (refusal !== undefined || known?.accepted.has(requestId)) {
        results.push(refusal ?? accepted)
        continue
      }
      const obstacle =
        (isCareful ? yield* takenOf(store, acceptance, claimed) : null) ??
        KnownWork.uncovered(held, acceptance)
      // Another one may come before it.
      if (obstacle !== null && !isCareful) return yield* new Again({ refused: null })
      results.push(obstacle ?? accepted)
      if (obstacle === null) fresh.push(acceptance)
    }
    if (fresh.length === 0) return results
    yield* writeRequests(store, inOrder(fresh), now)
    yield* NewOps.writeOps(store, fresh, now)
    yield* writeRest(store, fresh)
    yield* Events.begin(store, fresh, now)
    return results
  })

export const accept =
  (store: Store.Store): RequestJournal["Service"]["accept"] =>
  (list) => {
    const [first, ...others] = list
    if (first === undefined) return Effect.succeed([])
    const { chainId, signer } = first.lane
    if (others.some(({ lane }) => lane.chainId !== chainId || lane.signer !== signer))
      return Store.refuse("a list is accepted in one lane")
    if (new Set(list.map(({ requestId }) => requestId)).size < list.length)
      return Store.refuse("a request is in the list twice")
    return Effect.andThen(
      Effect.forEach(list, (acceptance) => check(first.lane, acceptance), { discard: true }),
      tried(store, list, (refused, isCareful) => write(store, first.lane, list, refused, isCareful))
    )
  }

type OpenRow = Pick<RequestRows.Row, "cancelled" | "failed" | "not_before" | "state"> & {
  readonly unopened: number
}

/** The part of an opening without rows: an element with a row is already open. */
const writeOpening = (
  store: Store.Store,
  lane: Lane,
  opening: Records.Opening,
  before: Refusals,
  isCareful: boolean
) =>
  Effect.gen(function* () {
    const { failed, ops, requestId, schedule } = opening
    yield* Claims.fence(store, lane)
    const [row] = yield* store.sql<OpenRow>`
      select cancelled, failed, not_before, state, unopened from requests
      where request_id = ${requestId} ${store.forUpdate}`
    if (row === undefined) return yield* Store.refuse("the request was not accepted")
    const over: Records.AcceptanceResult = { _tag: "over" }
    if (row.state !== "open" || row.cancelled !== null) return over
    const there = yield* Ops.lockElements(
      store,
      requestId,
      ops.map(({ index }) => index)
    )
    if (there.length > 0) return yield* Store.refuse("the request has an op of the same index already")
    const known = RequestRows.failedOf(row)
    const isNew = (index: number) => !known.some((element) => element.index === index)
    const obstacle =
      before.get(requestId) ??
      (isCareful ? yield* takenOf(store, opening, new Set()) : null) ??
      KnownWork.uncovered(yield* KnownWork.readHeld(store, lane, [opening]), opening)
    // Another one may come before it.
    if (obstacle !== null && !isCareful) return yield* new Again({ refused: null })
    if (obstacle !== null) return obstacle
    const now = yield* Clock.currentTimeMillis
    yield* NewOps.writeOps(store, [opening], now)
    const left = row.unopened - ops.length - failed.filter(({ index }) => isNew(index)).length
    // Waited for: it fails where a nonce of the ops was taken.
    yield* store.sql`
      update requests set unopened = ${Math.max(0, left)}, due_at = ${schedule?.dueAt ?? null},
        not_before = coalesce(${schedule?.notBefore ?? null}, not_before)
      where request_id = ${requestId}`
    if (failed.length > 0) yield* RequestRows.writeFailed(store, requestId, RequestRows.merged(known, failed))
    yield* writeRest(store, [opening])
    if (schedule !== null && Number(row.not_before) !== schedule.notBefore)
      yield* Events.append(store, [{ requestId, kind: "scheduled", data: { notBefore: schedule.notBefore } }])
    return accepted
  })

export const openElements =
  (store: Store.Store): RequestJournal["Service"]["openElements"] =>
  (lane, opening) =>
    Effect.andThen(
      check(lane, opening),
      tried(store, [opening], (refused, isCareful) => writeOpening(store, lane, opening, refused, isCareful))
    )
