import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Nonce from "../../domain/erc4337/Nonce.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import { Lru } from "../../domain/primitives/Lru.js"
import type { ElementFailure } from "../failures/Elements.js"
import { type Failure, type Unavailable, unavailable } from "../failures/Failure.js"
import * as HoldFollower from "../payers/HoldFollower.js"
import { heldMillis, holdId, PayerRefusal } from "../payers/Payer.js"
import { type Binding, Budgets, type BudgetsError } from "../ports/Budgets.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { PreparedOp } from "../ports/journal/Records.js"
import type { PolicyName } from "../ports/Policies.js"
import type { AccountId } from "../ports/Tenants.js"
import * as Call from "../prepare/Call.js"
import type { OfRequest } from "../prepare/OpContext.js"
import * as Links from "../prepare/ops/Links.js"
import type { Prepared } from "../prepare/Preparation.js"
import * as Reservations from "../prepare/Reservations.js"
import * as EventLoop from "../runtime/EventLoop.js"
import * as Judgement from "./Judgement.js"
import * as Limits from "./Limits.js"
import * as Rulebook from "./Rulebook.js"

/**
 * Judges the elements of requests by the account's spending rules, and holds what they may spend of its limits.
 *
 * Gotchas:
 *
 * - A hold covers one nonce: of all versions of an element with the same nonce at most one lands. A version with another
 *   nonce is a further amount until the operator's node shows that the earlier version cannot land any more. A caller's node
 *   could deny a payment and have it made again.
 * - Only the operator's node frees what was signed.
 */

/** A request whose elements are prepared. */
interface Made<A> {
  readonly asker: A
  readonly prepared: Prepared
}

type Batches = ReadonlyArray<Result.Result<Prepared, Failure> | "busy">

export class Rules extends Context.Service<
  Rules,
  {
    /**
     * Fails the prepared and waiting elements that rules or the limits of one op or request do not allow. `names`: of each
     * request, the policies that have judged it.
     */
    readonly judge: <B extends Batches[number]>(
      askers: ReadonlyArray<Judgement.Judged>,
      batches: ReadonlyArray<B>
    ) => Effect.Effect<
      {
        readonly batches: ReadonlyArray<B | Result.Result<Prepared>>
        readonly names: ReadonlyArray<ReadonlyArray<PolicyName>>
      },
      Unavailable
    >
    /** Holds what the prepared ops may spend, and fails those that a limit has no room for. */
    readonly reserve: <B extends Batches[number]>(
      askers: ReadonlyArray<Judgement.Asker>,
      batches: ReadonlyArray<B>
    ) => Effect.Effect<ReadonlyArray<B | Result.Result<Prepared>>, Unavailable>
    /** Whether the account has policies. */
    readonly isRuled: (accountId: AccountId) => Effect.Effect<boolean, Unavailable>
    /** Holds an op's spending from before its first signature until the chain has decided. */
    readonly bind: (
      asker: Judgement.Asker,
      op: UserOp,
      userOpHash: Bytes32
    ) => Effect.Effect<void, PayerRefusal | Unavailable>
    /** Likewise a transaction of the signer's own, under this nonce of the signer. */
    readonly bindDirect: (
      asker: Judgement.Asker,
      op: Extract<PreparedOp, { readonly kind: "direct" }>,
      nonce: bigint
    ) => Effect.Effect<void, PayerRefusal | Unavailable>
    /** Releases what unsigned elements hold. */
    readonly release: (context: OfRequest, elements: ReadonlyArray<Named>) => Effect.Effect<void>
  }
>()("castellan/Rules") {}

/** An element, or its prepared op. */
type Named = Pick<PreparedOp, "index" | "requestId"> &
  (
    | { readonly kind: "given"; readonly userOpHash: Bytes32 | null }
    | { readonly kind: Exclude<Call.Call["kind"], "given"> }
  )

type UserOp = Exclude<PreparedOp, { readonly kind: "direct" }>

interface Taken {
  readonly id: string
  readonly entries: ReadonlyArray<Limits.Entry>
  readonly failure: ElementFailure | null
}

