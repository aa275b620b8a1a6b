import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type * as Records from "../../../application/ports/journal/Records.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type { DeploymentIntent, Space } from "../../../application/ports/journal/Requests.js"
import type { Lane } from "../../../application/ports/journal/Transactions.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as ErrorCode from "../ErrorCode.js"
import * as Terms from "../listing/Terms.js"
import * as Rows from "../Rows.js"
import * as Store from "../Store.js"
import * as Events from "./Events.js"
import * as Leases from "./Leases.js"
import * as Claims from "./tables/Claims.js"
import * as Ops from "./tables/Ops.js"
import * as RequestRows from "./tables/RequestRows.js"
import * as StoredOp from "./tables/StoredOp.js"

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

const walletName = ({ authority, chainId, wallet }: Space): string => `${authority} ${chainId} ${wallet}`
const spaceName = (space: Space): string => `${walletName(space)} ${space.entryPoint}`

const locksOf = (parts: ReadonlyArray<Records.Opening>): ReadonlyArray<string> =>
  parts.flatMap(({ deployments, ops }) => [
    ...ops.map(({ space }) => `wallet:${space.authority}:${space.chainId}:${space.wallet}`),
    ...deployments.map((it) => `deployment:${it.chainId}:${it.factory}:${it.create2Salt}`)
  ])

/** The signer pays for a direct transaction: the worker checks its money with the transaction. */
const isDirect = ({ kind }: Records.PreparedOp): boolean => kind === "direct"

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
  const funded = new Set(funds.map(({ space }) => spaceName(space)))
  if (ops.some((op) => !isDirect(op) && !funded.has(spaceName(op.space))))
    return Store.refuse("the funds of a wallet are missing")
  return Effect.andThen(
    Store.fits(256, [lane.chainId, ...funds.map(({ available }) => available)]),
    fits(ops)
  )
}

/** Fails when a figure of an op does not fit its column. */
export const fits = (ops: ReadonlyArray<Records.PreparedOp>): Effect.Effect<void, JournalError> => {
  const of = (bits: number, figure: (op: Records.PreparedOp) => bigint) => Store.fits(bits, ops.map(figure))
  return Effect.andThen(
    of(256, ({ reserve }) => reserve),
    Effect.andThen(
      of(192, ({ nonceKey }) => nonceKey),
      of(64, ({ sequence }) => sequence)
    )
  )
}

/** Wei that other requests' open ops hold, by wallet and request. */
type Held = Map<string, Map<string, bigint>>

const hold = (held: Held, name: string, requestId: string, wei: bigint): void => {
  const own = held.get(name) ?? new Map<string, bigint>()
  held.set(name, own)
  own.set(requestId, (own.get(requestId) ?? 0n) + wei)
}

interface UnderWay {
  readonly wallet: string
  readonly entry_point: string
  readonly nonce_key: string
  readonly request_id: string
  readonly reserve: string
}

/** Open ops of these wallets, all of one lane. */
const underWay = (store: Store.Store, lane: Lane, wallets: ReadonlyArray<string>) =>
  Rows.statement<UnderWay>(
    store,
    `select wallet, entry_point, nonce_key, request_id, reserve from ops
     where authority = ? and chain_id = ? and ${Rows.among(store, "wallet")} and state in ('accepted', 'sent')`,
    [lane.signer, lane.chainId.toString(), Rows.listOf(store, wallets)]
  )

const readHeld = (store: Store.Store, lane: Lane, parts: ReadonlyArray<Records.Opening>) => {
  const wallets = parts.flatMap(({ ops }) =>
    ops.filter((op) => !isDirect(op)).map(({ space }) => space.wallet)
  )
  const held: Held = new Map()
  if (wallets.length === 0) return Effect.succeed(held)
  const { chainId, signer } = lane
  return Effect.map(underWay(store, lane, Store.distinct(wallets)), (rows) => {
    for (const row of rows)
      hold(held, `${signer} ${chainId} ${row.wallet}`, row.request_id, BigInt(row.reserve))
    return held
  })
}

/**
 * A deposit serves one EntryPoint, a balance serves all. Wei held at any EntryPoint counts against the funds at each:
 * the sum may be too high, never too low. Null: the funds cover the request's ops, which now hold them.
 */
