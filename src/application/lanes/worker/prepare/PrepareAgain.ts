import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Nonces from "../../../../domain/erc4337/Nonce.js"
import type * as Address from "../../../../domain/primitives/Address.js"
import { Lru } from "../../../../domain/primitives/Lru.js"
import * as WalletEpochs from "../../../chain/WalletEpochs.js"
import * as Delays from "../../../failures/Delays.js"
import type { ElementFailure } from "../../../failures/Elements.js"
import type { Failure } from "../../../failures/Failure.js"
import { type Asker, DecisionHook } from "../../../policies/DecisionHook.js"
import { Rules } from "../../../policies/Rules.js"
import type { Budgets } from "../../../ports/Budgets.js"
import type { Body, Op, Opening, OpId, PreparedOp, Unopened } from "../../../ports/journal/Records.js"
import type { RequestJournal } from "../../../ports/journal/RequestJournal.js"
import type { Signer } from "../../../ports/Signers.js"
import type * as Call from "../../../prepare/Call.js"
import type * as OpContext from "../../../prepare/OpContext.js"
import * as Sift from "../../../prepare/ops/Sift.js"
import * as Slices from "../../../prepare/ops/Slices.js"
import type { Prepared as Made, Nonce } from "../../../prepare/Preparation.js"
import * as PrepareCalls from "../../../prepare/PrepareCalls.js"
import * as Reservations from "../../../prepare/Reservations.js"
import * as ServiceEoa from "../../../prepare/ServiceEoa.js"
import type * as Contexts from "../rules/Context.js"
import type { Context, Obstacle, Prepared, Preparer } from "../rules/Context.js"
import { asObstacle, obstacle } from "../rules/Context.js"
import * as Openings from "../rules/Opening.js"

/** Prepares accepted requests from their bodies, by the functions that intake uses. */

export interface Source extends Asker {
  readonly keys: ReadonlyArray<Signer>
}

export interface Dependencies {
  readonly requestJournal: Pick<RequestJournal["Service"], "bodies" | "read">
  /** The request as it was offered to this process; undefined: its body has it. */
  readonly offered: (requestId: string) => Asker | undefined
  /** Parses a body as its endpoint does. `chainId`: of its lane. */
  readonly read: (body: Body, chainId: bigint) => Effect.Effect<Source, Failure>
  readonly deployer: Contexts.SubmissionContext["deployer"]
}

const ofElement = (failure: ElementFailure): Prepared =>
  Delays.isPassing(failure) ? obstacle(failure.message) : { _tag: "failed", failure }

const ofRequest = (failure: Failure): Prepared =>
  Delays.ofFailure(failure) === null
    ? { _tag: "failed", failure: Delays.asElement(failure) }
    : obstacle(failure.message)

/** Result of one element; null: unknown. `lacks`: ops without enough money. */
const becomeOf = (
  index: number,
  { existing, failed, ops, waiting }: Made,
  lacks: ReadonlyMap<PreparedOp, ElementFailure>
): Prepared | null => {
  const next = ops.find((each) => each.index === index)
  const lack = next === undefined ? undefined : lacks.get(next)
  const failure = failed.get(index)
  if (lack !== undefined) return obstacle(lack.message)
  if (next !== undefined) return { _tag: "prepared", prepared: next }
  if (failure !== undefined) return ofElement(failure)
  if (existing.includes(index)) return { _tag: "done" }
  return waiting.has(index) ? obstacle("its window has not begun") : null
}

/** Maximum contexts, by digest: a restart reads only one body for each. */
const most = 1_024

/** Total elements of remembered requests: a request opened in slices is not read for each slice. */
const mostElements = 16_384

type Known = Context & { readonly shared: OpContext.OfRequest }

