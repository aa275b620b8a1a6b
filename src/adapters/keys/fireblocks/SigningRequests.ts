import type { Fireblocks } from "@fireblocks/ts-sdk"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { KeyProviderError, RawSignature } from "../../../application/ports/KeyProvider.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Keccak from "../../../domain/primitives/Keccak.js"
import { Lru } from "../../../domain/primitives/Lru.js"
import { broken, type Call, failure, fromSdk, statusOf } from "./Connection.js"

/** Signs digests by RAW transactions of Fireblocks, which may wait for approvers. `KeyProvider` uses it. */

/** The key of a vault account's asset. */
export interface Place {
  readonly vaultAccountId: string
  readonly assetId: string
}

/** A RAW transaction: digests for Fireblocks' policy, approvers and MPC nodes. */
interface Transaction {
  readonly id: string
  /** - `waiting`: for approval, signature or its turn; `refused`: will never be signed */
  readonly state: "waiting" | "completed" | "refused"
  /** Names of its status and sub-status. */
  readonly statusText: string
  /** Unix milliseconds of its last change; 0 when absent. */
  readonly changed: number
  /** By digest, once completed. */
  readonly signatures: ReadonlyMap<Hex.Bytes32, RawSignature>
}

/** Lifetime of a refusal, in ms; then the same digests may be submitted for approval again. */
export const refusalMillis = 60_000

/** Most transactions ever created for the same digests. */
const maxAttempts = 32

/** Most digests with remembered transactions. */
const maxRemembered = 10_000

const refused: ReadonlySet<string> = new Set([
  "REJECTED",
  "BLOCKED",
  "CANCELLED",
  "FAILED",
  "TIMEOUT",
  "REJECTED_BY_BLOCKCHAIN"
])

const nameOf = (value: unknown): string =>
  typeof value === "string" && /^[A-Z0-9][A-Z0-9_]{0,79}$/.test(value) ? value : ""

const word = /^(?:0x)?([0-9a-fA-F]{64})$/

const wordOf = (value: unknown): string | null =>
  typeof value === "string" ? (word.exec(value)?.[1]?.toLowerCase() ?? null) : null

const signaturesOf = (signedMessages: unknown): ReadonlyMap<Hex.Bytes32, RawSignature> => {
  const found = new Map<Hex.Bytes32, RawSignature>()
  for (const message of Array.isArray(signedMessages) ? signedMessages : []) {
    const { content, signature } = Predicate.isObject(message) ? message : {}
    const [digest, r, s] = [
      wordOf(content),
      ...(Predicate.isObject(signature) ? [wordOf(signature.r), wordOf(signature.s)] : [])
    ]
    if (digest && r && s) found.set(Hex.unsafe32(`0x${digest}`), { r: BigInt(`0x${r}`), s: BigInt(`0x${s}`) })
  }
  return found
}

const read = (data: unknown): Effect.Effect<Transaction, KeyProviderError> => {
  const { createdAt, id, lastUpdated, signedMessages, status, subStatus } = Predicate.isObject(data)
    ? data
    : {}
  const name = nameOf(status)
  if (typeof id !== "string" || !/^[\w-]{1,100}$/.test(id) || name === "")
    return broken("the answer holds no transaction")
  const sub = nameOf(subStatus)
  return Effect.succeed({
    id,
    state: name === "COMPLETED" ? "completed" : refused.has(name) ? "refused" : "waiting",
    statusText: sub === "" ? name : `${name} (${sub})`,
    changed: Number(lastUpdated ?? createdAt) || 0,
    signatures: signaturesOf(signedMessages)
  })
}

const ask = (call: Call, send: (client: Fireblocks) => Promise<{ readonly data: unknown }>) =>
  Effect.flatMap(Effect.mapError(call(send), fromSdk), ({ data }) => read(data))

/** Digests submitted together, and their transaction. */
interface Request {
  readonly digests: ReadonlyArray<Hex.Bytes32>
  attempt: number
  id: string | null
}

