import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { Address } from "../../domain/evm/Address.js"
import * as Hex from "../../domain/evm/Hex.js"
import * as Conditions from "../../domain/op/Conditions.js"
import * as Nonce from "../../domain/op/Nonce.js"
import * as Proof from "../../domain/op/Proof.js"
import * as UserOperation from "../../domain/op/UserOperation.js"
import type { Caller } from "../Caller.js"
import * as Decoding from "../Decoding.js"
import * as Connection from "../engine/Connection.js"
import type { CurrentRequest } from "../engine/CurrentRequest.js"
import type { ElementFailure } from "../engine/Elements.js"
import { Engine } from "../engine/Engine.js"
import * as Estimation from "../engine/Estimation.js"
import * as Keys from "../engine/Keys.js"
import * as Preparation from "../engine/Preparation.js"
import type { AnsweredElsewhere } from "../engine/Requests.js"
import * as Results from "../engine/Results.js"
import type * as Sending from "../engine/Sending.js"
import * as Submission from "../engine/Submission.js"
import * as Submitter from "../engine/Submitter.js"
import * as Wallets from "../engine/Wallets.js"
import type { Failure } from "../Failure.js"
import type { AbiStore } from "../ports/AbiStore.js"
import type { Bundler } from "../ports/Bundler.js"
import type { ChainRpc } from "../ports/ChainRpc.js"
import { Journal } from "../ports/Journal.js"
import type { Networks } from "../ports/Networks.js"
import type { Signers } from "../ports/Signers.js"
import * as Settings from "../Settings.js"
import { Executed } from "../TransactionResult.js"
import * as Calls from "./Calls.js"
import { Operation } from "./Operation.js"
import * as OwnedWallets from "./OwnedWallets.js"

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForSubmission
}).annotations({ identifier: "ExecuteRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** An op before it is measured: everything but its limits, with a dummy signature of the real shape. */
export const draft = (
  call: Calls.EncodedCall,
  options: {
    readonly wallet: Address
    readonly nonce: bigint
    readonly prices: Preparation.Look["prices"]
    readonly conditions: Conditions.Conditions
  }
): Estimation.Draft => ({
  index: call.index,
  value: call.value,
  op: {
    sender: options.wallet,
    nonce: options.nonce,
    initCode: Hex.empty,
    callData: call.callData,
    callGasLimit: 0n,
    verificationGasLimit: 0n,
    preVerificationGas: 0n,
    maxFeePerGas: options.prices.maxFeePerGas,
    maxPriorityFeePerGas: options.prices.maxPriorityFeePerGas,
    paymasterAndData: Hex.empty,
    signature: Conditions.encodeSignature(options.conditions, Proof.dummyEcdsa(1))
  }
})

/** What its requests need beside the caller. */
export type Requirements = AbiStore | Bundler | ChainRpc | Engine | Journal | Networks | Signers

export const kind = { endpoint: "/execute", Request, Response }

/**
 * Encodes the operations as ERC-4337 ops, estimates, signs and executes them with the request's signer, and answers
 * with what became of each.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.flatMap(Engine, ({ requests }) => requests.run(kind, caller, request, work(caller, request)))

const work = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure | AnsweredElsewhere, Requirements | CurrentRequest> =>
  Effect.gen(function* () {
    const { settings } = request
    yield* Preparation.available(settings)
    const calls = yield* Calls.encodeAll(request.operations)
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const signer = yield* Keys.resolve(caller, settings.signer)
    const connection = yield* Connection.open(caller, settings.rpc)
    const { profile } = connection
    const ground = yield* Preparation.ground(connection, settings, signer.address, caller)
    const { chainId, entryPoint, formula, spaceOf, version } = ground
    const wallets = yield* Either.all(
      calls.map(({ index, selector }) => Wallets.select(selector, formula, profile, `operations[${index}]`))
    )
    const acting = calls.map(({ index, selector }, position) => ({
      index,
      wallet: wallets[position] ?? entryPoint,
      walletCustody: selector.walletCustody
    }))
    const journal = yield* Journal

    /**
     * One key for each wallet, up to the first that has none left. In one order, so that of two requests for the
     * same wallets one gets all it needs.
     */
    const lease = (distinct: ReadonlyArray<Address>) =>
      Effect.gen(function* () {
        const keys = new Map<Address, bigint>()
        for (const wallet of [...distinct].sort()) {
          const leased = yield* Effect.orDie(
            journal.lease({
              ...spaceOf(wallet),
              holder: caller.requestId,
              keys: Nonce.serviceKeys,
              count: 1,
              ttlMillis: Preparation.leaseMillis
            })
          )
          const [key] = leased ?? []
          if (key === undefined) return { keys, busy: wallet }
          keys.set(wallet, key)
        }
        return { keys, busy: null }
      })

    const prepare = (elements: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        const todo = acting.filter(({ index }) => elements.includes(index))
        const distinct = [...new Set(todo.map(({ wallet }) => wallet))]
        const { busy, keys } = yield* lease(distinct)
        if (busy !== null)
          return { busy: todo.filter(({ wallet }) => wallet === busy).map(({ index }) => index) }
        const look = yield* Preparation.look(ground, distinct)
        const failed = new Map<number, ElementFailure>(
          yield* OwnedWallets.refuse(todo, look.wallets, signer.address)
        )
        const conditions = {
          validUntil: Preparation.validUntil(look.block),
          validAfter: 0,
          bundler: Submitter.boundTo(profile, signer.address)
        }
        const estimate = yield* Estimation.estimate({
          ground,
          entryPointCode: look.entryPointCode,
          from: signer.address,
          drafts: todo
            .filter(({ index }) => !failed.has(index))
            .flatMap(({ index, wallet }) => {
              const call = calls[index]
              const nonce = Nonce.make(keys.get(wallet) ?? 0n, 0n)
              return call === undefined
                ? []
                : [draft(call, { wallet, nonce, prices: look.prices, conditions })]
            }),
          declared: false,
          verify: false,
          revert: decoding.revert
        })
        yield* Preparation.checkImplementation(connection, estimate.implementation, settings.validator)
        for (const [index, failure] of estimate.failed) failed.set(index, failure)

        const used = new Map<Address, bigint>()
        const ready = estimate.estimated.map((each): Sending.Ready => {
          const { index, prefund, value } = each
          const wallet = each.op.sender
          const nonceKey = Nonce.keyOf(each.op.nonce)
          const before = used.get(wallet) ?? 0n
          used.set(wallet, before + 1n)
          const nonce = Nonce.make(nonceKey, (estimate.sequences.get(index) ?? 0n) + before)
          const op = { ...each.op, nonce }
          const userOpHash = UserOperation.hash(version, entryPoint, chainId, op)
          return {
            index,
            op,
            space: spaceOf(wallet),
            nonceKey,
            sequence: Nonce.sequenceOf(nonce),
            reserve: prefund + value,
            l1Fee: each.l1Fee,
            userOpHash,
            returned: each.returned,
            complete: Effect.succeed({ op, userOpHash }),
            sign: (hash) =>
              Effect.map(signer.sign(Conditions.signingHash(hash, conditions)), (proof) =>
                Conditions.encodeSignature(conditions, proof)
              )
          }
        })
        return {
          ready,
          failed,
          funds: Estimation.fundsOf(ground, estimate),
          deployments: [],
          prices: look.prices,
          gasBound: look.gasBound
        }
      })

    const elements = calls.map(({ index }) => index)
    const outcomes = yield* Submission.run(
      {
        caller,
        endpoint: kind.endpoint,
        ground,
        submitter: signer,
        access: Connection.access(caller, connection, settings.signer),
        elements,
        done: new Set(),
        prepare
      },
      decoding.revert
    )
    return yield* Results.executed(
      elements,
      outcomes,
      (index, returned) => calls[index]?.decode(returned),
      decoding
    )
  }).pipe(Effect.withSpan("ExecuteOperations"))
