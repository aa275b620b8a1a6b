import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as StandardWebhook from "../../domain/crypto/StandardWebhook.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as Json from "../../domain/json/Json.js"
import type * as Movements from "../../domain/policy/Movements.js"
import type { Address } from "../../domain/primitives/Address.js"
import { Lru } from "../../domain/primitives/Lru.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import { type Failure, type Unavailable, unavailable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import * as Metrics from "../observe/Metrics.js"
import * as Troubles from "../observe/Troubles.js"
import * as Funding from "../payers/Funding.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import { Settings } from "../ports/operator/Settings.js"
import type { AccountId } from "../ports/Tenants.js"
import { DeliveryFailure, WebhookSender } from "../ports/Webhooks.js"
import * as Call from "../prepare/Call.js"
import type { Offer } from "../prepare/Offer.js"
import * as Links from "../prepare/ops/Links.js"
import * as Previews from "../prepare/ops/Previews.js"
import type { Prepared } from "../prepare/Preparation.js"
import * as Reading from "./Reading.js"

/**
 * Asks an endpoint of the operator's and one of the account's whether elements may be executed, or contents signed, before
 * money is held.
 *
 * Gotchas: without a valid answer nothing is executed or signed. The hooks decide about an accepted request again only when
 * elements of it that waited become due.
 */

/** Terms of a hook, as the configuration and the account write them. */
export const terms = {
  timeoutMillis: Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 10_000 })).annotate({
    description: "Time limit of an answer. Default 2000.",
    message: "expected an integer from 100 to 10000"
  }),
  on: Schema.Literals(["all", "sponsored", "payments"]).annotate({
    description:
      "sponsored: requests that a paymaster pays for. payments: requests with a movement of value, or with a call, typed data or a hash that may move some. Default all.",
    message: 'expected "all", "sponsored" or "payments"'
  }),
  onFailure: Schema.Literals(["refuse"]).annotate({
    description: "Without a valid answer the request is refused.",
    message: 'expected "refuse"'
  })
}

export interface Hook {
  readonly url: Redacted.Redacted<string>
  /** In the form of Standard Webhooks. */
  readonly secret: Redacted.Redacted<string>
  readonly timeoutMillis: number
  readonly on: "all" | "sponsored" | "payments"
}

/** The operator's hook; null: none. */
export const OperatorHook = Context.Reference<Hook | null>("castellan/OperatorHook", {
  defaultValue: () => null
})

export const settingName = "decisionHook"

/** An account's hook in the store. */
export const Stored = Schema.fromJsonString(
  Schema.Struct({ ...terms, url: Schema.String, secret: Schema.String })
)

/** A request whose elements are about to be accepted or opened. */
export type Asker = Pick<Offer, "calls" | "caller" | "context" | "endpoint" | "requestId" | "revert">

interface Question extends Pick<Asker, "caller" | "endpoint" | "requestId"> {
  /** Null: each document's own. */
  readonly chainId: bigint | null
}

/** Contents that keys of the account are about to sign. */
export interface Signatures extends Question {
  readonly elements: () => ReadonlyArray<Element>
}

/** The preparation of each request, in their order; `busy`: none yet. */
type Batches = ReadonlyArray<Result.Result<Prepared, Failure> | "busy">

export class DecisionHook extends Context.Service<
  DecisionHook,
  {
    /**
     * Asks about the prepared and the waiting elements of an account's requests, and fails elements that are not allowed,
     * with their dependants. Fails while the store of the accounts' hooks is away.
     */
    readonly decide: <B extends Batches[number]>(
      askers: ReadonlyArray<Asker>,
      batches: ReadonlyArray<B>
    ) => Effect.Effect<ReadonlyArray<B | Result.Result<Prepared>>, Unavailable, ChainFacts>
    /** Asks about contents that are about to be signed; returns the failures of contents that are not allowed, by index. */
    readonly decideSignatures: (request: Signatures) => Effect.Effect<Refused, Unavailable>
  }
>()("castellan/DecisionHook") {}

/** A request with the elements to ask about. */
interface Asked {
  readonly offer: Asker
  readonly prepared: Prepared
}

type Refused = ReadonlyMap<number, ElementFailure>

/** Hooks of an account and of the operator (null). */
type Hooks = ReadonlyArray<readonly [AccountId | null, Hook]>

type Shown = Effect.Success<ReturnType<typeof Previews.of>>

/** Concurrent questions to the hook of one account, or to the operator's. */
const atOnce = 64

/** Age up to which what is known of an account's hook decides, milliseconds. */
const freshMillis = 500

const Verdict = Schema.Literals(["allow", "refuse"])

const Answer = Schema.Struct({
  decision: Verdict,
  reason: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
  elements: Schema.optionalKey(Schema.Array(Schema.Struct({ index: Schema.Int, decision: Verdict })))
})

/** Kinds whose content is not read, and may move value. */
const unread: ReadonlySet<Movements.Kind> = new Set(["call", "sign.hash", "sign.typedData"])

const isPayment = ({ amount, kind }: Movements.Movement): boolean => unread.has(kind) || amount !== 0n

