import type { Fireblocks } from "@fireblocks/ts-sdk"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { KeyProviderError, RawSignature } from "../../application/ports/KeyProvider.js"
import * as Hex from "../../domain/primitives/Hex.js"
import type { Call } from "./Connection.js"
import * as Failure from "./Failure.js"

/** A transaction of operation RAW: digests that Fireblocks' policy, approvers and MPC nodes decide about. */
export interface Transaction {
  readonly id: string
  /** - `waiting`: for approval, signature or its turn; `refused`: it will never be signed */
  readonly state: "waiting" | "completed" | "refused"
  /** Its status and sub-status by their names. */
  readonly told: string
  /** Unix milliseconds of its last change; 0 where none is told. */
  readonly changed: number
  /** By digest, of a completed one. */
  readonly signatures: ReadonlyMap<Hex.Bytes32, RawSignature>
}

/** What is asked for; Fireblocks takes an external id once and for ever. */
export interface Wanted {
  readonly vaultAccountId: string
  readonly assetId: string
  readonly externalTxId: string
  readonly digests: ReadonlyArray<Hex.Bytes32>
}

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
    return Failure.broken("the answer holds no transaction")
  const sub = nameOf(subStatus)
  return Effect.succeed({
    id,
    state: name === "COMPLETED" ? "completed" : refused.has(name) ? "refused" : "waiting",
    told: sub === "" ? name : `${name} (${sub})`,
    changed: Number(lastUpdated ?? createdAt) || 0,
    signatures: signaturesOf(signedMessages)
  })
}

const asked = (call: Call, send: (client: Fireblocks) => Promise<{ readonly data: unknown }>) =>
  Effect.flatMap(Effect.mapError(call(send), Failure.from), ({ data }) => read(data))

/** As it stands now. */
export const get = (call: Call, txId: string): Effect.Effect<Transaction, KeyProviderError> =>
  asked(call, ({ transactions }) => transactions.getTransaction({ txId }))

/**
 * The transaction of this external id: a new one, or the one that was made before, of which the answer may have been
 * lost. Fireblocks answers 400 to a second one; then it is looked up, and if there is none, the 400 was about the request.
 */
export const ensure = (
  call: Call,
  { assetId, digests, externalTxId, vaultAccountId }: Wanted
): Effect.Effect<Transaction, KeyProviderError> => {
  const create = call(({ transactions }) =>
    transactions.createTransaction({
      transactionRequest: {
        operation: "RAW",
        assetId,
        source: { type: "VAULT_ACCOUNT", id: vaultAccountId },
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
      Failure.statusOf(error) === 400
        ? asked(call, ({ transactions }) => transactions.getTransactionByExternalId({ externalTxId })).pipe(
            Effect.mapError((lookup) => (lookup.reason === "notFound" ? Failure.from(error) : lookup))
          )
        : Effect.fail(Failure.from(error))
  })
}
