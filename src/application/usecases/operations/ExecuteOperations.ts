import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Connection from "../../chain/Connection.js"
import * as Estimation from "../../intake/estimate/Estimation.js"
import * as BuildOps from "../../intake/ops/BuildOps.js"
import * as Calls from "../../intake/ops/Calls.js"
import * as Links from "../../intake/ops/Links.js"
import * as NotBegun from "../../intake/ops/NotBegun.js"
import { Operation } from "../../intake/ops/Operation.js"
import * as OwnedWallets from "../../intake/ops/OwnedWallets.js"
import * as Windows from "../../intake/ops/Windows.js"
import * as Preparation from "../../intake/Preparation.js"
import * as SignerAuthorization from "../../intake/SignerAuthorization.js"
import type * as HeldNonces from "../../intake/submission/HeldNonces.js"
import * as Results from "../../intake/submission/Results.js"
import * as Submission from "../../intake/submission/Submission.js"
import * as SubmissionActions from "../../intake/submission/SubmissionActions.js"
import { dependencyFailed } from "../../intake/submission/SubmissionElements.js"
import * as Records from "../../intake/submission/SubmissionRecords.js"
import * as Wallets from "../../intake/Wallets.js"
import type { Engine } from "../../lanes/Engine.js"
import { Requests } from "../../lanes/requests/Requests.js"
import * as Span from "../../observe/Span.js"
import * as Submitter from "../../pay/Submitter.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { Bundler } from "../../ports/chain/Bundler.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers } from "../../ports/Signers.js"
import type { Caller } from "../../request/Caller.js"
import { type AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import * as Decoding from "../../request/Decoding.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import * as Settings from "../../request/Settings.js"
import { Executed } from "../../request/TransactionResult.js"
import * as Together from "../../runtime/Together.js"
import * as KillSwitch from "../../tenants/KillSwitch.js"

/** Executes operations. Long, since preparation, which is repeated after acceptance, needs all that was resolved before. */

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForSubmission
}).annotations({ identifier: "ExecuteRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements =
  | AbiStore
  | Bundler
  | ChainRpc
  | Engine
  | Records.SubmissionJournals
  | Networks
  | Signers

export const kind = {
  endpoint: "/execute",
  Request,
  Response,
  elements: ({ operations }: Request) => operations.length
}

/**
 * Encodes the operations as ERC-4337 ops, estimates, signs and executes them with the request's signers, and answers
 * with what became of each.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.flatMap(Requests, (requests) => requests.run(kind, caller, request, work(caller, request)))

/** Long, since preparation, which is repeated after acceptance, needs all that was resolved of the request. */
const work = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure | AnsweredElsewhere, Requirements | CurrentRequest> =>
  Effect.gen(function* () {
    const { settings } = request
    const calls = yield* Calls.encodeAll(request.operations)
    const dependencies = yield* Links.dependencies(request.operations)
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const signers = yield* SignerAuthorization.signersOf(caller, settings)
    const [signer] = signers
    if (signer === undefined) return yield* Effect.dieMessage("the request names no signer")
    const connection = yield* Preparation.connect(caller, settings)
    const { profile } = connection
    const ledger = yield* Links.ledger(dependencies, connection)
    const context = yield* Preparation.contextOf(connection, settings, signer.address, caller)
    const { entryPoint, formula, spaceOf } = context
    const wallets = yield* Either.all(
      calls.map(({ index, selector }) => Wallets.select(selector, formula, profile, `operations[${index}]`))
    )
    const walletOf = (index: number) => wallets[index] ?? entryPoint
    const opJournal = yield* OpJournal
    const current = yield* CurrentRequest

    /** The epochs of the wallets as they were last seen: keys are leased anew when one has changed. */
    const epochs = new Map<Address, bigint>()
    const remember = (
      snapshot: Preparation.ChainSnapshot,
      distinct: ReadonlyArray<Address>
    ): ReadonlyArray<Address> => {
      const changed = distinct.filter(
        (wallet) => epochs.get(wallet) !== Wallets.epochOf(snapshot.wallets.get(wallet))
      )
      for (const wallet of changed) epochs.set(wallet, Wallets.epochOf(snapshot.wallets.get(wallet)))
      return changed
    }

    /**
     * One key for each wallet, up to the first that has none left. In one order, so that of two requests for the
     * same wallets one gets all it needs.
     */
    const lease = (distinct: ReadonlyArray<Address>, held: HeldNonces.HeldNonces) =>
      Effect.gen(function* () {
        const keys = new Map([...held.values()].map(({ nonceKey, space }) => [space.wallet, nonceKey]))
        const known = keys.size
        for (const wallet of [...distinct].sort()) {
          if (keys.has(wallet)) continue
          const leased = yield* Effect.orDie(
            opJournal.lease({
              ...spaceOf(wallet),
              holder: caller.requestId,
              keys: Nonce.inEpoch(Nonce.serviceKeys, epochs.get(wallet) ?? 0n),
              count: 1,
              ttlMillis: Preparation.leaseMillis
            })
          )
          const [key] = leased ?? []
          if (key === undefined) return { keys, leased: keys.size - known, busy: wallet }
          keys.set(wallet, key)
        }
        return { keys, leased: keys.size - known, busy: null }
      })

    /** Others of a wallet wait for those of it that have a nonce already, unless one of those depends on them. */
    const afterHeld = (elements: ReadonlyArray<number>, held: HeldNonces.HeldNonces) => {
      const wallets = new Set([...held.values()].map(({ space }) => space.wallet))
      const first = elements.filter((index) => held.has(index) || !wallets.has(walletOf(index)))
      const waiting = elements.filter((index) => !first.includes(index))
      return first.some((index) => waiting.includes(dependencies[index] ?? -1)) ? elements : first
    }

    /** The chain's clock at the last look. */
    let clock: Pick<Preparation.ChainSnapshot["block"], "timestamp"> = { timestamp: 0 }
    const windowOf = (index: number) => calls[index]?.window ?? {}
    /** A request whose caller does not wait is done when its windows begin; in another one what is too early fails. */
    const mayWait = caller.isAsynchronous === true || caller.resumed === true
    const hasBeginning = (index: number) => (windowOf(index).validAfter ?? 0) > 0

    /** Who of these can be executed now, as far as wallets, windows and signers go. */
    const willing = (
      elements: ReadonlyArray<number>,
      snapshot: Preparation.ChainSnapshot,
      scheduled: ReadonlyMap<number, number>
    ) =>
      Effect.gen(function* () {
        const todo = calls.filter(({ index }) => elements.includes(index))
        const found = yield* OwnedWallets.find(
          todo.map(({ index, selector: { walletCustody } }) => ({
            index,
            wallet: walletOf(index),
            walletCustody
          })),
          snapshot.wallets
        )
        const failed = new Map<number, ElementFailure>(found.failed)
        const ready = new Map<number, Omit<BuildOps.AuthorizedCall, "nonceKey">>()
        for (const call of todo) {
          const { index } = call
          const bounds = Windows.check(call.window, `operations[${index}]`, snapshot.block)
          // Once the request is accepted, a window that has ended is the operation's own affair.
          if (Either.isLeft(bounds) && "_tag" in bounds.left && !current.accepted())
            return yield* Effect.fail(bounds.left)
          const config = found.configs.get(index)
          if (config === undefined) continue
          const consent = SignerAuthorization.bySigners(config, signers)
          if (Either.isLeft(bounds) && scheduled.has(index) && !("_tag" in bounds.left)) {
            if (Either.isLeft(consent)) failed.set(index, consent.left)
          } else if (Either.isLeft(bounds))
            failed.set(index, "_tag" in bounds.left ? elementFailure("window_passed") : bounds.left)
          else if (Either.isLeft(consent)) failed.set(index, consent.left)
          else if (!scheduled.has(index)) {
            const { validAfter, validUntil } = bounds.right
            ready.set(index, {
              call,
              wallet: walletOf(index),
              consent: consent.right,
              conditions: {
                validUntil: validUntil === 0 ? Preparation.validUntil(snapshot.block) : validUntil,
                validAfter,
                bundler: Submitter.boundTo(profile, signer.address)
              }
            })
          }
        }
        return { failed, ready }
      })

    const prepare = (all: ReadonlyArray<number>, held: HeldNonces.HeldNonces) =>
      Effect.gen(function* () {
        const elements = afterHeld(all, held)
        const distinct = [...new Set(elements.map(walletOf))]
        const read = Effect.map(
          Together.all([
            Preparation.snapshot(context, distinct),
            Links.present(ledger, dependencies, connection)
          ]),
          ([seen]) => seen
        )
        const busyWith = (wallet: Address) => ({
          busy: elements.filter((index) => walletOf(index) === wallet)
        })
        // Who waits for a wallet that it has seen asks the journal first: the chain is not read at every wake-up.
        const unseen = distinct.some((wallet) => !epochs.has(wallet))
        const early = mayWait && elements.some(hasBeginning)
        const first = unseen || early ? yield* read : null
        if (first !== null) remember(first, distinct)
        const scheduled =
          first !== null && early
            ? NotBegun.until(elements, windowOf, dependencies, {
                timestamp: first.block.timestamp,
                isApart: profile.remoteBundler !== null
              })
            : new Map<number, number>()
        const due = [...new Set(elements.filter((index) => !scheduled.has(index)).map(walletOf))]
        const { busy, keys, leased } = yield* lease(due, held)
        if (busy !== null) return busyWith(busy)
        const snapshot = first ?? (yield* read)
        clock = snapshot.block
        const changed = remember(snapshot, distinct).filter((wallet) => due.includes(wallet))
        const again = yield* lease(changed, held)
        if (again.busy !== null) return busyWith(again.busy)
        for (const [wallet, key] of again.keys) keys.set(wallet, key)
        const { failed, ready: able } = yield* willing(elements, snapshot, scheduled)
        for (const index of Dependencies.order(dependencies, elements)) {
          const on = dependencies[index] ?? null
          if (on === null || !failed.has(on)) continue
          able.delete(index)
          if (!failed.has(index)) failed.set(index, dependencyFailed(on))
        }
        const assembled = yield* BuildOps.assemble({
          context,
          snapshot,
          ledger,
          dependencies,
          willing: new Map(
            [...able].map(([index, own]) => [
              index,
              {
                ...own,
                nonceKey: held.get(index)?.nonceKey ?? keys.get(own.wallet) ?? 0n
              }
            ])
          ),
          from: signer.address,
          validator: settings.validator,
          revert: decoding.revert
        })
        return {
          ready: assembled.ready,
          failed: new Map([...failed, ...assembled.failed]),
          done: [],
          scheduled,
          leased: leased + again.leased,
          funds: Estimation.fundsOf(context, assembled.estimate),
          deployments: [],
          prices: snapshot.prices,
          gasBound: snapshot.gasBound
        }
      })

    const elements = calls.map(({ index }) => index)
    const route = {
      caller,
      endpoint: kind.endpoint,
      context,
      submitter: signer,
      access: Connection.access(caller, connection, settings.signer)
    }
    const outcomes = yield* Submission.run({ ...route, elements, dependencies, prepare }, decoding.revert)
    if (outcomes.scheduled.size > 0) {
      if (!current.accepted()) yield* KillSwitch.recheck(current, signer.address)
      return yield* current.schedule(
        Records.acceptance(route, current, [], [], [], SubmissionActions.elementsOf(outcomes.failed)),
        NotBegun.schedule(outcomes.scheduled, clock, yield* Clock.currentTimeMillis)
      )
    }
    return yield* Results.executed(
      elements,
      outcomes,
      (index, returned) => calls[index]?.decode(returned),
      decoding,
      dependencies
    )
  }).pipe(Span.named("ExecuteOperations"))
