import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Dependencies from "../../domain/erc4337/Dependencies.js"
import * as Nonce from "../../domain/erc4337/Nonce.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Custody from "../../domain/wallet/Custody.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import { type ElementFailure, elementFailure, noteOf, refuseAll } from "../failures/Elements.js"
import { type Failure, unprocessable } from "../failures/Failure.js"
import type { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import type { Acceptance, JournalQuery, JournalState } from "../ports/journal/Records.js"
import type { NonceSpace, OpRecord } from "../ports/journal/Requests.js"
import type { Lane } from "../ports/journal/Transactions.js"
import * as Call from "../prepare/Call.js"
import type { Offer } from "../prepare/Offer.js"
import type { OfRequest, Shared } from "../prepare/OpContext.js"
import * as Links from "../prepare/ops/Links.js"
import * as NotBegun from "../prepare/ops/NotBegun.js"
import * as Sift from "../prepare/ops/Sift.js"
import * as Slices from "../prepare/ops/Slices.js"
import * as Preparation from "../prepare/Preparation.js"
import * as Prepare from "../prepare/Prepare.js"
import * as PrepareCalls from "../prepare/PrepareCalls.js"
import * as Snapshot from "../prepare/Snapshot.js"
import * as Wallets from "../prepare/wallets/Wallets.js"
import type { Caller } from "../request/Caller.js"

/** Prepares requests that wait together with one journal read, one chain read and one measurement. */

/** A large request whose caller does not wait is opened in slices by its lane. */
const isLarge = ({ calls, mayWait }: Pick<Offer, "calls" | "mayWait">): boolean =>
  mayWait && calls.length > Slices.size

/** The journal read for these requests. */
export const question = (offers: ReadonlyArray<Offer>): JournalQuery => ({
  idempotency: offers.flatMap(({ caller: { idempotency }, context, endpoint }) =>
    idempotency == null ? [] : [{ accountId: context.accountId, endpoint, key: idempotency.key }]
  ),
  // Requests opened later get their keys then.
  spaces: spacesOf(offers.filter((offer) => !isLarge(offer)))
})

const spacesOf = (offers: ReadonlyArray<Offer>): ReadonlyArray<NonceSpace> => {
  const context = offers[0]?.context
  return context?.kind === "ops" ? Preparation.walletsOf(offers).map(context.spaceOf) : []
}

/** The accepted request with each offer's idempotency key; null: none. */
export const knownOf = (offers: ReadonlyArray<Offer>, { known }: JournalState): JournalState["known"] => {
  let place = 0
  return offers.map(({ caller: { idempotency } }) => {
    if (idempotency == null) return null
    place += 1
    return known[place - 1] ?? null
  })
}

/** Result of each request, in their order; `busy`: the request waits for ops in progress to end. */
export interface Made {
  readonly batches: ReadonlyArray<Result.Result<Preparation.Prepared, Failure> | "busy">
  /** Null for the signer's own transactions. */
  readonly snapshot: Snapshot.Snapshot | null
}

export interface Input<C extends Call.Call = Call.Call, K extends OfRequest = OfRequest> {
  readonly context: K
  /** `isPatient`: waits for a nonce key instead of failing the elements that find none. */
  readonly offers: ReadonlyArray<Offer<C> & { readonly isPatient: boolean }>
  /** See `Keys.take`. */
  readonly take: (space: NonceSpace, epoch: bigint) => bigint | null
  /** The account's posted op with the call's hash; null: none. */
  readonly posted: (caller: Caller, call: Call.GivenCall) => Effect.Effect<OpRecord | null>
}

/** Maximum elements named in a refusal. */
const mostNamed = 32

const snapshotOf = (context: Shared, offers: ReadonlyArray<Preparation.Batch<Call.OpCall>>) =>
  Snapshot.read(
    context,
    Preparation.walletsOf(offers),
    offers.flatMap(({ calls }) => calls.map(Sift.callOf)),
    offers.every(({ calls }) => calls.every(Sift.isTimeless)) ? "recent" : "now",
    offers.some(({ calls }) => calls.some(({ custody }) => Custody.usesPasskeys(custody))),
    payingOf(context)
  )

const busy: ElementFailure = elementFailure("wallet_busy")

/** One nonce key for each wallet that has a free one. */
const keysOf = (
  { context, offers, take }: Input<Call.OpCall, Shared>,
  { wallets }: Pick<Snapshot.Snapshot, "wallets">
): ReadonlyMap<Address, bigint> => {
  const keys = new Map<Address, bigint>()
  for (const wallet of Preparation.walletsOf(offers)) {
    const key = take(context.spaceOf(wallet), Wallets.epochOf(wallets.get(wallet)))
    if (key !== null) keys.set(wallet, key)
  }
  return keys
}

const isOfOtherEpochs = (
  keys: ReadonlyMap<Address, bigint>,
  { wallets }: Pick<Snapshot.Snapshot, "wallets">
): boolean =>
  [...keys].some(
    ([wallet, key]) => Nonce.epochOf(Nonce.make(key, 0n)) !== Wallets.epochOf(wallets.get(wallet))
  )

/** The request without the elements whose wallets have no key, and without their dependants. */
const withKeys = (offer: Offer<Call.OpCall>, keys: ReadonlyMap<Address, bigint>) => {
  const failed = new Map<number, ElementFailure>()
  for (const { index, wallet } of offer.calls) if (!keys.has(wallet)) failed.set(index, busy)
  Links.failDependants(Call.dependencies(offer.calls), failed)
  return { ...offer, calls: offer.calls.filter(({ index }) => !failed.has(index)), failed }
}

/** Checks a large request for acceptance as a whole; refuses it if an element can never be executed. */
const unopened = ({
  context,
  offers
}: Input<Call.OpCall, Shared>): Effect.Effect<Made, Failure, BundlerRpc | ChainFacts> =>
  Effect.gen(function* () {
    const [offer] = offers
    if (offer === undefined || offers.length > 1)
      return yield* Effect.die(new Error("a large request has a separate run"))
    const { calls } = offer
    const dependencies = Call.dependencies(calls)
    yield* Links.requireContract(dependencies, context.connection)
    const byIndex = new Map(calls.map((call) => [call.index, call]))
    const failed = new Map<number, ElementFailure>()
    const waiting = new Map<number, number>()
    let last: Snapshot.Snapshot | null = null
    for (const slice of Slices.of(
      dependencies,
      [...byIndex.keys()],
      (index) => byIndex.get(index)?.wallet ?? context.entryPoint
    )) {
      const batch = { ...offer, calls: slice.flatMap((index) => byIndex.get(index) ?? []) }
      const snapshot = yield* snapshotOf(context, [batch])
      last = snapshot
      const [checked] = yield* Prepare.check({
        context,
        snapshot,
        batches: [batch],
        nonceOf: PrepareCalls.ownNonce
      })
      if (checked === undefined) continue
      const found = yield* Effect.fromResult(checked)
      for (const [index, failure] of found.failed) failed.set(index, failure)
      for (const [index, time] of found.waiting) waiting.set(index, time)
    }
    const named = [...failed].sort(([one], [other]) => one - other).slice(0, mostNamed)
    if (named.length > 0) return yield* Effect.fail(refuseAll("operations", new Map(named), {}))
    if (last === null) return yield* Effect.die(new Error("a request without calls"))
    return { snapshot: last, batches: [Result.succeed({ ...Preparation.nothing, waiting })] }
  })

/** The EOA that pays for transactions; null: a remote bundler pays. */
const payingOf = ({ connection: { profile }, submitter }: OfRequest): Address | null =>
  profile.remoteBundler === null ? submitter : null

const ofOps = (input: Input<Call.OpCall, Shared>): Effect.Effect<Made, Failure, BundlerRpc | ChainFacts> =>
  Effect.gen(function* () {
    const { context, offers } = input
    if (offers.some(isLarge)) return yield* unopened(input)
    const { connection, payer } = context
    const wallets = Preparation.walletsOf(offers)
    const isTimeless = offers.every(({ calls }) => calls.every(Sift.isTimeless))
    const linked = offers.find(({ calls }) => Dependencies.any(Call.dependencies(calls)))
    const read = Effect.map(
      Effect.all(
        [
          snapshotOf(context, offers),
          linked === undefined
            ? Effect.void
            : Links.requireContract(Call.dependencies(linked.calls), connection)
        ],
        { concurrency: "unbounded" }
      ),
      ([snapshot]) => snapshot
    )
    // Timeless ops are measured on the last known snapshot while the current one is read.
    const last = isTimeless ? yield* Snapshot.lastSeen(context, wallets) : null
    const first = last === null ? yield* read : null
    let keys = keysOf(input, first ?? last ?? { wallets: new Map() })
    const inputOn = (snapshot: Snapshot.Snapshot): Sift.Input => ({
      context,
      snapshot,
      batches: offers.map((offer) => withKeys(offer, keys)),
      nonceOf: ({ wallet }) => ({ key: keys.get(wallet) ?? 0n, sequence: null })
    })
    const [snapshot, early] =
      first !== null || last === null
        ? [first ?? (yield* read), []]
        : yield* Effect.all(
            // The paymaster's service is not called twice.
            [read, payer.paymaster === null ? Prepare.initialSimulations(inputOn(last)) : Effect.succeed([])],
            { concurrency: "unbounded" }
          )
    if (isOfOtherEpochs(keys, snapshot)) keys = keysOf(input, snapshot)
    const ready = inputOn(snapshot)
    const isBusy = ({ calls, isPatient }: Input["offers"][number]) =>
      isPatient && calls.some(({ wallet }) => !keys.has(wallet))
    const todo = [...offers.keys()].filter((place) => {
      const offer = offers[place]
      return offer !== undefined && !isBusy(offer)
    })
    const made = yield* Prepare.prepare({
      ...ready,
      batches: todo.flatMap((place) => ready.batches[place] ?? []),
      early: todo.map((place) => early[place] ?? null)
    })
    const byPlace = new Map(todo.map((place, position) => [place, made[position]]))
    return {
      snapshot,
      batches: offers.map((offer, place) => {
        const own = byPlace.get(place)
        if (own === undefined) return "busy"
        const { failed } = withKeys(offer, keys)
        return Result.map(own, (prepared) =>
          failed.size === 0 ? prepared : { ...prepared, failed: new Map([...failed, ...prepared.failed]) }
        )
      })
    }
  })

/** Kind of the request's calls; a request without calls counts as operations. */
export const kindOf = ({ calls: [first] }: Pick<Offer, "calls">): Call.Call["kind"] => first?.kind ?? "op"

const isOp = (call: Call.Call): call is Call.OpCall => call.kind === "op"

/**
 * The calls of a request still to be prepared, and those already done: ops that the account posted before. `busy`: such an op
 * is in progress.
 */
const unposted = (
  { posted }: Input,
  offer: Input["offers"][number]
): Effect.Effect<Result.Result<Rest, Failure> | "busy"> =>
  Effect.gen(function* () {
    const existing: Array<number> = []
    const calls: Array<Call.Call> = []
    for (const call of offer.calls) {
      const before = call.kind === "given" ? yield* posted(offer.caller, call) : null
      if (before === null || before.state === "abandoned") calls.push(call)
      else if (before.state === "settled") existing.push(call.index)
      else if (offer.isPatient) return "busy"
      else {
        const extra = { txHash: before.txHash ?? "", requestId: before.requestId }
        return Result.fail(unprocessable("outcome_unknown", [], { extra }))
      }
    }
    return Result.succeed({ calls, existing })
  })

interface Rest {
  readonly calls: ReadonlyArray<Call.Call>
  readonly existing: ReadonlyArray<number>
}

const ofOthers = (input: Input): Effect.Effect<Made, Failure, PrepareCalls.Services> =>
  Effect.gen(function* () {
    const { context, offers } = input
    const rests = yield* Effect.forEach(offers, (offer) => unposted(input, offer))
    const todo = rests.flatMap((rest, place) => {
      const offer = offers[place]
      if (rest === "busy" || Result.isFailure(rest) || offer === undefined) return []
      const { calls } = rest.success
      return calls.length === 0 ? [] : [{ place, batch: { ...offer, calls } }]
    })
    const batches = todo.map(({ batch }) => batch)
    const made =
      batches.length === 0
        ? { batches: [], snapshot: null }
        : yield* PrepareCalls.prepare({
            context,
            batches,
            nonceOf: PrepareCalls.ownNonce,
            submitter: payingOf(context)
          })
    const byPlace = new Map(todo.map(({ place }, position) => [place, made.batches[position]]))
    return {
      snapshot: made.snapshot,
      batches: rests.map((rest, place) => {
        if (rest === "busy") return rest
        return Result.flatMap(rest, ({ existing }) =>
          Result.map(byPlace.get(place) ?? Result.succeed(Preparation.nothing), (prepared) => ({
            ...prepared,
            existing: [...existing, ...prepared.existing]
          }))
        )
      })
    }
  })

export const prepare = (input: Input): Effect.Effect<Made, Failure, PrepareCalls.Services> => {
  const { context, offers } = input
  return context.kind === "ops" && offers.every((offer) => kindOf(offer) === "op")
    ? ofOps({
        ...input,
        context,
        offers: offers.map((offer) => ({ ...offer, calls: offer.calls.filter(isOp) }))
      })
    : ofOthers(input)
}

export const laneOf = ({ context: { chainId, submitter } }: Offer): Lane => ({ chainId, signer: submitter })

/** Facts of a request at its acceptance, for those who ask later. */
export type Kept = Pick<Acceptance, "policies" | "previews">

/** `policies`: those that bind it. Makes previews if it asked for them. */
export const kept = (
  { preview }: Offer,
  made: Made["batches"][number] | undefined,
  policies: Kept["policies"] = []
): Effect.Effect<Kept, never, ChainFacts> =>
  Effect.map(
    preview === undefined || made === undefined || made === "busy" || Result.isFailure(made)
      ? Effect.succeed(null)
      : preview(made.success),
    (previews) => ({ policies, previews })
  )

/** A prepared request as the journal accepts it. */
export const acceptance = (
  offer: Offer,
  { deployments, existing, failed, funds, ops, waiting }: Preparation.Prepared,
  kept: Kept | undefined,
  timestamp: number,
  now: number
): Acceptance => {
  const { body, calls, caller, context, endpoint } = offer
  return {
    requestId: caller.requestId,
    accountId: context.accountId,
    endpoint,
    lane: laneOf(offer),
    key: context.access.key,
    body,
    contextDigest: context.digest,
    idempotency: caller.idempotency ?? null,
    arrivedAt: caller.arrivedAt ?? now,
    elements: calls.length,
    unopened: calls.length - ops.length - failed.size - existing.length,
    ops,
    funds,
    deployments,
    failed: [...failed].map(([index, failure]) => ({ index, ...failure })),
    note: noteOf(existing),
    metadata: caller.metadata ?? {},
    ...kept,
    // Null if an element can be opened now.
    schedule:
      waiting.size > 0 && ops.length + failed.size + existing.length + waiting.size === calls.length
        ? NotBegun.schedule(waiting, { timestamp }, now)
        : null
  }
}
