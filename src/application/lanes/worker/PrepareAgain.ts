import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Hex } from "../../../domain/primitives/Hex.js"
import { Lru } from "../../../domain/primitives/Lru.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import type { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import type { Body, Op, OpId } from "../../ports/journal/Records.js"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { Signer } from "../../ports/Signers.js"
import type * as Call from "../../prepare/Call.js"
import * as Creation from "../../prepare/Creation.js"
import type * as OpContext from "../../prepare/OpContext.js"
import * as Prepare from "../../prepare/Prepare.js"
import type { Batch, Prepared as Made, Nonce } from "../../prepare/Preparing.js"
import * as Snapshot from "../../prepare/Snapshot.js"
import type { ElementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import type { Context, Obstacle, Prepared, Preparing } from "./Context.js"
import { obstacle } from "./Context.js"

/** Prepares accepted ops again, out of the bodies of their requests, by the function that prepared them before. */

/** What an accepted request asks for. */
export interface Source {
  readonly context: OpContext.Shared
  readonly calls: ReadonlyArray<Call.Call>
  readonly revert: (data: Hex) => string
  /** The keys of its settings. */
  readonly keys: ReadonlyArray<Signer>
}

export interface Dependencies {
  readonly requestJournal: Pick<RequestJournal["Service"], "bodies">
  /** Reads a body, as its endpoint does when it comes. */
  readonly read: (body: Body) => Effect.Effect<Source, Failure>
  readonly deployer: Context["deployer"]
}

const ofFailure = (failure: Failure): Obstacle => obstacle(failure.message)

/** Contexts are remembered by their digest: a restart reads one body for each, and no more. */
const most = 1_024

interface Known extends Context {
  readonly shared: OpContext.Shared
}

const isKind =
  <K extends Call.Call["kind"]>(kind: K) =>
  (call: Call.Call): call is Extract<Call.Call, { readonly kind: K }> =>
    call.kind === kind

/**
 * Batches whose calls are of one kind. What came signed is never changed, and a transaction of the signer's own is priced where
 * it is signed: both stay as they are.
 */
const preparedOf = (
  context: OpContext.Shared,
  batches: ReadonlyArray<Batch>,
  nonceOf: (call: Call.Call) => Nonce
): Effect.Effect<ReadonlyArray<Result.Result<Made, Failure>>, Failure, BundlerRpc | ChainFacts> =>
  Effect.gen(function* () {
    const ops = batches.map((batch) => ({ ...batch, calls: batch.calls.filter(isKind("op")) }))
    const creations = batches.map((batch) => ({ ...batch, calls: batch.calls.filter(isKind("creation")) }))
    const calls = ops.flatMap((batch) => batch.calls)
    const wallets = new Set(
      [...calls, ...creations.flatMap((batch) => batch.calls)].map(({ wallet }) => wallet)
    )
    const snapshot = yield* Snapshot.read(
      context,
      [...wallets],
      calls.map(({ data, to, value }) => ({ target: to, value, data }))
    )
    const input = { context, snapshot, nonceOf }
    return calls.length > 0
      ? yield* Prepare.prepare({ ...input, batches: ops })
      : yield* Creation.prepare({ ...input, batches: creations })
  })

export const make = ({
  deployer,
  read,
  requestJournal
}: Dependencies): Effect.Effect<
  Preparing & { readonly revertOf: (op: Op, data: Hex) => Effect.Effect<string> },
  never,
  BundlerRpc | ChainFacts
> =>
  Effect.gen(function* () {
    const services = yield* Effect.context<BundlerRpc | ChainFacts>()
    const contexts = new Lru<string, Known>(most)

    const sourcesOf = (requestIds: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const bodies = yield* Effect.mapError(requestJournal.bodies(requestIds), ({ message }) =>
          obstacle(message)
        )
        const sources = new Map<string, Result.Result<Source, Obstacle>>()
        for (const body of bodies)
          sources.set(body.requestId, yield* Effect.result(Effect.mapError(read(body), ofFailure)))
        return sources
      })

    const sourceOf = (requestId: string): Effect.Effect<Source, Obstacle> =>
      Effect.flatMap(sourcesOf([requestId]), (sources) => {
        const source = sources.get(requestId)
        return source === undefined
          ? Effect.fail(obstacle("its request is not in the journal"))
          : Effect.fromResult(source)
      })

    const contextOf = (op: Op): Effect.Effect<Known, Obstacle> =>
      Effect.gen(function* () {
        const name = op.contextDigest ?? `request ${op.requestId}`
        const known = contexts.get(name)
        if (known !== undefined) return known
        const { context: shared, keys } = yield* sourceOf(op.requestId)
        const byAddress = new Map(keys.map((key) => [key.address, key]))
        const made: Known = {
          ...shared,
          shared,
          keyOf: (address) => byAddress.get(address) ?? null,
          deployer
        }
        contexts.set(name, made)
        return made
      })

    const again: Preparing["again"] = (context, ops) =>
      Effect.gen(function* () {
        const { shared } = context as Known
        const sources = yield* sourcesOf([...new Set(ops.map(({ requestId }) => requestId))])
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
          return [{ requestId, calls, revert: source.success.revert, isAccepted: true, mayWait: false }]
        })
        if (batches.length === 0) return prepared
        const made = yield* preparedOf(shared, batches, ({ index, requestId }) => {
          const op = wanted.get(`${requestId} ${index}`)
          return { key: op?.nonceKey ?? 0n, sequence: op?.sequence ?? null }
        })
        for (const [place, { requestId }] of batches.entries()) {
          const result = made[place]
          const own = ops.filter((op) => op.requestId === requestId)
          if (result === undefined) continue
          if (Result.isFailure(result)) {
            for (const { opId } of own) prepared.set(opId, ofFailure(result.failure))
            continue
          }
          const { failed, ops: renewed } = result.success
          for (const { index, opId } of own) {
            const next = renewed.find((each) => each.index === index)
            const failure: ElementFailure | undefined = failed.get(index)
            if (next !== undefined) prepared.set(opId, { _tag: "prepared", prepared: next })
            else if (failure !== undefined) prepared.set(opId, { _tag: "failed", failure })
          }
        }
        return prepared
      }).pipe(
        Effect.provideContext(services),
        Effect.mapError((error) => (error._tag === "Obstacle" ? error : ofFailure(error)))
      )

    return {
      contextOf,
      again,
      // New nonces need keys that intake alone gives out.
      anew: () => Effect.fail(obstacle("its nonce is used for good")),
      revertOf: (op, data) =>
        Effect.match(sourceOf(op.requestId), {
          onFailure: () => data,
          onSuccess: ({ revert }) => revert(data)
        })
    }
  })