const uncovered = (held: Held, { funds, ops, requestId }: Records.Opening): Refusal | null => {
  const available = new Map(funds.map((entry) => [spaceName(entry.space), entry.available]))
  const wanted = new Map<string, bigint>()
  for (const op of ops) {
    if (isDirect(op)) continue
    const name = walletName(op.space)
    const holders = held.get(name)
    const before = holders?.get(requestId) ?? 0n
    let others = -before
    for (const wei of holders?.values() ?? []) others += wei
    const own = (wanted.get(name) ?? before) + op.reserve
    wanted.set(name, own)
    if (others > 0n && others + own > (available.get(spaceName(op.space)) ?? 0n))
      return { _tag: "reserved", index: op.index, reserved: others }
  }
  for (const op of ops) if (!isDirect(op)) hold(held, walletName(op.space), requestId, op.reserve)
  return null
}

const opColumns: Rows.Columns = {
  request_id: "text",
  op_index: "integer",
  authority: "text",
  chain_id: "text",
  entry_point: "text",
  wallet: "text",
  nonce_key: "text",
  sequence: "text",
  user_op_hash: "text",
  reserve: "text",
  returned: "text",
  state: "text",
  accepted_at: "bigint",
  prepared: "bytea",
  good_until: "bigint",
  was_public: "smallint"
}

/** Row of a ready op. */
export const rowOf = (op: Records.PreparedOp, now: number, isExposed = false) => [
  op.requestId,
  op.index,
  op.space.authority,
  op.space.chainId.toString(),
  op.space.entryPoint,
  op.space.wallet,
  Store.nonceKey(op.nonceKey),
  Store.uint64(op.sequence),
  op.userOpHash,
  op.reserve.toString(),
  op.returned,
  "accepted",
  now,
  StoredOp.encode(op),
  op.goodUntil,
  isExposed ? 1 : null
]

export const writeRows = (store: Store.Store, rows: ReadonlyArray<ReadonlyArray<unknown>>) =>
  Rows.insert(store, "ops", opColumns, rows)

/** Rows of direct transactions use the request number as nonce key. */
const writeDirect = (store: Store.Store, rows: ReadonlyArray<ReadonlyArray<unknown>>) => {
  const names = Object.keys(opColumns)
  const key = store.sql.onDialectOrElse({
    pg: () => "lpad(requests.request_no::text, 58, '0')",
    orElse: () => `substr('${"0".repeat(58)}' || requests.request_no, -58)`
  })
  const values = names.map((name) => (name === "nonce_key" ? key : `given.${name}`))
  return Rows.each(
    store,
    `insert into ops (${names.join(", ")}) select ${values.join(", ")}
     from (%) as given join requests on requests.request_id = given.request_id`,
    opColumns,
    rows
  )
}

const writeOps = (store: Store.Store, parts: ReadonlyArray<Records.Opening>, now: number) => {
  const ops = parts.flatMap((part) => part.ops)
  const row = (op: Records.PreparedOp) => rowOf(op, now)
  return Effect.andThen(
    writeRows(store, ops.filter((op) => !isDirect(op)).map(row)),
    writeDirect(store, ops.filter(isDirect).map(row))
  )
}

const termColumns: Rows.Columns = { request_id: "text", term: "text" }

/** Search terms of requests in their accounts' lists. */
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

/** False: a valid authorisation exists for another configuration. */
const authorise = ({ sql }: Store.Store, requestId: string, intent: DeploymentIntent) => {
  const { chainTime, configHash, create2Salt, deadline, factory } = intent
  return Effect.map(
    sql`
      insert into deployments ${sql.insert({
        chain_id: intent.chainId.toString(),
        factory,
        create2_salt: create2Salt,
        config_hash: configHash,
        deadline,
        request_id: requestId
      })}
      on conflict (chain_id, factory, create2_salt) do update set
        deadline = case
          when deployments.config_hash = excluded.config_hash and deployments.deadline > excluded.deadline
          then deployments.deadline else excluded.deadline end,
        config_hash = excluded.config_hash,
        request_id = excluded.request_id
      where deployments.config_hash = excluded.config_hash or deployments.deadline < ${chainTime}
      returning factory`,
    (rows) => rows.length > 0
  )
}

/** Writes deployments, ended leases and search terms. */
const writeRest = (store: Store.Store, parts: ReadonlyArray<Records.Opening>) =>
  Effect.gen(function* () {
    for (const { deployments, requestId } of parts)
      for (const [position, intent] of deployments.entries())
        if (!(yield* authorise(store, requestId, intent)))
          return yield* again(requestId, { _tag: "otherConfiguration", deployment: position })
    // The op now holds the leased key.
    const given = parts.flatMap(({ ops }) => ops.flatMap((op) => (op.kind === "given" ? op : [])))
    yield* Leases.end(store, given)
    yield* writeTerms(
      store,
      parts.flatMap(({ ops, requestId }) =>
        Store.distinct(ops.map(({ space }) => Terms.ofWallet(space.wallet))).map(
          (term) => [requestId, term] as const
        )
      )
    )
  })

