import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Hex from "../../domain/evm/Hex.js"
import * as Conditions from "../../domain/op/Conditions.js"
import * as Nonce from "../../domain/op/Nonce.js"
import * as UserOperation from "../../domain/op/UserOperation.js"
import type { Caller } from "../Caller.js"
import * as Decoding from "../Decoding.js"
import * as Connection from "../engine/Connection.js"
import { type ElementFailure, elementFailure } from "../engine/Elements.js"
import type { Engine } from "../engine/Engine.js"
import * as Estimation from "../engine/Estimation.js"
import * as Keys from "../engine/Keys.js"
import * as Preparation from "../engine/Preparation.js"
import * as Submitter from "../engine/Submitter.js"
import * as Wallets from "../engine/Wallets.js"
import type { Failure } from "../Failure.js"
import type { AbiStore } from "../ports/AbiStore.js"
import type { ChainRpc } from "../ports/ChainRpc.js"
import { Journal, type NonceSpace } from "../ports/Journal.js"
import type { Networks } from "../ports/Networks.js"
import { type Signers, SystemSigners } from "../ports/Signers.js"
import * as Settings from "../Settings.js"
import * as Calls from "./Calls.js"
import { draft } from "./ExecuteOperations.js"
import { Operation } from "./Operation.js"
import * as OwnedWallets from "./OwnedWallets.js"

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForOps
}).annotations({ identifier: "EstimateGasRequest" })
export type Request = typeof Request.Type

/** An op that is ready to be signed and sent to `/executeEncoded`. */
export const EstimatedOp = Schema.Struct({
  encodedUserOp: Schema.String,
  userOpHash: Schema.String,
  signingHash: Schema.String.annotations({
    description: "What to sign when the op shall be bound to its bundler."
  }),
  bundler: Schema.String.annotations({ description: "The only EOA that may submit it; zero: any." }),
  aggrIndexes: Schema.Array(Schema.Int).annotations({
    description: "Indexes of the request's operations that this op carries."
  })
}).annotations({ identifier: "EstimatedOp" })

export const Response = Schema.Struct({
  status: Schema.Int.annotations({ description: "0 failed, 1 success" }),
  gas: Schema.Int.annotations({ description: "Sum of the ops' gas limits, buffers included." }),
  userOps: Schema.Array(EstimatedOp),
  error: Schema.NullOr(Schema.String)
}).annotations({ identifier: "EstimateGasResponse" })
export type Response = typeof Response.Type

/** How long a nonce key is kept for an op that was handed out, milliseconds. */
export const handedOutMillis = 15 * 60_000

/**
 * Encodes and estimates the operations as `/execute` would, and hands out the ops unsigned. Each gets a nonce key of
 * its own, so that they may be signed and sent in any order, or not at all.
 */
export const run = (
  caller: Caller,
  request: Request
): Effect.Effect<
  Response,
  Failure,
  AbiStore | ChainRpc | Engine | Journal | Networks | Signers | SystemSigners
