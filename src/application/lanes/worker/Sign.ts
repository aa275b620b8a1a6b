import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import * as Deployment from "../../../domain/wallet/Deployment.js"
import * as Delays from "../../failures/Delays.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import type { Failure } from "../../failures/Failure.js"
import * as StoreFailure from "../../failures/StoreFailure.js"
import * as Keys from "../../keys/Keys.js"
import type { PayerRefusal } from "../../payers/Payer.js"
import * as Submitter from "../../payers/Submitter.js"
import { withheld } from "../../ports/AuditLog.js"
import type { OpId, PreparedOp, Proof, SignedOp } from "../../ports/journal/Records.js"
import type { SignerError } from "../../ports/Signers.js"
import * as Reservations from "../../prepare/Reservations.js"
import * as Wait from "../../runtime/Wait.js"
import { type Obstacle, obstacle, type SubmissionContext } from "./rules/Context.js"

/**
 * Signs the ops that a lane's worker has chosen: first for the wallet, then for the payer.
 *
 * Gotchas: `bindHolds` runs before the first signature, since a signed op may land and its cost must be held.
 */

/** A chosen op with the settings it was accepted with. */
export interface Chosen {
  readonly opId: OpId
  readonly prepared: Exclude<PreparedOp, { readonly kind: "direct" }>
  readonly context: SubmissionContext
}

/** An op with its signature, followed by its payer's seal. */
export interface Sealed extends SignedOp {
  readonly seal: Hex.Hex
}

export type Signature =
  | { readonly _tag: "signed"; readonly op: Sealed }
  | { readonly _tag: "refused"; readonly failure: ElementFailure }
  | Obstacle

/** Wait for signatures, milliseconds. A slower signature keeps its op out of the current transaction, and completes later. */
const patienceMillis = 2_000

const ofSigner = (error: SignerError): Signature =>
  error.reason === "refused"
    ? {
        _tag: "refused",
        failure: elementFailure("signer_unavailable", undefined, { reason: Keys.unavailable(error) })
      }
    : obstacle(error.message)

const refusedFor = (failure: ElementFailure): Signature =>
  Delays.isPassing(failure) ? obstacle(failure.message) : { _tag: "refused", failure }

const ofError = (error: SignerError | PayerRefusal | Failure | Obstacle): Signature => {
  switch (error._tag) {
    case "Obstacle":
      return error
    case "SignerError":
      return ofSigner(error)
    case "PayerRefusal":
      return error.passes === true ? obstacle(error.failure.message) : refusedFor(error.failure)
    default:
      return obstacle(error.message)
  }
}

/** A creation's op with the deployer's authorisation in its initCode, instead of the one used for measurement. */
const authorise = (
  { context }: Chosen,
  op: UserOperation.UserOperation,
  bundler: Address
): Effect.Effect<UserOperation.UserOperation, SignerError | Obstacle> =>
  Effect.gen(function* () {
    const parsed = Deployment.parse(op.initCode)
    if (Result.isFailure(parsed))
      return yield* Effect.die(new Error(`a creation's initCode cannot be read: ${parsed.failure}`))
    const { deployment, factory } = parsed.success
    const { chainId } = context.connection.profile
    const deployer = yield* context.deployer
    const signature = yield* deployer.sign(Deployment.digest({ chainId, factory }, deployment, bundler))
    const authorization = Deployment.authorization(signature, bundler)
    return { ...op, initCode: Deployment.initCode(factory, deployment, authorization) }
  })

const isMade = (proof: Proof): proof is Extract<Proof, { readonly made: Hex.Hex }> =>
  proof !== null && proof !== "deployer" && "made" in proof

/** Proof of the wallet's consent, over the op's hash and its conditions. */
const proofOf = (
  context: SubmissionContext,
  proof: Exclude<Proof, { readonly made: Hex.Hex }>,
  signingHash: Hex.Bytes32
): Effect.Effect<Hex.Hex, SignerError | Obstacle> =>
  Effect.gen(function* () {
    if (proof === "deployer") return yield* (yield* context.deployer).sign(signingHash)
    if (proof === null) return yield* Effect.die(new Error("an op without a proof"))
    const parts = yield* Effect.forEach(
      proof.by.toSorted((one, other) => one.place - other.place),
      ({ signer }): Effect.Effect<Hex.Hex, SignerError | Obstacle> => {
        const key = context.keyOf(signer)
        return key === null
          ? Effect.fail(obstacle(`the request names no key ${signer} any more`))
          : key.sign(signingHash)
      },
      { concurrency: proof.by.length }
    )
    return Hex.concat(...parts)
  })