const shown = ({ amount, data: _, document, ...movement }: Movements.Movement) => ({
  ...movement,
  amount: amount?.toString() ?? null,
  ...(document !== undefined && {
    document: { ...document, chainId: document.chainId?.toString() ?? null }
  })
})

interface Element {
  readonly index: number
  /** Of signatures for no wallet the key's address. */
  readonly wallet: Address | null
  readonly movements: ReadonlyArray<Movements.Movement>
}

/** Elements of a request for a hook's decision, and their costs. */
interface Facts {
  readonly elements: ReadonlyArray<Element>
  readonly mostCost: bigint
  readonly sponsored: boolean
}

const factsOf = ({ offer: { calls, context }, prepared: { ops, waiting } }: Asked): Facts => {
  const { caps } = context.connection.profile
  const elements = calls
    .filter(({ index }) => waiting.has(index) || ops.some((op) => op.index === index))
    .map((call) => ({
      index: call.index,
      wallet: call.wallet,
      movements: Reading.of(call, context).movements
    }))
  let mostCost = 0n
  let sponsored = context.kind === "ops" && context.payer.paymaster !== null
  for (const op of ops)
    if (op.kind === "direct") mostCost += op.unsigned.gasLimit * caps.maxFeePerGas + op.l1Fee
    else if (context.kind === "ops") {
      mostCost += Gas.requiredPrefund(context.version, op.unsigned)
      sponsored ||= Funding.paymasterOf(context.version, op.unsigned) !== null
    }
  return { elements, mostCost, sponsored }
}

const concerns = ({ on }: Hook, { elements, sponsored }: Facts): boolean =>
  on === "all" ||
  (on === "sponsored" ? sponsored : elements.some(({ movements }) => movements.some(isPayment)))

const noPreview = { preview: null, previewError: "the element is not an op with a call" }

