import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type * as Hex from "../../domain/evm/Hex.js"
import * as Conditions from "../../domain/op/Conditions.js"
import * as Nonce from "../../domain/op/Nonce.js"
import * as Proof from "../../domain/op/Proof.js"
import * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import type { Caller } from "../Caller.js"
import * as Decoding from "../Decoding.js"
import * as Connection from "../engine/Connection.js"
import type { CurrentRequest } from "../engine/CurrentRequest.js"
import { type ElementFailure, elementFailure } from "../engine/Elements.js"
import { Engine } from "../engine/Engine.js"
import * as Estimation from "../engine/Estimation.js"
import * as Keys from "../engine/Keys.js"
import * as Landings from "../engine/Landings.js"
import * as Preparation from "../engine/Preparation.js"
import type { AnsweredElsewhere } from "../engine/Requests.js"
import * as Results from "../engine/Results.js"
import type * as Sending from "../engine/Sending.js"
import * as Submission from "../engine/Submission.js"
import * as Submitter from "../engine/Submitter.js"
import { type Failure, invalid, notAvailable, unprocessable } from "../Failure.js"
import type { AbiStore } from "../ports/AbiStore.js"
import type { Bundler, OpOutcome } from "../ports/Bundler.js"
import type { ChainRpc } from "../ports/ChainRpc.js"
import { Journal } from "../ports/Journal.js"
import type { Networks } from "../ports/Networks.js"
import type { Signers } from "../ports/Signers.js"
import * as Settings from "../Settings.js"
import { Executed } from "../TransactionResult.js"
import * as GivenOps from "./GivenOps.js"
import * as OwnedWallets from "./OwnedWallets.js"