/** The op with all signatures except its payer's. */
const ownSignature = (chosen: Chosen, submitter: Address) =>
  Effect.gen(function* () {
    const { context, opId, prepared } = chosen
    const { kind, proof, unsigned, window } = prepared
    const { entryPoint, payer, version } = context
    const { chainId } = context.connection.profile
    const hashOf = (op: UserOperation.UserOperation) => UserOperation.hash(version, entryPoint, chainId, op)
    // Signed by its caller, under conditions that the caller chose.
    if (isMade(proof)) {
      const userOpHash = prepared.userOpHash ?? hashOf(unsigned)
      yield* context.bindHolds(prepared, userOpHash)
      return { opId, op: unsigned, userOpHash }
    }
    const bundler = Submitter.boundTo(context.connection.profile, submitter)
    const whole = kind === "creation" ? yield* authorise(chosen, unsigned, bundler) : unsigned
    const op = payer.paymaster === null ? whole : yield* payer.complete({ ...whole, signature: Hex.empty })
    const userOpHash =
      payer.paymaster === null && kind !== "creation" ? (prepared.userOpHash ?? hashOf(op)) : hashOf(op)
    yield* context.bindHolds(prepared, userOpHash)
    const conditions = { validAfter: 0, validUntil: 0, ...window, bundler }
    const made = yield* proofOf(context, proof, Conditions.signingHash(userOpHash, conditions))
    return { opId, op: { ...op, signature: Conditions.encodeSignature(conditions, made) }, userOpHash }
  })

/** Signs one op: its own signature, then its payer's seal. */
const sign = (chosen: Chosen, submitter: Address): Effect.Effect<Signature> =>
  Effect.gen(function* () {
    const { context, prepared } = chosen
    const { payer } = context
    const signed = yield* ownSignature(chosen, submitter)
    if (payer.paymaster === null && prepared.unsigned.paymasterAndData === Hex.empty)
      return { _tag: "signed", op: { ...signed, seal: Hex.empty } } satisfies Signature
    const part = { ...Reservations.partOf(prepared), op: signed.op }
    const seal = yield* payer.seal(part, signed.userOpHash)
    const op = { ...signed.op, signature: Hex.concat(signed.op.signature, seal) }
    return { _tag: "signed", op: { ...signed, op, seal } } satisfies Signature
  }).pipe(
    Effect.catch((error) => Effect.succeed(ofError(error))),
    Effect.catchDefect((defect) =>
      // Nothing has left the process: the op is tried again.
      StoreFailure.is(defect) ? Effect.succeed(obstacle(String(defect))) : Effect.die(defect)
    ),
    Effect.provideService(withheld, true)
  )

/** Signatures of a lane's ops, each made once per prepared version. */
export interface Signatures {
  /** Signatures of these ops available within two seconds; missing ones are still being made. */
  readonly of: (
    chosen: ReadonlyArray<Chosen>,
    submitter: Address
  ) => Effect.Effect<ReadonlyMap<OpId, Signature>>
  readonly isPending: (opId: OpId) => boolean
  readonly forget: (opIds: Iterable<OpId>) => void
}

interface Entry {
  readonly prepared: PreparedOp
  signature: Signature | null
}

/** `came`: a late signature arrived. */
export const make = (scope: Scope.Scope, came: () => void): Signatures => {
  const entries = new Map<OpId, Entry>()
  const awaited = new Set<Deferred.Deferred<void>>()

  const begin = (chosen: ReadonlyArray<Chosen>, submitter: Address) =>
    Effect.gen(function* () {
      const done = yield* Deferred.make<void>()
      awaited.add(done)
      const work = Effect.forEach(
        chosen,
        (each) => {
          const entry: Entry = { prepared: each.prepared, signature: null }
          entries.set(each.opId, entry)
          return Effect.map(sign(each, submitter), (signature) => {
            entry.signature = signature
            if (!awaited.has(done)) came()
          })
        },
        { concurrency: "unbounded", discard: true }
      )
      const crashed = Effect.sync(() => {
        // However signing ended, the op is tried again.
        for (const { opId, prepared } of chosen) {
          const entry = entries.get(opId)
          if (entry?.prepared === prepared && entry.signature === null) entries.delete(opId)
        }
      })
      yield* Effect.forkIn(
        Effect.ensuring(work, Effect.andThen(crashed, Deferred.succeed(done, undefined))),
        scope,
        { startImmediately: true }
      )
      return done
    })

  return {
    of: (chosen, submitter) =>
      Effect.gen(function* () {
        const fresh = chosen.filter(({ opId, prepared }) => {
          const entry = entries.get(opId)
          return entry === undefined || entry.prepared !== prepared || entry.signature?._tag === "Obstacle"
        })
        if (fresh.length > 0) {
          const done = yield* begin(fresh, submitter)
          if (!(yield* Deferred.isDone(done)))
            yield* Effect.ensuring(
              Wait.atMost(Deferred.await(done), patienceMillis, () => Effect.void),
              Effect.sync(() => awaited.delete(done))
            )
        }
        const made = new Map<OpId, Signature>()
        for (const { opId, prepared } of chosen) {
          const entry = entries.get(opId)
          if (entry?.prepared === prepared && entry.signature !== null) made.set(opId, entry.signature)
        }
        return made
      }),
    isPending: (opId) => entries.get(opId)?.signature === null,
    forget: (opIds) => {
      for (const opId of opIds) entries.delete(opId)
    }
  }
}
