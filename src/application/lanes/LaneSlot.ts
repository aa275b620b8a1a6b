import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Address } from "../../domain/primitives/Address.js"
import type { ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { Lane, Route } from "../ports/journal/Transactions.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { InFlight } from "./InFlight.js"
import { goTogether } from "./InFlight.js"
import { type NonceManager, OtherRoute } from "./NonceManager.js"

/** Work that wants to send one transaction. */
export interface Work extends Lane {
  readonly route: Route
  /** The lane has fewer transactions in flight than that when it goes. */
  readonly below: number
  /** It creates a wallet: not while ops are on their way that call contracts. Work behind it waits with it. */
  readonly creates?: boolean
  /** Its place among the lane's work, from `arrive`. */
  readonly arrival: number
  /** The EOA's next nonce at the profile's `confirmations`. */
  readonly confirmedNonce: Effect.Effect<bigint, ChainRpcError>
}

/**
 * The order in which the lanes' work goes. A transaction goes when there is room for it, when no transaction of another
 * route is in flight (see `Route`), and when no work of another route waits that arrived before it: work of one route
 * cannot keep out that of another one for ever.
 */
export interface LaneSlots {
  /** A later place than all that were given before. */
  readonly arrive: () => number
  /**
   * Runs when it is the work's turn, while no other work of the lane does. Nothing of the lane is held while it waits:
   * what is stuck can be priced anew. Work that the journal refuses for its route waits and runs again. It is told what
   * to allocate with, see `AllocationRequest`.
   */
  readonly take: <A, E, R>(
    work: Work,
    effect: (drainedTo: bigint) => Effect.Effect<A, E | OtherRoute, R>
  ) => Effect.Effect<A, Exclude<E, OtherRoute>, R>
  /** How much work waits for its turn. */
  readonly waiting: (lane: Lane) => number
}

export const LaneSlots: Context.Key<LaneSlots, LaneSlots> = Context.Service("castellan/LaneSlots")

export const confirmedNonce = (
  chain: ChainClient,
  signer: Address,
  { confirmations }: Pick<NetworkProfile, "confirmations">
): Effect.Effect<bigint, ChainRpcError> =>
  confirmations <= 1
    ? chain.transactionCount(signer, "latest")
    : Effect.flatMap(chain.block("latest"), (head) => {
        const block = (head?.number ?? 0n) - BigInt(confirmations) + 1n
        return block < 0n ? Effect.succeed(0n) : chain.transactionCount(signer, block)
      })

/** What this process does not see (another process's transaction is mined) is looked at again this often. */
const recheckMillis = 1_000

export const make = (lanes: NonceManager, inFlight: InFlight): LaneSlots => {
  const waiting = new Map<string, Set<Work>>()
  let arrivals = 0

  const nameOf = ({ chainId, signer }: Lane): string => `${chainId}:${signer}`
  const queueOf = (lane: Lane): ReadonlySet<Work> => waiting.get(nameOf(lane)) ?? new Set()

  const enter = (work: Work): void => {
    waiting.set(nameOf(work), new Set([...queueOf(work), work]))
  }
  const leave = (work: Work): void => {
    const left = new Set([...queueOf(work)].filter((other) => other !== work))
    if (left.size > 0) waiting.set(nameOf(work), left)
    else waiting.delete(nameOf(work))
    inFlight.wake(work)
  }

  const isFirst = (work: Work): boolean =>
    [...queueOf(work)].every((other) => other.arrival >= work.arrival || goTogether(other.route, work.route))

  const pause = (work: Work): Effect.Effect<void> =>
    Effect.raceFirst(inFlight.changed(work), Effect.sleep(recheckMillis))

  /**
   * The nonce below which nothing holds the work up; null: a transaction of another route is in flight. The journal decides:
   * what this process watches in vain may be settled by another one. What the journal holds as signed has its nonce
   * used by another transaction, perhaps, and can never be mined: the chain decides then.
   */
  const clearTo = (work: Work, watched: boolean): Effect.Effect<bigint | null> =>
    Effect.gen(function* () {
      if (watched && inFlight.admits(work, work.route)) return 0n
      if (yield* lanes.admits(work, work.route, 0n)) return 0n
      const confirmed = yield* work.confirmedNonce
      return (yield* lanes.admits(work, work.route, confirmed)) ? confirmed : null
    }).pipe(Effect.orElseSucceed(() => null))

  const look = (work: Work, watched: boolean): Effect.Effect<bigint | null> =>
    Effect.suspend(() =>
      inFlight.count(work) < work.below &&
      isFirst(work) &&
      !(work.creates === true && inFlight.isCalling(work))
        ? clearTo(work, watched)
        : Effect.succeed(null)
    )

  const ready = (work: Work, watched: boolean): Effect.Effect<void> =>
    Effect.suspend(() => {
      // Taken before the look: what happens during it wakes this one.
      const paused = pause(work)
      return Effect.flatMap(look(work, watched), (drainedTo) =>
        drainedTo === null ? Effect.andThen(paused, ready(work, watched)) : Effect.void
      )
    })

  /** `watched`: what this process watches is all that is in flight, as far as is known. */
  const attempt = <A, E, R>(
    work: Work,
    effect: (drainedTo: bigint) => Effect.Effect<A, E | OtherRoute, R>,
    watched = true
  ): Effect.Effect<A, Exclude<E, OtherRoute>, R> =>
    ready(work, watched).pipe(
      Effect.andThen(
        lanes.exclusive(
          work,
          // Others may have gone in the meantime.
          Effect.flatMap(look(work, watched), (drainedTo) =>
            drainedTo === null ? Effect.succeed(Option.none<A>()) : Effect.asSome(effect(drainedTo))
          )
        )
      ),
      Effect.map((done) => ({ done, watched })),
      Effect.catch((error) =>
        error instanceof OtherRoute
          ? Effect.succeed({ done: Option.none<A>(), watched: false })
          : Effect.fail(error as Exclude<E, OtherRoute>)
      ),
      Effect.flatMap((tried) =>
        Option.match(tried.done, {
          onNone: () => attempt(work, effect, tried.watched),
          onSome: (done) => Effect.succeed(done)
        })
      )
    )

  return {
    arrive: () => arrivals++,
    take: (work, effect) =>
      Effect.acquireUseRelease(
        Effect.sync(() => enter(work)),
        () => attempt(work, effect),
        () => Effect.sync(() => leave(work))
      ),
    waiting: (lane) => queueOf(lane).size
  }
}
