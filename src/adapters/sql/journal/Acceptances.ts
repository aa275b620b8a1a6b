import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type {
  Acceptance,
  AcceptanceResult,
  DeploymentIntent,
  NonceSpace,
  OpIntent
} from "../../../application/ports/journal/Requests.js"
import * as Events from "../events/Events.js"
import * as Terms from "../listing/Terms.js"
import * as Store from "../Store.js"
import * as Ops from "./tables/Ops.js"
import * as Requests from "./tables/Requests.js"

/** Undoes the transaction; the result is the answer. */
class Conflict extends Data.TaggedError("Conflict")<{ readonly result: AcceptanceResult }> {}

const conflict = (result: AcceptanceResult): Effect.Effect<never, Conflict> =>
  Effect.fail(new Conflict({ result }))

const spaceName = (space: NonceSpace): string => `${walletName(space)} ${space.entryPoint}`

const walletName = (space: NonceSpace): string => `${space.authority} ${space.chainId} ${space.wallet}`

const check = ({ deployments, failed, funds, lane, ops }: Acceptance): Effect.Effect<void, JournalError> =>
  Effect.gen(function* () {
    yield* Store.fits(256, [
      lane.chainId,
      ...ops.map((op) => op.reserve),
      ...funds.map((entry) => entry.available)
    ])
    yield* Store.fits(
      192,
      ops.map((op) => op.nonceKey)
    )
    yield* Store.fits(
      64,
      ops.map((op) => op.sequence)
    )
    if (new Set(ops.map((op) => op.index)).size !== ops.length)
      return yield* Store.refuse("two ops of one acceptance have the same index")
    if (failed.some((element) => ops.some((op) => op.index === element.index)))
      return yield* Store.refuse("an element is both accepted and refused")
    const { chainId, signer } = lane
    const isOther = ({ space }: OpIntent) => space.chainId !== chainId || space.authority !== signer
    if (ops.some(isOther) || deployments.some((it) => it.chainId !== chainId))
      return yield* Store.refuse("an acceptance is for one lane")
    const funded = new Set(funds.map((entry) => spaceName(entry.space)))
    if (ops.some((op) => !funded.has(spaceName(op.space))))
      return yield* Store.refuse("the funds of a wallet are missing")
  })

/** What ops under way hold of each wallet, by wallet. */
interface Held {
  readonly others: Map<string, bigint>
  readonly own: Map<string, bigint>
}

const readHeld = ({ sql }: Store.Store, { ops, requestId }: Acceptance) =>
  Effect.gen(function* () {
    const held: Held = { others: new Map(), own: new Map() }
    for (const [name, { authority, chainId, wallet }] of new Map(
      ops.map(({ space }) => [walletName(space), space])
    )) {
      const rows = yield* sql<{ readonly request_id: string; readonly reserve: string }>`
        select request_id, reserve from ops
        where authority = ${authority} and chain_id = ${chainId.toString()} and wallet = ${wallet}
          and state in ('accepted', 'sent')`
      for (const row of rows) {
        const side = row.request_id === requestId ? held.own : held.others
        side.set(name, (side.get(name) ?? 0n) + BigInt(row.reserve))
      }
    }
    return held
  })

const wordsOf = ({ nonceKey, sequence, space }: OpIntent): string =>
  [spaceName(space), Store.nonceKey(nonceKey), Store.uint64(sequence)].join(" ")

/**
 * Gives up what the acceptance replaces: ops of its elements under whose nonces something was signed. Gives the indexes of
 * those elements.
 */
const replace = (store: Store.Store, { ops, requestId }: Acceptance) =>
  Effect.gen(function* () {
    const { forUpdate, sql } = store
    const intents = new Map(ops.map((op) => [op.index, op]))
    const alive = yield* Store.inChunks(
      [...intents.keys()],
      (indexes) => sql<Ops.Row>`
        select * from ops
        where request_id = ${requestId} and state <> 'abandoned' and ${sql.in("op_index", indexes)}
        order by op_id ${forUpdate}`
    )
    if (alive.length === 0) return new Set<number>()
    const holding = yield* Ops.holding(store, requestId)
    for (const row of alive) {
      const intent = intents.get(row.op_index)
      const owned = [spaceName(Ops.spaceOf(row)), row.nonce_key, row.sequence].join(" ")
      const isSame = intent !== undefined && wordsOf(intent) === owned
      if (row.state !== "accepted" || !isSame || !holding.has(String(row.op_id)))
        return yield* Store.refuse("the request has an op of the same index already")
    }
    yield* Ops.move(store, alive, "abandoned", null)
    return new Set(alive.map((row) => row.op_index))
  })