const make = Effect.gen(function* () {
  const operators = yield* OperatorHook
  const settings = yield* Settings
  const sender = yield* WebhookSender
  const rpcs = yield* ChainRpc
  const journal = yield* RequestJournal
  const gates = new Lru<AccountId | null, Semaphore.Semaphore>(4_096)
  const known = new Lru<AccountId, { readonly at: number; readonly hook: Hook | null }>(4_096)

  const gateOf = (owner: AccountId | null) => {
    const gate = gates.get(owner) ?? Semaphore.makeUnsafe(atOnce)
    gates.set(owner, gate)
    return gate
  }

  const hookOf = (accountId: AccountId): Effect.Effect<Hook | null, Unavailable> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const before = known.get(accountId)
      if (before !== undefined && now >= before.at && now - before.at < freshMillis) return before.hook
      const found = yield* settings.find(accountId, settingName)
      const stored = found === null ? null : yield* Schema.decodeEffect(Stored)(found.content ?? "")
      const hook =
        stored === null
          ? null
          : { ...stored, url: Redacted.make(stored.url), secret: Redacted.make(stored.secret) }
      known.set(accountId, { at: now, hook })
      return hook
    }).pipe(
      Effect.tapCause((cause) =>
        Effect.flatMap(Troubles.Shared, ({ failed }) =>
          failed({ what: "decision hook of an account unreadable", place: accountId }, cause)
        )
      ),
      Effect.mapError(() => unavailable())
    )

  /** The verdicts of one hook; fails without a valid answer. */
  const answerOf = (
    owner: AccountId | null,
    hook: Hook,
    message: StandardWebhook.Message,
    { elements }: Facts
  ) =>
    sender
      .send(owner, hook.url, StandardWebhook.headers([Redacted.value(hook.secret)], message), message.body)
      .pipe(
        gateOf(owner).withPermits(1),
        Effect.timeoutOrElse({
          duration: hook.timeoutMillis,
          orElse: () => new DeliveryFailure({ message: `it did not answer within ${hook.timeoutMillis} ms` })
        }),
        Effect.interruptible,
        Effect.filterOrFail(
          ({ status }) => status === 200,
          ({ status }) => new DeliveryFailure({ message: `it answered ${status}` })
        ),
        Effect.flatMap(({ body }) =>
          // Of a name that occurs twice, JSON.parse would take the last value.
          Effect.fromResult(Json.parse(body, Json.unbounded)).pipe(
            Effect.flatMap((json) => Schema.decodeUnknownEffect(Answer)(json, { onExcessProperty: "error" })),
            Effect.filterOrFail((answer) =>
              (answer.elements ?? []).every((each) => elements.some(({ index }) => index === each.index))
            ),
            Effect.mapError(() => new DeliveryFailure({ message: "its answer is malformed" }))
          )
        )
      )

  const refusedBy = (
    owner: AccountId | null,
    hook: Hook,
    message: StandardWebhook.Message,
    facts: Facts
  ): Effect.Effect<Refused> =>
    Effect.gen(function* () {
      const troubles = yield* Troubles.Shared
      const trouble = { what: "decision hook without a valid answer", place: owner ?? "operator" }
      const answer = yield* Effect.result(answerOf(owner, hook, message, facts))
      const all = (failure: ElementFailure): Refused =>
        new Map(facts.elements.map(({ index }) => [index, failure]))
      if (Result.isFailure(answer)) {
        yield* troubles.failed(trouble, Cause.fail(answer.failure))
        // Accounts do not learn how the operator's receiver failed.
        const problem = owner === null ? "the operator's hook has not decided" : answer.failure.message
        return all(elementFailure("decision_unavailable", Reasons.text("hookSilent", { problem })))
      }
      yield* troubles.passed(trouble)
      const { decision, elements = [], reason = "no reason given" } = answer.success
      const failure = elementFailure("policy_refused", Reasons.text("hookRefused", { reason }))
      return decision === "refuse"
        ? all(failure)
        : new Map(
            elements.flatMap((each) => (each.decision === "refuse" ? [[each.index, failure] as const] : []))
          )
    })

  const messageOf = (
    { caller, chainId, endpoint, requestId }: Question,
    { elements, mostCost, sponsored }: Facts,
    previews: Shown
  ): Effect.Effect<StandardWebhook.Message, Unavailable> =>
    Effect.gen(function* () {
      const { principal } = caller
      const [record] =
        caller.resumed === true
          ? yield* Effect.mapError(journal.requests([requestId]), () => unavailable())
          : []
      const now = yield* Clock.currentTimeMillis
      return {
        id: `${requestId}_decision_${now}`,
        timestamp: Math.floor(now / 1_000),
        body: JSON.stringify({
          type: "decision.requested",
          timestamp: DateTime.formatIso(DateTime.makeUnsafe(now)),
          data: {
            accountId: principal.accountId,
            requestId,
            keyId: principal.keyId,
            endpoint,
            chainId: chainId?.toString() ?? null,
            metadata: record?.metadata ?? caller.metadata ?? {},
            sponsored,
            mostCost: mostCost.toString(),
            elements: elements.map(({ index, movements, wallet }) => ({
              index,
              wallet,
              movements: movements.map(shown),
              ...(previews.get(index) ?? noPreview)
            }))
          }
        })
      }
    })

  /** The failures of elements that a hook does not allow. Previews are made only where a hook decides. */
  const refusedOf = <R>(
    hooks: Hooks,
    question: Question,
    facts: Facts,
    previews: Effect.Effect<Shown, never, R>
  ): Effect.Effect<Refused, Unavailable, R> =>
    Effect.gen(function* () {
      const due = facts.elements.length === 0 ? [] : hooks.filter(([, hook]) => concerns(hook, facts))
      if (due.length === 0) return new Map()
      const message = yield* messageOf(question, facts, yield* previews)
      const refused = yield* Effect.forEach(due, ([owner, hook]) => refusedBy(owner, hook, message, facts), {
        concurrency: "unbounded"
      })
      const all = new Map(refused.flatMap((each) => [...each]))
      yield* Metrics.note(Metrics.policyRefusals, { reason: "hook" }, all.size)
      return all
    })

  const decideOne = ({ offer, prepared }: Asked, hooks: Hooks) => {
    const previews = Effect.provideService(Previews.of(offer, prepared), ChainRpc, rpcs)
    const question = { ...offer, chainId: offer.context.chainId }
    return Effect.map(refusedOf(hooks, question, factsOf({ offer, prepared }), previews), (refused) =>
      Links.leaveOut(Call.dependencies(offer.calls), prepared, refused)
    )
  }

  const hooksOf = (accountId: AccountId): Effect.Effect<Hooks, Unavailable> =>
    Effect.map(hookOf(accountId), (own) => [
      ...(own === null ? [] : [[accountId, own] as const]),
      ...(operators === null ? [] : [[null, operators] as const])
    ])

  const decide = <B extends Batches[number]>(askers: ReadonlyArray<Asker>, batches: ReadonlyArray<B>) =>
    Effect.gen(function* () {
      const context = askers[0]?.context
      // The treasury's top-ups are the operator's own.
      if (context === undefined || context.access.key === "treasury") return batches
      const hooks = yield* hooksOf(context.accountId)
      if (hooks.length === 0) return batches
      return yield* Effect.forEach(
        batches,
        (batch, place): Effect.Effect<B | Result.Result<Prepared>, Unavailable, ChainFacts> => {
          const [offer, made]: [Asker | undefined, Batches[number]] = [askers[place], batch]
          return offer === undefined || made === "busy" || Result.isFailure(made)
            ? Effect.succeed(batch)
            : Effect.map(decideOne({ offer, prepared: made.success }, hooks), Result.succeed)
        },
        { concurrency: "unbounded" }
      )
    })

  const decideSignatures = (request: Signatures): Effect.Effect<Refused, Unavailable> =>
    Effect.flatMap(hooksOf(request.caller.principal.accountId), (hooks) => {
      const elements = hooks.length === 0 ? [] : request.elements()
      return refusedOf(
        hooks,
        request,
        { elements, mostCost: 0n, sponsored: false },
        Effect.succeed(new Map())
      )
    })

  return { decide, decideSignatures }
})

export const layer: Layer.Layer<DecisionHook, never, ChainRpc | RequestJournal | Settings | WebhookSender> =
  Layer.effect(DecisionHook, make)