export const make = ({
  deployer,
  offered,
  read,
  requestJournal
}: Dependencies): Effect.Effect<Preparer, never, PrepareCalls.Services | Budgets | DecisionHook | Rules> =>
  Effect.gen(function* () {
    const services = yield* Effect.context<PrepareCalls.Services | Budgets>()
    const { decide } = yield* DecisionHook
    const rules = yield* Rules
    const contexts = new Lru<string, Known>(most)
    const known = new Lru<string, Source>(mostElements, ({ calls }) => calls.length)

    const { bodies: bodiesOf } = requestJournal

    const sourceIn = (body: Body, chainId: bigint): Effect.Effect<Source, Obstacle> =>
      Effect.suspend(() => {
        const before = known.get(body.requestId)
        if (before !== undefined) return Effect.succeed(before)
        return Effect.tap(Effect.mapError(read(body, chainId), asObstacle), (source) =>
          Effect.sync(() => known.set(body.requestId, source))
        )
      })

    const sourcesOf = (requestIds: ReadonlyArray<string>, chainId: bigint) =>
      Effect.gen(function* () {
        const sources = new Map<string, Result.Result<Source, Obstacle>>()
        for (const requestId of requestIds) {
          const before = known.get(requestId)
          if (before !== undefined) sources.set(requestId, Result.succeed(before))
        }
        const unknown = requestIds.filter((requestId) => !sources.has(requestId))
        for (const body of unknown.length === 0 ? [] : yield* bodiesOf(unknown))
          sources.set(body.requestId, yield* Effect.result(sourceIn(body, chainId)))
        return sources
      })

    const sourceOf = (requestId: string, chainId: bigint): Effect.Effect<Source, Obstacle> =>
      Effect.gen(function* () {
        const source = (yield* sourcesOf([requestId], chainId)).get(requestId)
        if (source === undefined) return yield* Effect.fail(obstacle("its request is not in the journal"))
        return yield* Effect.fromResult(source)
      }).pipe(Effect.mapError(asObstacle))

    const contextOf = (
      { contextDigest, requestId }: Parameters<Preparer["contextOf"]>[0],
      chainId: bigint
    ): Effect.Effect<Known, Obstacle> =>
      Effect.gen(function* () {
        const name = contextDigest ?? `request ${requestId}`
        const before = contexts.get(name)
        if (before !== undefined) return before
        const { context: shared, keys } = yield* sourceOf(requestId, chainId)
        const byAddress = new Map(keys.map((key) => [key.address, key]))
        const askerOf = (requestId: string): Effect.Effect<Asker, Obstacle> => {
          const known = offered(requestId)
          return known === undefined ? sourceOf(requestId, chainId) : Effect.succeed(known)
        }
        const limited = (op: PreparedOp, bind: (asker: Asker) => ReturnType<typeof rules.bind>) =>
          Effect.flatMap(rules.isRuled(shared.accountId), (isRuled) =>
            isRuled
              ? Effect.flatMap(askerOf(op.requestId), (asker) => bind({ ...asker, context: shared }))
              : Effect.void
          )
        const made: Known =
          shared.kind === "direct"
            ? {
                ...shared,
                shared,
                bindHolds: (op: Parameters<Contexts.DirectContext["bindHolds"]>[0], nonce: bigint) =>
                  limited(op, (asker) => rules.bindDirect(asker, op, nonce)),
                release: (op) => rules.release(shared, [op])
              }
            : {
                ...shared,
                shared,
                keyOf: (address) => byAddress.get(address) ?? null,
                deployer,
                bindHolds: (
                  ...[prepared, userOpHash]: Parameters<Contexts.SubmissionContext["bindHolds"]>
                ) => {
                  const spending = limited(prepared, (asker) => rules.bind(asker, prepared, userOpHash))
                  return prepared.kind === "given" && ServiceEoa.isAtRisk(shared)
                    ? Effect.andThen(
                        Effect.provideContext(
                          ServiceEoa.bind(shared, {
                            ...Reservations.partOf(prepared),
                            l1Fee: prepared.l1Fee
                          }),
                          services
                        ),
                        spending
                      )
                    : spending
                },
                release: (op) =>
                  Effect.andThen(
                    op.kind === "direct" ? Effect.void : shared.payer.release([Reservations.partOf(op)]),
                    rules.release(shared, [op])
                  )
              }
        contexts.set(name, made)
        return made
      })

    const under = (
      context: Context,
      ops: ReadonlyArray<Op>,
      nonceOf: (op: Op) => Nonce
    ): Effect.Effect<ReadonlyMap<OpId, Prepared>, Obstacle> =>
      Effect.gen(function* () {
        const { shared } = context as Known
        const sources = yield* sourcesOf([...new Set(ops.map(({ requestId }) => requestId))], shared.chainId)
        const prepared = new Map<OpId, Prepared>()
        const wanted = new Map(ops.map((op) => [`${op.requestId} ${op.index}`, op]))
        const batches = [...sources].flatMap(([requestId, source]) => {
          const own = ops.filter((op) => op.requestId === requestId)
          if (Result.isFailure(source)) {
            for (const { opId } of own) prepared.set(opId, source.failure)
            return []
          }
          const indexes = new Set(own.map(({ index }) => index))
          const calls = source.success.calls.filter(({ index }) => indexes.has(index))
          // A window that has not begun, perhaps because a block was undone, is awaited.
          return [{ ...source.success, requestId, calls, isAccepted: true, mayWait: true }]
        })
        if (batches.length === 0) return prepared
        const made = yield* PrepareCalls.prepare({
          context: shared,
          batches,
          nonceOf: ({ index, requestId }) => {
            const op = wanted.get(`${requestId} ${index}`)
            return op === undefined ? { key: 0n, sequence: null } : nonceOf(op)
          }
        })
        const { batches: judged } = yield* rules.judge(batches, made.batches)
        const all = judged.flatMap((each) => (Result.isSuccess(each) ? each.success.ops : []))
        // Higher prices need larger reservations; without enough money the op waits.
        const lacks =
          shared.kind === "direct" || made.snapshot === null
            ? new Map<PreparedOp, ElementFailure>()
            : yield* Reservations.reserve(shared, all, made.snapshot.prices)
        for (const [place, { requestId }] of batches.entries()) {
          const result = judged[place]
          const own = ops.filter((op) => op.requestId === requestId)
          if (result === undefined) continue
          if (Result.isFailure(result)) {
            for (const { opId } of own) prepared.set(opId, ofRequest(result.failure))
            continue
          }
          for (const { index, opId } of own) {
            const become = becomeOf(index, result.success, lacks)
            if (become !== null) prepared.set(opId, become)
          }
        }
        return prepared
      }).pipe(Effect.provideContext(services), Effect.mapError(asObstacle))

    /**
     * Returns a function that takes free nonce keys of these wallets in an epoch, each once; null: none left. Intake may choose
     * the same key meanwhile: the journal decides, and the loser retries.
     */
    const freeKeys = ({ spaceOf }: OpContext.Shared, wallets: Iterable<Address.Address>) =>
      Effect.gen(function* () {
        const all = [...new Set(wallets)]
        const seen = yield* requestJournal.read({ idempotency: [], spaces: all.map(spaceOf) })
        const used = new Map(all.map((wallet, place) => [wallet, new Set(seen.spaces[place]?.keys)]))
        return (wallet: Address.Address, epoch: bigint): bigint | null => {
          const taken = used.get(wallet) ?? new Set()
          const { from, to } = Nonces.inEpoch(Nonces.serviceKeys, epoch)
          let key = from
          while (key <= to && taken.has(key)) key += 1n
          if (key > to) return null
          used.set(wallet, taken.add(key))
          return key
        }
      })

    const headOf = ({ connection: { chain } }: Context) =>
      Effect.filterOrFail(
        chain.block("latest"),
        (head) => head !== null,
        () => obstacle("the node has no block")
      )

    /** A nonce key for each op, in its wallet's current configuration. */
    const keysAnew = (context: Known, ops: ReadonlyArray<Op>) =>
      Effect.gen(function* () {
        const { shared } = context
        // Transactions of the EOA itself have no nonce keys.
        if (shared.kind === "direct") return new Map<OpId, bigint>()
        const take = yield* freeKeys(
          shared,
          ops.map(({ space }) => space.wallet)
        )
        const head = yield* headOf(context)
        const free = new Map<OpId, bigint>()
        for (const { nonceKey, opId, space } of ops) {
          const epoch = yield* WalletEpochs.at(context.connection.chain, space.wallet, head.number)
          const key = take(space.wallet, epoch ?? Nonces.epochOf(Nonces.make(nonceKey, 0n)))
          if (key === null) return yield* Effect.fail(Openings.busy)
          free.set(opId, key)
        }
        return free
      })

    const open = (context: Known, requests: ReadonlyArray<Unopened>) =>
      Effect.gen(function* () {
        const { shared } = context
        const openings = new Map<string, Result.Result<Opening, Obstacle>>()
        // Direct requests are opened at acceptance.
        if (shared.kind === "direct") return openings
        const { timestamp } = yield* headOf(context)
        const todo: Array<Openings.Todo & { readonly source: Source }> = []
        let room = Slices.size
        for (const body of yield* bodiesOf(requests.map(({ requestId }) => requestId))) {
          const source = yield* Effect.result(sourceIn(body, shared.chainId))
          if (Result.isFailure(source)) openings.set(body.requestId, Result.fail(source.failure))
          else if (room > 0) {
            const left = Openings.unopenedOf(body, source.success.calls)
            const waiting = Sift.waitingOf(shared, left, timestamp)
            const batch = { ...source.success, requestId: body.requestId, isAccepted: true, mayWait: true }
            const calls = Openings.firstOf(left.filter(({ index }) => !waiting.has(index)))
            todo.push({ left, waiting, source: source.success, batch: { ...batch, calls } })
            room -= calls.length
          }
        }
        const take = yield* freeKeys(
          shared,
          todo.flatMap(({ batch }) => batch.calls.map(({ wallet }) => wallet))
        )
        const made = yield* PrepareCalls.open({
          context: shared,
          batches: todo.map(({ batch }) => batch),
          take
        })
        const askers = todo.map(({ batch, source }) => ({ ...source, calls: batch.calls }))
        const judged = yield* rules.judge(askers, made.batches)
        const decided = yield* decide(askers, judged.batches)
        const batches = yield* rules.reserve(askers, decided)
        const all = batches.flatMap((each) => (Result.isSuccess(each) ? each.success.ops : []))
        const lacks = yield* Reservations.reserve(shared, all, made.snapshot.prices)
        const now = yield* Clock.currentTimeMillis
        const opened = new Set<PreparedOp>()
        for (const [place, one] of todo.entries()) {
          const result = batches[place]
          if (result === undefined) continue
          const opening = Openings.of(one, result, lacks, { now, timestamp })
          openings.set(one.batch.requestId, opening)
          for (const op of Result.isSuccess(opening) ? opening.success.ops : []) opened.add(op)
        }
        // Ops that wait with a delayed component hold reservations.
        const left = all.filter((op) => !opened.has(op))
        yield* Reservations.release(
          shared,
          left.filter((op) => !lacks.has(op))
        )
        yield* rules.release(shared, left)
        return openings
      })

    const unopened = (requestIds: ReadonlyArray<string>, chainId: bigint) =>
      Effect.gen(function* () {
        const calls = new Map<string, ReadonlyArray<Call.OpCall> | null>()
        for (const requestId of requestIds)
          for (const body of yield* bodiesOf([requestId])) {
            if (body.cancelled !== null || body.opened.length >= body.elements) continue
            const source = yield* Effect.result(read(body, chainId))
            if (Result.isFailure(source) && source.failure._tag === "Unavailable")
              return yield* Effect.fail(source.failure)
            calls.set(
              requestId,
              Result.isFailure(source)
                ? null
                : Openings.unopenedOf(body, source.success.calls).flatMap((call) =>
                    call.kind === "op" ? call : []
                  )
            )
          }
        return calls
      }).pipe(Effect.mapError(asObstacle))

    return {
      contextOf,
      unopened,
      again: (context, ops) => under(context, ops, ({ nonceKey, sequence }) => ({ key: nonceKey, sequence })),
      anew: (context, ops) =>
        Effect.flatMap(Effect.mapError(keysAnew(context as Known, ops), asObstacle), (keys) =>
          under(context, ops, ({ nonceKey, opId }) => ({ key: keys.get(opId) ?? nonceKey, sequence: null }))
        ),
      repricingOf: (requestId, chainId) =>
        Effect.flatMap(sourceOf(requestId, chainId), ({ calls: [call], context }) =>
          call?.kind === "repricing" && context.kind === "direct"
            ? Effect.succeed({ context, fillUnknown: call.fillUnknown })
            : Effect.fail(obstacle("it asks for something else"))
        ),
      open: (context, requests) =>
        Effect.mapError(Effect.provideContext(open(context as Known, requests), services), asObstacle),
      revertOf: (op, data) =>
        Effect.match(sourceOf(op.requestId, op.space.chainId), {
          onFailure: () => data,
          onSuccess: ({ revert }) => revert(data)
        })
    }
  })