> =>
  Effect.gen(function* () {
    const { settings } = request
    yield* Preparation.available(settings)
    const calls = yield* Calls.encodeAll(request.operations)
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const signer = settings.signer === undefined ? null : yield* Keys.resolve(caller, settings.signer)
    const connection = yield* Connection.open(caller, settings.rpc)
    const { profile } = connection
    const system = yield* SystemSigners
    const submitter =
      signer?.address ?? (yield* Effect.mapError(system.serviceEoa, Keys.refusal("settings.signer"))).address
    const ground = yield* Preparation.ground(connection, settings, submitter, caller)
    const { chainId, entryPoint, formula, spaceOf, version } = ground
    const wallets = yield* Either.all(
      calls.map(({ index, selector }) => Wallets.select(selector, formula, profile, `operations[${index}]`))
    )
    const distinct = [...new Set(wallets)]
    const look = yield* Preparation.look(ground, distinct)
    const failed = new Map<number, ElementFailure>(
      yield* OwnedWallets.refuse(
        calls.map(({ index, selector }, position) => ({
          index,
          wallet: wallets[position] ?? entryPoint,
          walletCustody: selector.walletCustody
        })),
        look.wallets,
        // The signer named here submits; who proves the wallet's consent turns out when the ops come back.
        null
      )
    )
    const journal = yield* Journal
    const nonces = new Map<number, bigint>()
    for (const wallet of distinct) {
      const indexes = calls
        .map(({ index }) => index)
        .filter((index) => wallets[index] === wallet && !failed.has(index))
      const keys = yield* lease(journal, caller, spaceOf(wallet), signer === null, indexes.length)
      for (const [position, index] of indexes.entries()) {
        const key = keys[position]
        if (key === undefined) failed.set(index, elementFailure("wallet_busy"))
        else nonces.set(index, Nonce.make(key, 0n))
      }
    }
    const bundler = Submitter.boundTo(profile, submitter)
    const conditions = { validUntil: 0, validAfter: 0, bundler }
    const estimate = yield* Estimation.estimate({
      ground,
      entryPointCode: look.entryPointCode,
      from: submitter,
      drafts: calls.flatMap((call) => {
        const nonce = nonces.get(call.index)
        const wallet = wallets[call.index]
        return nonce === undefined || wallet === undefined
          ? []
          : [draft(call, { wallet, nonce, prices: look.prices, conditions })]
      }),
      declared: false,
      verify: true,
      revert: decoding.revert
    })
    yield* Preparation.checkImplementation(connection, estimate.implementation, settings.validator)
    for (const [index, failure] of estimate.failed) failed.set(index, failure)
    const userOps = estimate.estimated.map(({ index, op: measured }) => {
      const op = {
        ...measured,
        nonce: Nonce.make(Nonce.keyOf(measured.nonce), estimate.sequences.get(index) ?? 0n),
        signature: Hex.empty
      }
      const userOpHash = UserOperation.hash(version, entryPoint, chainId, op)
      return {
        encodedUserOp: UserOperation.encode(version, op),
        userOpHash,
        signingHash: Conditions.signingHash(userOpHash, conditions),
        bundler,
        aggrIndexes: [index]
      }
    })
    if (userOps.length === 0) yield* Effect.ignore(journal.release(caller.requestId))
    const [firstFailed] = [...failed].sort(([a], [b]) => a - b)
    return {
      status: firstFailed === undefined ? 1 : 0,
      gas: Number(
        estimate.estimated.reduce(
          (sum, { op }) => sum + op.callGasLimit + op.verificationGasLimit + op.preVerificationGas,
          0n
        )
      ),
      userOps,
      error: firstFailed === undefined ? null : `operations[${firstFailed[0]}]: ${firstFailed[1].message}`
    }
  }).pipe(
    Effect.onError(() =>
      Effect.flatMap(Journal, (journal) => Effect.ignore(journal.release(caller.requestId)))
    ),
    Effect.catchTag("Unprocessable", ({ details, message }) =>
      Effect.succeed({
        status: 0,
        gas: 0,
        userOps: [],
        error: details[0] === undefined ? message : `${message}: ${details[0].message}`
      })
    ),
    Effect.withSpan("EstimateGas")
  )

const lease = (
  journal: Journal["Type"],
  caller: Caller,
  space: NonceSpace,
  anonymous: boolean,
  count: number
): Effect.Effect<ReadonlyArray<bigint>> =>
  count === 0
    ? Effect.succeed([])
    : Effect.map(
        Effect.orDie(
          journal.lease({
            ...space,
            holder: caller.requestId,
            // Leased under different authorities: keys of their own keep the nonces apart.
            keys: anonymous ? Nonce.anonymousKeys : Nonce.handedOutKeys,
            count,
            ttlMillis: handedOutMillis
          })
        ),
        (keys) => keys ?? []
      )