/** Equal digests of a key have an equal id in every retry, later request and process. */
const externalIdOf = ({ assetId, vaultAccountId }: Place, { attempt, digests }: Request): string =>
  `castellan-${Keccak.hashText([vaultAccountId, assetId, ...digests].join("/")).slice(2, 50)}-${attempt}`

/**
 * Creates the request's transaction, or finds the existing one, whose response may have been lost. Fireblocks accepts an
 * external id only once, ever, and answers a second use with 400. The transaction is then looked up; if there is none, the
 * 400 concerned the request.
 */
const ensure = (call: Call, place: Place, request: Request): Effect.Effect<Transaction, KeyProviderError> => {
  const externalTxId = externalIdOf(place, request)
  const { digests } = request
  const create = call(({ transactions }) =>
    transactions.createTransaction({
      transactionRequest: {
        operation: "RAW",
        assetId: place.assetId,
        source: { type: "VAULT_ACCOUNT", id: place.vaultAccountId },
        externalTxId,
        note: `castellan: ${digests.length} ${digests.length === 1 ? "digest" : "digests"}`,
        extraParameters: {
          rawMessageData: {
            messages: digests.map((digest) => ({ content: digest.slice(2) })),
            algorithm: "MPC_ECDSA_SECP256K1"
          }
        }
      }
    })
  )
  return Effect.matchEffect(create, {
    onSuccess: ({ data }) => read(data),
    onFailure: (error) =>
      statusOf(error) === 400
        ? ask(call, ({ transactions }) => transactions.getTransactionByExternalId({ externalTxId })).pipe(
            Effect.mapError((lookup) => (lookup.reason === "notFound" ? fromSdk(error) : lookup))
          )
        : fromSdk(error)
  })
}

/**
 * Signs digests of this key. A digest is never in two waiting transactions: the process remembers its own, and the external
 * id covers other processes. A refusal stands for a minute; then the same digests create a new transaction.
 */
export const make = (call: Call, place: Place, pollMillis: number) => {
  const remembered = new Lru<Hex.Bytes32, Request>(maxRemembered)

  const forget = (request: Request) => {
    for (const digest of request.digests) if (remembered.get(digest) === request) remembered.delete(digest)
  }

  /** Requests with these digests: the waiting ones, and one new request for the others. */
  const carriers = (digests: ReadonlySet<Hex.Bytes32>): ReadonlySet<Request> => {
    const rest = [...digests].filter((digest) => remembered.get(digest) === undefined).sort()
    const fresh = { digests: rest, attempt: 0, id: null }
    for (const digest of rest) remembered.set(digest, fresh)
    return new Set([...digests].flatMap((digest) => remembered.get(digest) ?? []))
  }

  const current = (request: Request) => {
    const { id } = request
    return id === null
      ? ensure(call, place, request)
      : ask(call, ({ transactions }) => transactions.getTransaction({ txId: id }))
  }

  const follow = Effect.fnUntraced(function* (request: Request, logStatus: (status: string) => void) {
    let watched = false
    while (true) {
      const transaction = yield* current(request)
      logStatus(transaction.statusText)
      if (transaction.state === "completed") {
        // A transaction completed on creation comes without signatures in that response.
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
      const isLast = request.attempt + 1 >= maxAttempts
      if (watched || age < refusalMillis || isLast) {
        forget(request)
        const which = watched || age < refusalMillis ? "" : `, the ${maxAttempts}th`
        return yield* failure("refused", `the transaction is ${transaction.statusText}${which}`)
      }
      request.attempt += 1
      request.id = null
    }
  })

  return Effect.fnUntraced(function* (
    digests: ReadonlyArray<Hex.Bytes32>,
    logStatus: (status: string) => void
  ): Effect.fn.Return<ReadonlyArray<RawSignature>, KeyProviderError> {
    const answers = yield* Effect.forEach(
      carriers(new Set(digests)),
      (request) => follow(request, logStatus),
      {
        concurrency: "unbounded"
      }
    )
    const signatures = new Map(answers.flatMap((answer) => [...answer]))
    return yield* Effect.forEach(digests, (digest) => {
      const signature = signatures.get(digest)
      return signature === undefined
        ? broken("the answer holds no signature of a digest")
        : Effect.succeed(signature)
    })
  })
}