/** State of the op that holds this op's nonce or hash. */
const ownerOf = ({ sql }: Store.Store, { nonceKey, sequence, space, userOpHash }: Records.PreparedOp) =>
  Effect.map(
    sql<Pick<Ops.State, "state">>`
      select state from ops
      where authority = ${space.authority} and chain_id = ${space.chainId.toString()}
        and entry_point = ${space.entryPoint} and wallet = ${space.wallet}
        and (${Ops.nonceColumns(sql)}) = ${Ops.nonceOf(sql, nonceKey, sequence)}
        and state <> 'abandoned'
      union all
      select state from ops
      where chain_id = ${space.chainId.toString()} and user_op_hash = ${userOpHash}
        and authority = ${space.authority} and state <> 'abandoned'
      limit 1`,
    ([owner]) => owner ?? null
  )

/** The first op whose nonce another row, or an earlier op of the list, has. */
const firstTaken = (
  store: Store.Store,
  ops: ReadonlyArray<Records.PreparedOp>,
  claimed: ReadonlySet<string>
) =>
  Effect.gen(function* () {
    const names = new Set<string>()
    for (const op of ops) {
      if (isDirect(op)) continue
      const name = `${spaceName(op.space)} ${op.nonceKey} ${op.sequence}`
      const owner = yield* ownerOf(store, op)
      if (owner !== null || claimed.has(name) || names.has(name))
        return { op, isSettled: owner?.state === "settled", names }
      names.add(name)
    }
    return { op: null, isSettled: false, names }
  })

/** The first op whose nonce another op has; null: none. */
export const taken = (store: Store.Store, ops: ReadonlyArray<Records.PreparedOp>) =>
  Effect.map(firstTaken(store, ops, new Set()), ({ op }) =>
    op === null ? null : { requestId: op.requestId, index: op.index }
  )

/** The refusal of a request whose nonce is taken; null: its nonces are claimed. */
const takenOf = (store: Store.Store, { ops }: Records.Opening, claimed: Set<string>) =>
  Effect.map(firstTaken(store, ops, claimed), ({ isSettled, names, op }): Refusal | null => {
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
  unopened: "integer"
}

const writeRequests = (store: Store.Store, list: ReadonlyArray<Records.Acceptance>, now: number) => {
  const rows = list.map((it) => [
    it.requestId,
    it.accountId,
    it.endpoint,
    it.lane.chainId.toString(),
    it.lane.signer,
    JSON.stringify(it.key),
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
    it.unopened
  ])
  return Rows.insert(store, "requests", requestColumns, rows)
}

/**
 * Existing requests, by id or idempotency key. A request with its own id was accepted by a call whose answer was lost, and
 * gets that answer.
 */
const knownOf = (store: Store.Store, list: ReadonlyArray<Records.Acceptance>) =>
  Effect.gen(function* () {
    const { sql } = store
    const refused = new Map<string, Refusal>()
    const accepted = new Set<string>()
    const owners = new Map<string, Records.Acceptance>()
    for (const acceptance of list) {
      const { accountId, endpoint, idempotency, requestId } = acceptance
      const [own] = yield* sql<{ readonly state: string }>`
        select state from requests where request_id = ${requestId}`
      if (own?.state === "forgotten") refused.set(requestId, { _tag: "over" })
      else if (own !== undefined) accepted.add(requestId)
      if (own !== undefined || idempotency === null) continue
      const [row] = yield* RequestRows.byKey(store, accountId, endpoint, idempotency.key)
      const name = JSON.stringify([accountId, endpoint, idempotency.key])
      const before = owners.get(name)
      if (row !== undefined)
        refused.set(requestId, {
          _tag: "known",
          requestId: row.request_id,
          bodyHash: Hex.unsafe32(row.body_hash)
        })
      else if (before?.idempotency != null)
        refused.set(requestId, {
          _tag: "known",
          requestId: before.requestId,
          bodyHash: before.idempotency.bodyHash
        })
      else owners.set(name, acceptance)
    }
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
    const known = isCareful ? yield* knownOf(store, list) : null
    const held = yield* readHeld(store, lane, list)
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
        (isCareful ? yield* takenOf(store, acceptance, claimed) : null) ?? uncovered(held, acceptance)
      // Another one may come before it.
      if (obstacle !== null && !isCareful) return yield* new Again({ refused: null })
      results.push(obstacle ?? accepted)
      if (obstacle === null) fresh.push(acceptance)
    }
    if (fresh.length === 0) return results
    yield* writeRequests(store, inOrder(fresh), now)
    yield* writeOps(store, fresh, now)
    yield* writeRest(store, fresh)
    yield* writeTerms(
      store,
      fresh.flatMap(({ metadata, requestId }) =>
        Terms.ofMetadata(metadata).map((term) => [requestId, term] as const)
      )
    )
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
  readonly unopened: number | null
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
    const isNews = (index: number) => !known.some((element) => element.index === index)
    const obstacle =
      before.get(requestId) ??
      (isCareful ? yield* takenOf(store, opening, new Set()) : null) ??
      uncovered(yield* readHeld(store, lane, [opening]), opening)
    // Another one may come before it.
    if (obstacle !== null && !isCareful) return yield* new Again({ refused: null })
    if (obstacle !== null) return obstacle
    const now = yield* Clock.currentTimeMillis
    yield* writeOps(store, [opening], now)
    const left = (row.unopened ?? 0) - ops.length - failed.filter(({ index }) => isNews(index)).length
    // Waited for: it fails where a nonce of the ops was taken.
    yield* store.sql`
      update requests set unopened = ${Math.max(0, left)}, due_at = ${schedule?.dueAt ?? null},
        not_before = coalesce(${schedule?.notBefore ?? null}, not_before)
      where request_id = ${requestId}`
    if (failed.length > 0) yield* RequestRows.writeFailed(store, requestId, RequestRows.merged(known, failed))
    yield* writeRest(store, [opening])
    if (schedule !== null && Number(row.not_before) !== schedule.notBefore)
      yield* Events.tell(store, [{ requestId, kind: "scheduled", data: { notBefore: schedule.notBefore } }])
    return accepted
  })

