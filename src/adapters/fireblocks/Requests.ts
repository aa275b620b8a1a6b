import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { KeyProviderError, RawSignature } from "../../application/ports/KeyProvider.js"
import type * as Hex from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import { Lru } from "../../domain/primitives/Lru.js"
import type { Call } from "./Connection.js"
import * as Failure from "./Failure.js"
import * as Transaction from "./Transaction.js"

/** The key of one asset of one vault account. */
export interface Place {
  readonly vaultAccountId: string
  readonly assetId: string
}

/** How long a refusal answers for the same digests, before they may be put to the approvers once more. */
export const refusalMillis = 60_000

/** Most transactions that may ever be made of the same digests. */
const maxAttempts = 32

/** Most digests whose transactions are remembered. */
const maxRemembered = 10_000

/** Digests that travel together, and the transaction that they have become. */
interface Request {
  readonly place: Place
  readonly digests: ReadonlyArray<Hex.Bytes32>
  attempt: number
  id: string | null
}

/** The same digests of the same key have the same id, whoever asks: a retry, a later request, another process. */
const externalTxId = ({ attempt, digests, place: { assetId, vaultAccountId } }: Request): string =>
  `castellan-${Keccak.hashText([vaultAccountId, assetId, ...digests].join("/")).slice(2, 50)}-${attempt}`

/**
 * Signs digests of this key. A digest that already waits in a transaction waits there, and is in no second one: while the
 * process lives by what it remembers, across processes by the external id. A transaction that was refused counts for a
 * minute; after it the same digests make the next one.
 */
export const make = (call: Call, place: Place, pollMillis: number) => {
  const remembered = new Lru<Hex.Bytes32, Request>(maxRemembered)

  const remember = (request: Request) => {
    for (const digest of request.digests) remembered.set(digest, request)
  }
  const forget = (request: Request) => {
    for (const digest of request.digests) if (remembered.get(digest) === request) remembered.delete(digest)
  }

  /** The requests that carry these digests: those that wait, and one for the rest. */
  const carriers = (digests: ReadonlySet<Hex.Bytes32>): ReadonlySet<Request> => {
    const rest = [...digests].filter((digest) => remembered.get(digest) === undefined).sort()
    if (rest.length > 0) remember({ place, digests: rest, attempt: 0, id: null })
    return new Set([...digests].flatMap((digest) => remembered.get(digest) ?? []))
  }

  const current = (request: Request) =>
    request.id === null
      ? Transaction.ensure(call, { ...place, digests: request.digests, externalTxId: externalTxId(request) })
      : Transaction.get(call, request.id)

  const follow = (
    request: Request,
    told: (status: string) => void
  ): Effect.Effect<ReadonlyMap<Hex.Bytes32, RawSignature>, KeyProviderError> =>
    Effect.gen(function* () {
      let watched = false
      while (true) {
        const transaction = yield* current(request)
        told(transaction.told)
        if (transaction.state === "completed") {
          // What completes at once comes without signatures in the answer to its creation.
          if (request.id === transaction.id || transaction.signatures.size > 0) {
            forget(request)
            return transaction.signatures
          }
          request.id = transaction.id
          continue
        }
        if (transaction.state === "waiting") {
          watched = true
          request.id = transaction.id
          yield* Effect.sleep(pollMillis)
          continue
        }
        const age = (yield* Clock.currentTimeMillis) - transaction.changed
        if (watched || age < refusalMillis) {
          forget(request)
          return yield* Failure.make("refused", `the transaction is ${transaction.told}`)
        }
        if (request.attempt + 1 >= maxAttempts) {
          forget(request)
          return yield* Failure.make(
            "refused",
            `the transaction is ${transaction.told}, the ${maxAttempts}th`
          )
        }
        request.attempt += 1
        request.id = null
      }
    })

  return (
    digests: ReadonlyArray<Hex.Bytes32>,
    told: (status: string) => void
  ): Effect.Effect<ReadonlyArray<RawSignature>, KeyProviderError> =>
    Effect.gen(function* () {
      const answers = yield* Effect.forEach(carriers(new Set(digests)), (request) => follow(request, told), {
        concurrency: "unbounded"
      })
      return yield* Effect.forEach(digests, (digest) => {
        const signature = answers.map((answer) => answer.get(digest)).find((found) => found !== undefined)
        return signature === undefined
          ? Failure.broken("the answer holds no signature of a digest")
          : Effect.succeed(signature)
      })
    })
}