/** Reservations of this process for an element, with the policies and the fees that they follow from. */
interface Reserved extends Pick<Taken, "entries" | "id"> {
  readonly book: Rulebook.Book
  readonly fees: bigint
}

/** Start of the ids of all holds of an element. */
const baseOf = (named: Named): string => {
  const { index, requestId } = named
  return `${holdId({ requestId, index, given: named.kind === "given" ? named.userOpHash : null })}/`
}

/** Id of the hold of an element under that nonce. */
const underNonce = (named: Named, nonce: bigint | string): string => `${baseOf(named)}${nonce}/spending`

/** Likewise under the nonce with which its op was prepared. */
const preparedId = (op: PreparedOp): string => underNonce(op, Nonce.make(op.nonceKey, op.sequence))

/** Age up to which a block is recent, milliseconds. */
const headMillis = 2_000

const make = Effect.gen(function* () {
  const rulebook = yield* Rulebook.Rulebook
  const budgets = yield* Budgets
  const rpcs = yield* ChainRpc
  const follower = yield* HoldFollower.HoldFollower

  /** Fails elements of the batches of an account with policies; other batches are returned unchanged. */
  const each = <A extends Judgement.Judged, B extends Batches[number]>(
    askers: ReadonlyArray<A>,
    batches: ReadonlyArray<B>,
    failingOf: (
      book: Rulebook.Book,
      all: ReadonlyArray<Made<A>>
    ) => Effect.Effect<ReadonlyArray<ReadonlyMap<number, ElementFailure>>, Unavailable>
  ): Effect.Effect<ReadonlyArray<B | Result.Result<Prepared>>, Unavailable> =>
    Effect.gen(function* () {
      const context = askers[0]?.context
      // The treasury's top-ups are the operator's own.
      if (context === undefined || context.access?.key === "treasury") return batches
      const book = yield* rulebook.of(context.accountId)
      if (book === null) return batches
      const all = new Map<number, Made<A>>()
      for (const [place, asker] of askers.entries()) {
        const made: Batches[number] = batches[place] ?? "busy"
        if (made !== "busy" && Result.isSuccess(made)) all.set(place, { asker, prepared: made.success })
      }
      const failing = yield* failingOf(book, [...all.values()])
      const left = new Map(
        [...all].map(([place, { asker, prepared }], position) => [
          place,
          Links.leaveOut(Call.dependencies(asker.calls), prepared, failing[position] ?? new Map())
        ])
      )
      return batches.map((batch, place) => {
        const made = left.get(place)
        return made === undefined ? batch : Result.succeed(made)
      })
    })

  /** By element; null: under several nonces. An element with one has no others. */
  const reserved = new Lru<string, Reserved | null>(16_384)

  const release: Rules["Service"]["release"] = ({ accountId, chainId }, elements) =>
    Effect.gen(function* () {
      if ((yield* rulebook.of(accountId)) === null) return
      const held = yield* Effect.forEach(elements, (named) => budgets.open(chainId, baseOf(named)))
      yield* budgets.release(
        chainId,
        held.flatMap((holds) => holds.map(({ id }) => id))
      )
    }).pipe((effect) => Effect.ignoreCause(effect, { log: "Debug" }))

  const judgeOne = (book: Rulebook.Book, { asker, prepared }: Made<Judgement.Judged>, now: number) =>
    Effect.gen(function* () {
      const { existing, failed, ops } = prepared
      const opOf = new Map(ops.map((op) => [op.index, op]))
      const isExisting = new Set(existing)
      let sums: ReadonlyMap<string, bigint> = new Map()
      const failing = new Map<number, ElementFailure>()
      const on = Call.dependencies(asker.calls)
      for (const call of asker.calls) {
        // Elements of later slices have no ops yet.
        if (failed.has(call.index) || isExisting.has(call.index)) continue
        // A refused element and its dependants take no room of their request.
        if (Links.hasFailed(on, failing, call.index)) continue
        const op = opOf.get(call.index)
        const element = Judgement.elementOf(book, asker, call, op)
        const own = new Map(sums)
        for (const whole of element.bound) {
          yield* EventLoop.breathe
          const bound = asker.isTrial === true ? Judgement.shown(whole) : whole
          const objection = Judgement.objection(book, asker, bound, element, op, now, own)
          if (objection === null) continue
          const failure = Judgement.refusalOf(bound, objection)
          if (bound.policy.mode === "enforce") failing.set(call.index, yield* Limits.countRefusal(failure))
          else yield* Limits.logRefusal({ requestId: asker.requestId, index: call.index }, failure)
        }
        if (!failing.has(call.index)) sums = own
      }
      return failing
    })

  const judge: Rules["Service"]["judge"] = (askers, batches) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      let names: ReadonlyArray<ReadonlyArray<PolicyName>> = []
      const judged = yield* each(askers, batches, (book, all) => {
        names = askers.map((asker) => Judgement.namesOf(book, asker))
        return Effect.forEach(all, (one) => judgeOne(book, one, now))
      })
      return { batches: judged, names }
    })

  const reserve: Rules["Service"]["reserve"] = (askers, batches) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      each(askers, batches, (book, all) =>
        Effect.gen(function* () {
          const groups = all.flatMap(({ asker, prepared }, place) => {
            const callOf = new Map(asker.calls.map((call) => [call.index, call]))
            return prepared.ops.flatMap((op) => {
              const call = callOf.get(op.index)
              if (call === undefined) return []
              const element = Judgement.elementOf(book, asker, call, op)
              const id = preparedId(op)
              const entries = Limits.entriesOf(asker, element, id, now + heldMillis)
              return { place, op, made: { id, entries, book, fees: element.spending.fees } }
            })
          })
          // Requests that arrive together hold in one transaction.
          const lacks = yield* Effect.mapError(budgets.reserve(groups.map(({ made }) => made.entries)), () =>
            unavailable()
          )
          const failing = all.map(() => new Map<number, ElementFailure>())
          for (const [position, { made, op, place }] of groups.entries()) {
            const failure = Limits.lackOf(made.entries, lacks[position])
            if (failure !== null) failing[place]?.set(op.index, yield* Limits.countRefusal(failure))
            const element = baseOf(op)
            const before = reserved.get(element)
            reserved.set(element, before === undefined || before?.id === made.id ? made : null)
          }
          yield* Limits.logObserved(
            budgets,
            groups.map(({ made, op: { index, requestId } }) => ({ entries: made.entries, index, requestId })),
            now
          )
          for (const [place, { asker }] of all.entries()) {
            const { calls, context } = asker
            const failed = new Map(failing[place])
            if (failed.size === 0) continue
            Links.failDependants(Call.dependencies(calls), failed)
            const left = calls.filter(({ index }) => failed.has(index))
            yield* Effect.provideService(Reservations.giveBack(context, left), Budgets, budgets)
            yield* release(context, left)
          }
          return failing
        })
      )
    )

  /** Without an operator's node nothing is freed. */
  const watchedOf = ({ accountId, connection }: OfRequest) => {
    const { profile } = connection
    if (profile.rpc === null) return Effect.succeed(null)
    const chain =
      connection.trust === "operator"
        ? Effect.succeed(connection.chain)
        : rpcs.connect(Redacted.value(profile.rpc), "operator")
    return Effect.map(chain, (made): HoldFollower.Watched => ({ accountId, chain: made, profile }))
  }

  const heads = new Map<bigint, { readonly at: number; readonly number: bigint }>()

  /** A recent block of the chain: no op signed now has landed before it. */
  const headOf = ({ chain, profile: { chainId } }: HoldFollower.Watched) =>
    Effect.gen(function* () {
      const at = yield* Clock.currentTimeMillis
      const known = heads.get(chainId)
      if (known !== undefined && at >= known.at && at - known.at < headMillis) return known.number
      const head = yield* chain.block("latest")
      if (head === null) return yield* unavailable()
      heads.set(chainId, { at, number: head.number })
      return head.number
    })

  /** `last`: id of the hold where that of `first` is another nonce's. */
  const bindAll = (
    asker: Judgement.Asker,
    op: PreparedOp,
    { first, last }: { readonly first: string; readonly last: string },
    noteOf: (call: Call.Call, since: bigint) => string
  ) =>
    Effect.gen(function* () {
      const { calls, context } = asker
      if (context.access.key === "treasury") return
      const book = yield* rulebook.of(context.accountId)
      const call = calls.find(({ index }) => index === op.index)
      if (book === null || call === undefined) return
      const { chainId } = context
      const watched = yield* watchedOf(context)
      // A caller's node could name a later block, so that a landing before it would be missed.
      const since = watched === null ? 0n : yield* headOf(watched)
      const note = noteOf(call, since)
      const bindHold = (id: string, terms: Pick<Binding, "exactly">) =>
        budgets.bind({ chainId, id, wei: 0n, due: since, ...terms }, note)
      const watch = (entries: ReadonlyArray<Limits.Entry>) =>
        watched === null || entries.length === 0 ? Effect.void : follower.watch(watched)
      const element = baseOf(op)
      const known = reserved.get(element)
      reserved.delete(element)
      if (known?.id === first && known.book === book && known.fees === Judgement.feesOf(context, op)) {
        const { entries } = known
        if (entries.length === 0 || (yield* bindHold(first, { exactly: entries })))
          return yield* watch(entries)
      }
      const spent = Judgement.elementOf(book, asker, call, op)
      const expiresAt = (yield* Clock.currentTimeMillis) + heldMillis
      const take = (id: string): Effect.Effect<Taken, BudgetsError> =>
        Effect.gen(function* () {
          const entries = Limits.entriesOf(asker, spent, id, expiresAt)
          const [lack] = yield* budgets.reserve([entries])
          if (lack?.reason !== "ended") return { id, entries, failure: Limits.lackOf(entries, lack) }
          // The landed version with the same nonce is booked, and nothing else can land there.
          return id === last ? { id, entries: [], failure: null } : yield* take(last)
        })
      const before = yield* budgets.open(chainId, element)
      const own = before.filter(({ bound, id }) => bound && id === first)
      const isFree = first === last || own.every(({ notes }) => notes.includes(note))
      const id = isFree ? first : last
      /** Releases what unsigned versions with other nonces hold. */
      const others = (of: string) =>
        budgets.release(
          chainId,
          before.flatMap((hold) => (hold.id === of ? [] : hold.id))
        )
      let taken = yield* take(id)
      if (taken.failure !== null) {
        yield* others(id)
        if (watched !== null) yield* follower.settle(watched)
        taken = yield* take(id)
      }
      if (taken.failure !== null)
        return yield* new PayerRefusal({ failure: yield* Limits.countRefusal(taken.failure) })
      const isBound = taken.entries.length === 0 || (yield* bindHold(taken.id, {}))
      if (!isBound) return yield* unavailable()
      yield* others(taken.id)
      yield* watch(taken.entries)
    }).pipe(
      Effect.mapError((error) =>
        error._tag === "PayerRefusal" || error._tag === "Unavailable" ? error : unavailable()
      )
    )

  const bind: Rules["Service"]["bind"] = (asker, op, userOpHash) => {
    const nonce = Nonce.make(op.nonceKey, op.sequence)
    const id = preparedId(op)
    return bindAll(asker, op, { first: id, last: id }, ({ wallet }, since) =>
      HoldFollower.note({
        userOpHash,
        entryPoint: op.space.entryPoint,
        since,
        validUntil: op.window?.validUntil ?? 0,
        wallet,
        nonce
      })
    )
  }

  const bindDirect: Rules["Service"]["bindDirect"] = (asker, op, nonce) => {
    const note = HoldFollower.directNote(asker.context.submitter, nonce, op.unsigned)
    return bindAll(asker, op, { first: preparedId(op), last: underNonce(op, `eoa${nonce}`) }, () => note)
  }

  return {
    judge,
    reserve,
    isRuled: (accountId: AccountId) => Effect.map(rulebook.of(accountId), (book) => book !== null),
    bind,
    bindDirect,
    release
  }
})

export const layer: Layer.Layer<
  Rules,
  never,
  Budgets | ChainRpc | Rulebook.Rulebook | HoldFollower.HoldFollower
> = Layer.effect(Rules, make)
