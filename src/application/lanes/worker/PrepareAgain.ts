import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Nonces from "../../../domain/erc4337/Nonce.js"
import type { Hex } from "../../../domain/primitives/Hex.js"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as WalletEpochs from "../../chain/WalletEpochs.js"
import type { ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { Body, Op, OpId } from "../../ports/journal/Records.js"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { Signer } from "../../ports/Signers.js"
import * as Again from "../../prepare/Again.js"
import type * as Call from "../../prepare/Call.js"
import type * as OpContext from "../../prepare/OpContext.js"
import type { Nonce } from "../../prepare/Preparing.js"
import * as ServiceEoa from "../../prepare/ServiceEoa.js"
import type { ElementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import * as Delays from "../requests/Delays.js"
import type { Context, Obstacle, Prepared, Preparing } from "./rules/Context.js"
import { obstacle } from "./rules/Context.js"

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
  readonly requestJournal: Pick<RequestJournal["Service"], "bodies" | "look">
  /** Reads a body, as its endpoint does when it comes. `chainId` is that of its lane. */
  readonly read: (body: Body, chainId: bigint) => Effect.Effect<Source, Failure>
  readonly deployer: Context["deployer"]
}

const asObstacle = (error: Obstacle | ChainRpcError): Obstacle =>
  error._tag === "Obstacle" ? error : obstacle(error.message)

const ofFailure = (failure: Failure): Obstacle => obstacle(failure.message)

const ofElement = (failure: ElementFailure): Prepared =>
  Delays.isPassing(failure) ? obstacle(failure.message) : { _tag: "failed", failure }

const ofRequest = (failure: Failure): Prepared =>
  Delays.ofFailure(failure) === null
    ? { _tag: "failed", failure: Delays.asElement(failure) }
    : ofFailure(failure)

/** Contexts are remembered by their digest: a restart reads one body for each, and no more. */
const most = 1_024

interface Known extends Context {
  readonly shared: OpContext.Shared
}

export const make = ({
  deployer,
  read,
  requestJournal
}: Dependencies): Effect.Effect<
  Preparing & { readonly revertOf: (op: Op, data: Hex) => Effect.Effect<string> },
  never,
  Again.Services
> =>
  Effect.gen(function* () {
    const services = yield* Effect.context<Again.Services>()
    const contexts = new Lru<string, Known>(most)

    const sourcesOf = (requestIds: ReadonlyArray<string>, chainId: bigint) =>
      Effect.gen(function* () {
        const bodies = yield* Effect.mapError(requestJournal.bodies(requestIds), ({ message }) =>
          obstacle(message)
        )
        const sources = new Map<string, Result.Result<Source, Obstacle>>()
        for (const body of bodies)
          sources.set(body.requestId, yield* Effect.result(Effect.mapError(read(body, chainId), ofFailure)))
        return sources
      })

    const sourceOf = ({
      requestId,
      space: { chainId }
    }: Pick<Op, "requestId" | "space">): Effect.Effect<Source, Obstacle> =>
      Effect.flatMap(sourcesOf([requestId], chainId), (sources) => {
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
        const { context: shared, keys } = yield* sourceOf(op)
        const byAddress = new Map(keys.map((key) => [key.address, key]))
        const made: Known = {
          ...shared,
          shared,
          keyOf: (address) => byAddress.get(address) ?? null,
          deployer,
          secure: (prepared) =>
            prepared.kind === "given" && ServiceEoa.isAtRisk(shared)
              ? Effect.provideContext(ServiceEoa.bind(prepared, shared.connection.profile), services)
              : Effect.void
        }
        contexts.set(name, made)
        return made
      })

    /** The ops under these nonces. */
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
          // A window that has not begun, by a block that was taken back perhaps, is waited for.
          return [{ requestId, calls, revert: source.success.revert, isAccepted: true, mayWait: true }]
        })
        if (batches.length === 0) return prepared
        const made = yield* Again.prepare({
          context: shared,
          batches,
          nonceOf: ({ index, requestId }) => {
            const op = wanted.get(`${requestId} ${index}`)
            return op === undefined ? { key: 0n, sequence: null } : nonceOf(op)
          }
        })
        for (const [place, { requestId }] of batches.entries()) {
          const result = made.batches[place]
          const own = ops.filter((op) => op.requestId === requestId)
          if (result === undefined) continue
          if (Result.isFailure(result)) {
            for (const { opId } of own) prepared.set(opId, ofRequest(result.failure))
            continue
          }
          const { existing, failed, ops: renewed, waiting } = result.success
          for (const { index, opId } of own) {
            const next = renewed.find((each) => each.index === index)
            const failure: ElementFailure | undefined = failed.get(index)
            if (next !== undefined) prepared.set(opId, { _tag: "prepared", prepared: next })
            else if (failure !== undefined) prepared.set(opId, ofElement(failure))
            else if (existing.includes(index)) prepared.set(opId, { _tag: "done" })
            else if (waiting.has(index)) prepared.set(opId, obstacle("its window has not begun"))
          }
        }
        return prepared
      }).pipe(
        Effect.provideContext(services),
        Effect.mapError((error) => (error._tag === "Obstacle" ? error : ofFailure(error)))
      )

    /** For each op a nonce key of its wallet as it is configured now that no op under way has. */
    const freeKeys = (
      { connection: { chain } }: Context,
      ops: ReadonlyArray<Op>
    ): Effect.Effect<ReadonlyMap<OpId, bigint>, Obstacle | ChainRpcError> =>
      Effect.gen(function* () {
        const spaces = new Map(ops.map(({ space }) => [space.wallet, space]))
        const seen = yield* Effect.mapError(
          requestJournal.look({ idempotency: [], spaces: [...spaces.values()] }),
          ({ message }) => obstacle(message)
        )
        const used = new Map(
          [...spaces.keys()].map((wallet, place) => [wallet, new Set(seen.spaces[place]?.keys)])
        )
        const head = yield* chain.block("latest")
        if (head === null) return yield* Effect.fail(obstacle("the node has no block"))
        const free = new Map<OpId, bigint>()
        for (const { nonceKey, opId, space } of ops) {
          const taken = used.get(space.wallet) ?? new Set()
          const epoch = yield* WalletEpochs.at(chain, space.wallet, head.number)
          const { from, to } = Nonces.inEpoch(
            Nonces.serviceKeys,
            epoch ?? Nonces.epochOf(Nonces.make(nonceKey, 0n))
          )
          let key = from
          while (key <= to && taken.has(key)) key += 1n
          if (key > to) return yield* Effect.fail(obstacle("its wallet has no free nonce key"))
          used.set(space.wallet, taken.add(key))
          free.set(opId, key)
        }
        return free
      })

    return {
      contextOf,
      again: (context, ops) => under(context, ops, ({ nonceKey, sequence }) => ({ key: nonceKey, sequence })),
      // Intake may choose the same keys meanwhile: the journal decides, and who loses tries again.
      anew: (context, ops) =>
        Effect.flatMap(Effect.mapError(freeKeys(context, ops), asObstacle), (keys) =>
          under(context, ops, ({ nonceKey, opId }) => ({ key: keys.get(opId) ?? nonceKey, sequence: null }))
        ),
      revertOf: (op, data) =>
        Effect.match(sourceOf(op), {
          onFailure: () => data,
          onSuccess: ({ revert }) => revert(data)
        })
    }
  })
