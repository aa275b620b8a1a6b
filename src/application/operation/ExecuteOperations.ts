import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { Address } from "../../domain/evm/Address.js"
import * as Dependencies from "../../domain/op/Dependencies.js"
import * as Nonce from "../../domain/op/Nonce.js"
import type { Caller } from "../Caller.js"
import * as Decoding from "../Decoding.js"
import * as Connection from "../engine/Connection.js"
import * as Consent from "../engine/Consent.js"
import { CurrentRequest } from "../engine/CurrentRequest.js"
import type { ElementFailure } from "../engine/Elements.js"
import { Engine } from "../engine/Engine.js"
import * as Estimation from "../engine/Estimation.js"
import * as Preparation from "../engine/Preparation.js"
import type { AnsweredElsewhere } from "../engine/Requests.js"
import * as Results from "../engine/Results.js"
import * as Submission from "../engine/Submission.js"
import * as Submitter from "../engine/Submitter.js"
import * as Trouble from "../engine/Trouble.js"
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
import * as Assembly from "./Assembly.js"
import * as Calls from "./Calls.js"
import * as Links from "./Links.js"
import { Operation } from "./Operation.js"
import * as OwnedWallets from "./OwnedWallets.js"
import * as Windows from "./Windows.js"

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForSubmission
}).annotations({ identifier: "ExecuteRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements = AbiStore | Bundler | ChainRpc | Engine | Journal | Networks | Signers

export const kind = { endpoint: "/execute", Request, Response }

/**
 * Encodes the operations as ERC-4337 ops, estimates, signs and executes them with the request's signers, and answers
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
    const calls = yield* Calls.encodeAll(request.operations)
    const dependencies = yield* Links.dependencies(request.operations)
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const signers = yield* Consent.signersOf(caller, settings)
    const [signer] = signers
    if (signer === undefined) return yield* Effect.dieMessage("the request names no signer")
    const connection = yield* Preparation.connect(caller, settings)
    const { profile } = connection
    const ledger = yield* Links.ledger(dependencies, connection)
    const ground = yield* Preparation.ground(connection, settings, signer.address, caller)
    const { entryPoint, formula, spaceOf } = ground
    const wallets = yield* Either.all(
      calls.map(({ index, selector }) => Wallets.select(selector, formula, profile, `operations[${index}]`))
    )
    const walletOf = (index: number) => wallets[index] ?? entryPoint
    const journal = yield* Journal
    const current = yield* CurrentRequest

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

    /** Who of these can be executed now, as far as wallets, windows and signers go. */
    const willing = (elements: ReadonlyArray<number>, look: Preparation.Look) =>
      Effect.gen(function* () {
        const todo = calls.filter(({ index }) => elements.includes(index))
        const found = yield* OwnedWallets.find(
          todo.map(({ index, selector: { walletCustody } }) => ({
            index,
            wallet: walletOf(index),
            walletCustody
          })),
          look.wallets
        )
        const failed = new Map<number, ElementFailure>(found.failed)
        const ready = new Map<number, Omit<Assembly.Willing, "nonceKey">>()
        for (const call of todo) {
          const { index } = call
          const bounds = Windows.check(call.window, `operations[${index}]`, look.block)
          // Once the request is accepted, a window that has ended is the operation's own affair.
          if (Either.isLeft(bounds) && "_tag" in bounds.left && !current.accepted())
            return yield* Effect.fail(bounds.left)
          const config = found.configs.get(index)
          if (config === undefined) continue
          const consent = Consent.bySigners(config, signers)
          if (Either.isLeft(bounds))
            failed.set(index, "_tag" in bounds.left ? Trouble.asElement(bounds.left) : bounds.left)
          else if (Either.isLeft(consent)) failed.set(index, consent.left)
          else {
            const { validAfter, validUntil } = bounds.right
            ready.set(index, {
              call,
              wallet: walletOf(index),
              consent: consent.right,
              conditions: {
                validUntil: validUntil === 0 ? Preparation.validUntil(look.block) : validUntil,
                validAfter,
                bundler: Submitter.boundTo(profile, signer.address)
              }
            })
          }
        }
        return { failed, ready }
      })

    const prepare = (elements: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        const distinct = [...new Set(elements.map(walletOf))]
        const { busy, keys } = yield* lease(distinct)
        if (busy !== null) return { busy: elements.filter((index) => walletOf(index) === busy) }
        const [look] = yield* Effect.all(
          [Preparation.look(ground, distinct), Links.present(ledger, dependencies, connection)],
          { concurrency: "unbounded" }
        )
        const { failed, ready: able } = yield* willing(elements, look)
        for (const index of Dependencies.order(dependencies, elements)) {
          const on = dependencies[index] ?? null
          if (on === null || !failed.has(on)) continue
          able.delete(index)
          if (!failed.has(index)) failed.set(index, Submission.dependencyFailed(on))
        }
        const assembled = yield* Assembly.assemble({
          ground,
          look,
          ledger,
          dependencies,
          willing: new Map(
            [...able].map(([index, own]) => [index, { ...own, nonceKey: keys.get(own.wallet) ?? 0n }])
          ),
          from: signer.address,
          validator: settings.validator,
          revert: decoding.revert
        })
        return {
          ready: assembled.ready,
          failed: new Map([...failed, ...assembled.failed]),
          funds: Estimation.fundsOf(ground, assembled.estimate),
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
        dependencies,
        prepare
      },
      decoding.revert
    )
    return yield* Results.executed(
      elements,
      outcomes,
      (index, returned) => calls[index]?.decode(returned),
      decoding,
      dependencies
    )
  }).pipe(Effect.withSpan("ExecuteOperations"))