const writeOps = ({ sql }: Store.Store, { ops, requestId }: Acceptance, now: number) =>
  Effect.gen(function* () {
    const rows = yield* Store.inChunks(
      ops,
      (chunk) => sql<{ readonly op_index: number }>`
        insert into ops ${sql.insert(
          Arr.map(chunk, (op) => ({
            request_id: requestId,
            op_index: op.index,
            authority: op.space.authority,
            chain_id: op.space.chainId.toString(),
            entry_point: op.space.entryPoint,
            wallet: op.space.wallet,
            nonce_key: Store.nonceKey(op.nonceKey),
            sequence: Store.uint64(op.sequence),
            user_op_hash: op.userOpHash,
            reserve: op.reserve.toString(),
            returned: op.returned,
            state: "accepted",
            accepted_at: now
          }))
        )}
        on conflict (authority, chain_id, entry_point, wallet, ${Ops.nonceColumns(sql)})
        where state <> 'abandoned' do nothing
        returning op_index`
    )
    const written = new Set(rows.map((row) => row.op_index))
    const taken = ops.find((op) => !written.has(op.index))
    if (taken === undefined) return
    const { nonceKey, sequence, space } = taken
    const [owner] = yield* sql<Pick<Ops.Row, "state">>`
      select state from ops
      where authority = ${space.authority} and chain_id = ${space.chainId.toString()}
        and entry_point = ${space.entryPoint} and wallet = ${space.wallet}
        and (${Ops.nonceColumns(sql)}) = ${Ops.nonceOf(sql, nonceKey, sequence)}
        and state <> 'abandoned'`
    return yield* conflict({
      _tag: "nonceTaken",
      index: taken.index,
      isSettled: owner?.state === "settled"
    })
  })

/**
 * The deposit at one EntryPoint does not serve another one, the balance does. What is held at any EntryPoint is
 * counted against the funds at each of them: too much at worst, never too little.
 */
const checkFunds = ({ funds, ops }: Acceptance, held: Held) =>
  Effect.gen(function* () {
    const available = new Map(funds.map((entry) => [spaceName(entry.space), entry.available]))
    for (const { index, reserve, space } of ops) {
      const name = walletName(space)
      const others = held.others.get(name) ?? 0n
      const own = (held.own.get(name) ?? 0n) + reserve
      held.own.set(name, own)
      if (others > 0n && others + own > (available.get(spaceName(space)) ?? 0n))
        return yield* conflict({ _tag: "reserved", index, reserved: others })
    }
  })

/** Leases of the keys end here: from now on the ops themselves hold them. */
export const endLeases = ({ sql }: Store.Store, ops: ReadonlyArray<Pick<OpIntent, "nonceKey" | "space">>) =>
  Effect.forEach(
    Map.groupBy(ops, ({ space }) => `${space.authority} ${space.chainId} ${space.entryPoint}`).values(),
    (group) =>
      Store.forChunks(group, (chunk) => {
        const { authority, chainId, entryPoint } = chunk[0].space
        const keys = sql.csv(
          chunk.map(({ nonceKey, space }) => sql`(${space.wallet}, ${Store.nonceKey(nonceKey)})`)
        )
        return sql`
          delete from leases
          where authority = ${authority} and chain_id = ${chainId.toString()} and entry_point = ${entryPoint}
            and (wallet, nonce_key) in (values ${keys})`
      }),
    { discard: true }
  )

/** False: an authorisation for another configuration is alive. */
export const authorise = ({ sql }: Store.Store, requestId: string, intent: DeploymentIntent) => {
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

const locksOf = ({ deployments, ops }: Acceptance): ReadonlyArray<string> => [
  ...ops.map(({ space }) => `wallet:${space.authority}:${space.chainId}:${space.wallet}`),
  ...deployments.map((it) => `deployment:${it.chainId}:${it.factory}:${it.create2Salt}`)
]

const write = (store: Store.Store, acceptance: Acceptance) =>
  Effect.gen(function* () {
    const { deployments, ops, requestId } = acceptance
    const now = yield* Clock.currentTimeMillis
    const { cancelled, isNew, owner, place } = yield* Requests.write(store, acceptance)
    if (owner !== requestId || place === null) return yield* conflict({ _tag: "known", requestId: owner })
    const replaced = isNew ? new Set<number>() : yield* replace(store, acceptance)
    const begun = ops.find(({ index }) => !replaced.has(index))
    if (cancelled !== null && begun !== undefined)
      return yield* conflict({ _tag: "cancelled", index: begun.index, code: cancelled })
    const held = yield* readHeld(store, acceptance)
    yield* writeOps(store, acceptance, now)
    yield* checkFunds(acceptance, held)
    for (const [position, intent] of deployments.entries())
      if (!(yield* authorise(store, requestId, intent)))
        return yield* conflict({ _tag: "otherConfiguration", deployment: position })
    yield* endLeases(store, ops)
    yield* Terms.add(store, acceptance, place, isNew)
    const { schedule } = acceptance
    if (isNew)
      yield* Events.tell(store, [
        { requestId, kind: "accepted", data: null },
        ...(schedule === null
          ? []
          : [{ requestId, kind: "scheduled", data: { notBefore: schedule.notBefore } } as const])
      ])
    const accepted: AcceptanceResult = { _tag: "accepted" }
    return accepted
  })

export const accept =
  (store: Store.Store): RequestJournal["Service"]["acceptOps"] =>
  (acceptance) =>
    Effect.andThen(check(acceptance), write(store, acceptance)).pipe(
      store.locking(locksOf(acceptance)),
      Effect.catchTag("Conflict", ({ result }) => Effect.succeed(result))
    )
