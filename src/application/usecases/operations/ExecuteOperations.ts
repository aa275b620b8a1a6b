import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Results from "../../answers/Results.js"
import * as Connection from "../../chain/Connection.js"
import * as OperationPreparation from "../../intake/ops/OperationPreparation.js"
import * as SlicedSubmission from "../../intake/submission/SlicedSubmission.js"
import * as Submission from "../../intake/submission/Submission.js"
import * as SubmissionActions from "../../intake/submission/SubmissionActions.js"
import type { Part } from "../../intake/submission/SubmissionPlan.js"
import * as Records from "../../intake/submission/SubmissionRecords.js"
import type { Engine } from "../../lanes/Engine.js"
import { Requests } from "../../lanes/requests/Requests.js"
import * as Span from "../../observe/Span.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { Bundler } from "../../ports/chain/Bundler.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers } from "../../ports/Signers.js"
import * as Calls from "../../prepare/EncodeCall.js"
import * as OpContext from "../../prepare/OpContext.js"
import { Operation } from "../../prepare/Operation.js"
import * as Links from "../../prepare/ops/Links.js"
import * as NotBegun from "../../prepare/ops/NotBegun.js"
import * as Slices from "../../prepare/ops/Slices.js"
import * as SignerAuthorization from "../../prepare/SignerAuthorization.js"
import * as Wallets from "../../prepare/wallets/Wallets.js"
import type { Caller } from "../../request/Caller.js"
import { type AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import * as Decoding from "../../request/Decoding.js"
import type { ElementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import * as Settings from "../../request/Settings.js"
import { Executed } from "../../request/TransactionResult.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import * as KillSwitch from "../../tenants/KillSwitch.js"
import * as Offers from "./Offers.js"
import { IsOn, Submissions } from "./Submissions.js"

export const Request = Schema.Struct({
  operations: Schema.Array(Operation),
  settings: Settings.ForSubmission
}).annotate({ identifier: "ExecuteRequest" })
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
  | Submissions

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
  Effect.flatMap(IsOn, (isOn) =>
    isOn && isPlain(caller) ? submit(caller, request) : runAlone(caller, request)
  )

const runAlone = (caller: Caller, request: Request) =>
  Effect.flatMap(Requests, (requests) => requests.run(kind, caller, request, work(caller, request)))

/** All of it can be accepted as ops at once, each with its own signature. */
const isPlain = (caller: Caller): boolean => caller.resumed !== true

const encodeRequest = Schema.encodeEffect(Request)

/** Its ops are brought onto the chain by the worker of its lane. */
const submit = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.gen(function* () {
    const body = JSON.stringify(yield* Effect.orDie(encodeRequest(request)))
    const offer = yield* Offers.execute(caller, request, body)
    const { run: take } = yield* Submissions
    return yield* take(caller, offer)
  }).pipe(Span.named("ExecuteOperations"))

const work = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure | AnsweredElsewhere, Requirements | CurrentRequest> =>
  Effect.gen(function* () {
    const { settings } = request
    const calls = yield* Calls.encodeAll(request.operations)
    const dependencies = yield* Effect.fromResult(Links.dependencies(request.operations))
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const signers = yield* SignerAuthorization.signersOf(caller, settings)
    const [signer] = signers
    if (signer === undefined) return yield* Effect.die(new Error("the request names no signer"))
    const connection = yield* OpContext.connect(caller, settings)
    const { profile } = connection
    const ledger = yield* Effect.fromResult(Links.ledger(dependencies, connection))
    const context = yield* OpContext.contextOf(connection, settings, signer.address, caller)
    const { entryPoint, formula } = context
    const wallets = yield* EventLoop.each(calls, ({ index, selector }) =>
      Effect.fromResult(Wallets.select(selector, formula, profile, `operations[${index}]`))
    )
    const walletOf = (index: number) => wallets[index] ?? entryPoint
    const current = yield* CurrentRequest

    /** A request whose caller does not wait is done when its windows begin; in another one what is too early fails. */
    const mayWait = caller.isAsynchronous === true || caller.resumed === true
    const elements = calls.map(({ index }) => index)
    const isLarge = mayWait && elements.length > SlicedSubmission.sliceSize
    const route = (own: OpContext.OpContext) => ({
      caller,
      endpoint: kind.endpoint,
      context: own,
      submitter: signer,
      access: Connection.access(caller, connection, settings.signer)
    })
    const accepting = (failed: ReadonlyMap<number, ElementFailure>) =>
      Records.acceptance(route(context), current, [], [], [], SubmissionActions.elementsOf(failed))
    const preparation = (own: OpContext.OpContext, holder: string) =>
      OperationPreparation.make({
        calls,
        dependencies,
        walletOf,
        signers: [signer, ...signers.slice(1)],
        context: own,
        ledger,
        validator: settings.validator,
        revert: decoding.revert,
        holder,
        mayWait
      })
    /** The chain's clock at the last look. */
    let clock = (): NotBegun.Clock => ({ timestamp: 0 })
    const submit = (own: OpContext.OpContext, part: Part | null, some: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        const { clock: seen, prepare } = yield* preparation(own, part?.holder ?? caller.requestId)
        const callOf = (index: number) => calls[index]?.call ?? null
        const plan = { ...route(own), elements: some, dependencies, prepare, callOf, part }
        const outcomes = yield* Submission.run(plan, decoding.revert)
        clock = seen
        return outcomes
      })
    const outcomes = yield* isLarge
      ? SlicedSubmission.run({
          caller,
          slices: Slices.of(dependencies, elements, walletOf, SlicedSubmission.sliceSize),
          check: (some) => Effect.flatMap(preparation(context, caller.requestId), ({ check }) => check(some)),
          accept: Effect.andThen(
            KillSwitch.recheck(current, signer.address),
            current.accept(accepting(new Map()), profile.receiptTimeoutMillis)
          ),
          submit: (part, some) =>
            Effect.flatMap(OpContext.contextOf(connection, settings, signer.address, caller), (own) =>
              submit(own, part, some)
            )
        })
      : submit(context, null, elements)
    if (outcomes.scheduled.size > 0) {
      if (!current.accepted()) yield* KillSwitch.recheck(current, signer.address)
      return yield* current.schedule(
        accepting(outcomes.failed),
        NotBegun.schedule(outcomes.scheduled, clock(), yield* Clock.currentTimeMillis)
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