export const Request = Schema.Struct({
  operations: Schema.Array(GivenOps.EncodedOperation),
  settings: Settings.ForOps
}).annotations({ identifier: "ExecuteEncodedRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements = AbiStore | Bundler | ChainRpc | Engine | Journal | Networks | Signers

export const kind = { endpoint: "/executeEncoded", Request, Response }

/**
 * Submits ops that `/estimateGas` encoded, signed by their owners or, where they carry no signature, by the
 * request's signer. An op that was posted before is not sent again: its outcome is the answer.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.flatMap(Engine, ({ requests }) => requests.run(kind, caller, request, work(caller, request)))

const decode = (_: number, returned: Hex.Hex): unknown =>
  Either.getOrElse(WalletCalls.decodeExecuteResult(returned), () => returned)

const work = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure | AnsweredElsewhere, Requirements | CurrentRequest> =>
  Effect.gen(function* () {
    const { operations, settings } = request
    yield* Preparation.available(settings)
    if (operations.length === 0)
      return yield* Effect.fail(
        invalid("invalid_request", [{ path: "operations", message: "expected at least one operation" }])
      )
    if (settings.signer === undefined)
      return yield* Effect.fail(
        notAvailable(
          "executeEncoded without settings.signer",
          "settings.signer",
          "name the signer that submits"
        )
      )
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const signer = yield* Keys.resolve(caller, settings.signer)
    const connection = yield* Connection.open(caller, settings.rpc)
    const { chain, profile, trust } = connection
    const ground = yield* Preparation.ground(connection, settings, signer.address, caller)
    const { chainId, entryPoint, spaceOf } = ground
    const bundler = Submitter.boundTo(profile, signer.address)
    const given = yield* GivenOps.read(operations, ground)
    const journal = yield* Journal
    const { releases } = yield* Engine
    const deadline = (yield* Clock.currentTimeMillis) + profile.receiptTimeoutMillis
    const earlier = new Map<number, Submission.Landed>()
    const done = new Set<number>()

    const note = (index: number, userOpHash: Hex.Bytes32, outcome: OpOutcome) => {
      earlier.set(index, { ...outcome, userOpHash, returned: null })
      done.add(index)
    }

    /** The outcome of an op that this account has posted before, waited for if need be; null: it was never sent. */
    const recall = (userOpHash: Hex.Bytes32): Effect.Effect<OpOutcome | null, Failure> =>
      Effect.gen(function* () {
        for (;;) {
          const record = yield* Effect.orDie(journal.findOp(caller.principal.accountId, chainId, userOpHash))
          if (record === null || record.state === "abandoned") return null
          // An earlier life of this request posted it: that life is taken up where it ended.
          if (record.requestId === caller.requestId) return null
          if (record.state === "settled" && record.txHash !== null)
            return {
              success: record.success === true,
              txHash: record.txHash,
              revertData: record.revertData
            }
          if (!(yield* releases.wait(deadline)))
            return yield* Effect.fail(
              unprocessable("outcome_unknown", [], {
                extra: { txHash: record.txHash, requestId: record.requestId }
              })
            )
        }
      })

    /** The ops, of those with these indexes, that were not posted before. */
    const unposted = (elements: ReadonlyArray<number>) =>
      Effect.filter(
        given.filter(({ index }) => elements.includes(index)),
        ({ index, userOpHash }) =>
          Effect.map(recall(userOpHash), (outcome) => {
            if (outcome !== null) note(index, userOpHash, outcome)
            return outcome === null
          })
      )

    const prepare = (elements: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        // Also when it is tried again: another request may have posted the same op in the meantime.
        const todo = yield* unposted(elements)
        const look = yield* Preparation.look(ground, [...new Set(todo.map(({ op }) => op.sender))])
        const failed = new Map<number, ElementFailure>(
          yield* OwnedWallets.refuse(
            todo.map(({ index, op, walletCustody }) => ({ index, wallet: op.sender, walletCustody })),
            look.wallets,
            null
          )
        )
        const proofs = new Map<number, { conditions: Conditions.Conditions; proof: Hex.Hex | null }>()
        for (const each of todo) {
          const state = look.wallets.get(each.op.sender)
          if (failed.has(each.index) || state?._tag !== "deployed") continue
          const { owners } = state.configuration.config
          if (each.op.maxFeePerGas > profile.caps.maxFeePerGas)
            failed.set(each.index, elementFailure("fees_above_cap"))
          else if (each.proof === null) {
            if (!owners.includes(signer.address))
              failed.set(
                each.index,
                elementFailure("threshold_not_met", "threshold not met: have 0 of 1", {
                  wallet: each.op.sender
                })
              )
            const validUntil = Preparation.validUntil(look.block)
            proofs.set(each.index, {
              conditions: { validUntil, validAfter: 0, bundler },
              proof: null
            })
          } else {
            const found = GivenOps.conditionsOf({ ...each, proof: each.proof }, owners, bundler)
            if (Either.isLeft(found))
              failed.set(each.index, elementFailure("invalid_signature", `invalid signature: ${found.left}`))
            else proofs.set(each.index, found.right)
          }
        }
        const estimate = yield* Estimation.estimate({
          ground,
          entryPointCode: look.entryPointCode,
          from: signer.address,
          drafts: todo
            .filter(({ index }) => !failed.has(index))
            .map(({ index, op }) => {
              const under = proofs.get(index)
              const signature = Conditions.encodeSignature(
                under?.conditions ?? Conditions.none,
                under?.proof ?? Proof.dummyEcdsa(1)
              )
              return { index, op: { ...op, signature }, value: 0n }
            }),
          declared: true,
          verify: false,
          revert: decoding.revert
        })
        yield* Preparation.checkImplementation(connection, estimate.implementation, settings.validator)
        for (const [index, failure] of estimate.failed) failed.set(index, failure)

        // Ops of one key follow each other; one that the EntryPoint has consumed may have landed elsewhere.
        const next = new Map<string, bigint>()
        const consumed: Array<GivenOps.Given> = []
        const misplaced = new Map<number, ElementFailure>()
        for (const each of todo) {
          const sequence = estimate.sequences.get(each.index)
          if (sequence === undefined) continue
          const key = `${each.op.sender}:${Nonce.keyOf(each.op.nonce)}`
          const expected = next.get(key) ?? sequence
          const own = Nonce.sequenceOf(each.op.nonce)
          if (own < sequence) consumed.push(each)
          else if (own === expected && !failed.has(each.index)) next.set(key, expected + 1n)
          else if (!failed.has(each.index))
            misplaced.set(
              each.index,
              elementFailure(
                "invalid_nonce",
                `op nonce out of order: the next sequence of its key is ${expected}`
              )
            )
        }
        const landed = yield* Effect.mapError(
          Landings.find(
            chain,
            entryPoint,
            consumed.map(({ userOpHash }) => userOpHash),
            look.block.number
          ),
          Connection.refusal(trust)
        )
        for (const { index, userOpHash } of consumed) {
          const outcome = landed.get(userOpHash)
          if (outcome === undefined) misplaced.set(index, elementFailure("invalid_nonce"))
          else note(index, userOpHash, outcome)
        }
        const { gasBound, prices } = look
        const nothing = { ready: [], funds: [], deployments: [], prices, gasBound }
        // The others were measured behind ops that will not run: they are looked at again without those.
        if (consumed.length > 0 || misplaced.size > 0) return { ...nothing, failed: misplaced }

        const ready = estimate.estimated.flatMap((each): ReadonlyArray<Sending.Ready> => {
          const own = given[each.index]
          const under = proofs.get(each.index)
          if (own === undefined || under === undefined || failed.has(each.index) || done.has(each.index))
            return []
          const { op, userOpHash } = own
          const { conditions, proof } = under
          return [
            {
              index: each.index,
              op: each.op,
              space: spaceOf(op.sender),
              nonceKey: Nonce.keyOf(op.nonce),
              sequence: Nonce.sequenceOf(op.nonce),
              reserve: each.prefund + WalletCalls.valueOf(op.callData),
              l1Fee: each.l1Fee,
              userOpHash,
              returned: each.returned,
              complete: Effect.succeed({ op, userOpHash }),
              sign: (hash) =>
                Effect.map(
                  proof === null
                    ? signer.sign(Conditions.signingHash(hash, conditions))
                    : Effect.succeed(proof),
                  (own) => Conditions.encodeSignature(conditions, own)
                )
            }
          ]
        })
        return { ...nothing, ready, failed, funds: Estimation.fundsOf(ground, estimate) }
      })

    const elements = given.map(({ index }) => index)
    const fresh = yield* unposted(elements)
    const outcomes = yield* Submission.run(
      {
        caller,
        endpoint: kind.endpoint,
        ground,
        submitter: signer,
        access: Connection.access(caller, connection, settings.signer),
        elements: fresh.map(({ index }) => index),
        done,
        prepare
      },
      decoding.revert
    )
    const hashes = [...new Set([...earlier.values()].map(({ txHash }) => txHash))]
    const sent = outcomes.receipts.length > 0
    const before = yield* Effect.forEach(hashes, chain.receipt, { concurrency: "unbounded" }).pipe(
      Effect.map((receipts) => receipts.filter((receipt) => receipt !== null)),
      // What this request has sent is answered in any case.
      Effect.catchAll((error) => (sent ? Effect.succeed([]) : Effect.fail(Connection.refusal(trust)(error))))
    )
    return yield* Results.executed(
      elements,
      {
        landed: new Map([...earlier, ...outcomes.landed]),
        failed: outcomes.failed,
        receipts: [...before, ...outcomes.receipts]
      },
      decode,
      decoding
    )
  }).pipe(Effect.withSpan("ExecuteEncoded"))