export const openElements =
  (store: Store.Store): RequestJournal["Service"]["openElements"] =>
  (lane, opening) =>
    Effect.andThen(
      check(lane, opening),
      tried(store, [opening], (refused, isCareful) => writeOpening(store, lane, opening, refused, isCareful))
    )

export const look =
  (store: Store.Store): RequestJournal["Service"]["look"] =>
  ({ idempotency, spaces }) =>
    store.reading(
      Effect.gen(function* () {
        const known: Array<Records.Seen["known"][number]> = []
        for (const { accountId, endpoint, key } of idempotency) {
          const [row] = yield* RequestRows.byKey(store, accountId, endpoint, key)
          known.push(
            row === undefined ? null : { requestId: row.request_id, bodyHash: Hex.unsafe32(row.body_hash) }
          )
        }
        const now = yield* Clock.currentTimeMillis
        const keys = new Map<string, Set<bigint>>()
        const held = new Map<string, bigint>()
        const use = (name: string, key: string) => {
          const own = keys.get(name) ?? new Set<bigint>()
          keys.set(name, own)
          own.add(BigInt(key))
        }
        for (const [lane, own] of Map.groupBy(
          spaces,
          ({ authority, chainId }) => `${authority} ${chainId}`
        )) {
          const [space] = own
          if (space === undefined) continue
          const at: Lane = { chainId: space.chainId, signer: space.authority }
          const wallets = Store.distinct(own.map(({ wallet }) => wallet))
          for (const row of yield* underWay(store, at, wallets)) {
            use(`${lane} ${row.wallet} ${row.entry_point}`, row.nonce_key)
            const name = `${lane} ${row.wallet}`
            held.set(name, (held.get(name) ?? 0n) + BigInt(row.reserve))
          }
          const leases = yield* Rows.statement<Omit<UnderWay, "request_id" | "reserve">>(
            store,
            `select wallet, entry_point, nonce_key from leases
             where authority = ? and chain_id = ? and ${Rows.among(store, "wallet")} and expires_at > ?`,
            [at.signer, at.chainId.toString(), Rows.listOf(store, wallets), now]
          )
          for (const row of leases) use(`${lane} ${row.wallet} ${row.entry_point}`, row.nonce_key)
        }
        return {
          known,
          spaces: spaces.map((space) => ({
            keys: keys.get(spaceName(space)) ?? new Set<bigint>(),
            held: held.get(walletName(space)) ?? 0n
          }))
        }
      })
    )
