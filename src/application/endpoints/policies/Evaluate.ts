import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../../../domain/json/Json.js"
import type * as Subject from "../../../domain/policy/Subject.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import { type Failure, invalidAt, unavailable } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import * as Evaluation from "../../policies/Evaluation.js"
import { Budgets } from "../../ports/Budgets.js"
import { Policies as Store } from "../../ports/Policies.js"
import type { Caller } from "../../request/Caller.js"
import { optional } from "../../request/Fields.js"
import type * as Bodies from "../Bodies.js"
import * as ExecuteEncoded from "../operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../operations/ExecuteOperations.js"
import * as ExecutePasskey from "../operations/ExecutePasskey.js"
import * as TransactSigner from "../operations/TransactSigner.js"
import * as SignMessage from "../signing/SignMessage.js"
import * as SignMessages from "../signing/SignMessages.js"
import * as CreateWallets from "../wallets/CreateWallets.js"
import * as Policies from "./Policies.js"

/** A dry run of a request against the account's policies, or against drafts. */

const bodyOf = <const Endpoint extends string, R extends Schema.Top>(
  endpoint: Endpoint,
  { Request }: { readonly Request: R }
) =>
  Schema.Struct({
    endpoint: Schema.Literal(endpoint),
    request: Request,
    keyId: optional(Schema.String).annotateKey({
      description: "The id of the account's key that would post it. Default: the key that asks."
    }),
    policies: optional(
      Schema.Record(Schema.String, Schema.Union([...Policies.Content.members, Schema.Null])),
      {}
    ).annotateKey({
      description:
        "Drafts by subject, in place of the account's own policies and lists of these subjects. Null: none."
    })
  })

export const Request = Schema.Union([
  bodyOf("/execute", ExecuteOperations),
  bodyOf("/executeEncoded", ExecuteEncoded),
  bodyOf("/executePasskey", ExecutePasskey),
  bodyOf("/transactSigner", TransactSigner),
  bodyOf("/create", CreateWallets),
  bodyOf("/sign", SignMessages),
  bodyOf("/signMessage", SignMessage)
]).annotate({ identifier: "EvaluatePoliciesRequest" })
export type Request = typeof Request.Type

/** Endpoints whose requests are judged. */
export const endpoints = Request.members.map(({ fields }) => fields.endpoint.literal)

const Verdict = Schema.Literals(["allow", "refuse"])

const Movement = Schema.Struct({
  kind: Schema.String,
  contract: Schema.NullOr(Schema.String).annotate({ description: "Null: a signature." }),
  selector: Schema.NullOr(Schema.String),
  token: Schema.NullOr(Schema.String).annotate({ description: "native, or the token. Null: it moves none." }),
  to: Schema.NullOr(Schema.String).annotate({ description: "Recipient or spender." }),
  amount: Schema.NullOr(Uint.schema).annotate({ description: "Least units. Null: without bound." })
}).annotate({ identifier: "EvaluatedMovement" })

const Finding = Schema.Struct({
  subject: Schema.String,
  layer: Schema.Literals(["operator", "account"]),
  version: Schema.NullOr(Schema.Int).annotate({
    description: "Null: a draft, or a policy of the operator's."
  }),
  mode: Schema.Literals(["enforce", "observe"]),
  verdict: Verdict,
  rule: Schema.NullOr(Schema.String).annotate({ description: "The rule that refuses." }),
  limit: Schema.NullOr(Schema.String).annotate({ description: "The limit that refuses." }),
  left: Schema.NullOr(Uint.schema).annotate({ description: "Room of that limit, least units." }),
  reason: Schema.NullOr(Schema.String)
}).annotate({ identifier: "EvaluatedPolicy" })

export const Response = Schema.Struct({
  elements: Schema.Array(
    Schema.Struct({
      index: Schema.Int,
      wallet: Schema.NullOr(Schema.String).annotate({ description: "Null: a signature of no wallet." }),
      movements: Schema.Array(Movement),
      verdict: Verdict.annotate({
        description:
          "refuse: an enforced policy refuses it, or refuses the element on which it depends. allow: none does."
      }),
      policies: Schema.Array(Finding).annotate({
        description: "Each policy that binds the element; none: it is not bound."
      })
    })
  )
}).annotate({ identifier: "EvaluatePoliciesResponse" })

/** The request as its endpoint reads it. */
const read = (
  caller: Caller,
  given: Request
): Effect.Effect<Evaluation.Request, Failure, Bodies.Surroundings | ChainFacts> => {
  switch (given.endpoint) {
    case "/execute":
      return Effect.map(ExecuteOperations.kind.offerOf(caller, given.request, ""), Evaluation.ofCalls)
    case "/executeEncoded":
      return Effect.map(ExecuteEncoded.kind.offerOf(caller, given.request, ""), Evaluation.ofCalls)
    case "/executePasskey":
      return Effect.map(ExecutePasskey.kind.offerOf(caller, given.request, ""), Evaluation.ofCalls)
    case "/transactSigner":
      return Effect.map(TransactSigner.kind.offerOf(caller, given.request, ""), Evaluation.ofCalls)
    case "/create":
      return Effect.map(CreateWallets.kind.offerOf(caller, given.request, ""), Evaluation.ofCalls)
    case "/sign":
      return Effect.gen(function* () {
        const { asker, digests } = yield* SignMessages.prepare(caller, given.request)
        const contents = yield* Effect.forEach(digests, (digest, index) =>
          Effect.fromResult(Result.mapError(digest, (message) => invalidAt(`messages[${index}]`, message)))
        )
        return Evaluation.ofContents(asker, contents)
      })
    case "/signMessage":
      return Effect.map(SignMessage.prepare(caller, given.request), ({ asker, contents }) =>
        Evaluation.ofContents(asker, contents)
      )
  }
}

/** The failure of the inner request, with paths of the outer one. */
const inRequest = (failure: Failure): Failure => {
  const details = failure.details.map((detail) =>
    detail.path === "" ? detail : { ...detail, path: `request.${detail.path}` }
  )
  const Same = failure.constructor as new (fields: object) => Failure
  return new Same({ ...failure, message: failure.message, details })
}

/** Drafts by canonical subject, checked as they are when they are set. */
const draftsOf = ({ policies = {} }: Pick<Request, "policies">) =>
  Effect.map(
    Effect.forEach(Object.entries(policies), ([text, content]) =>
      Effect.map(
        Policies.subjectFor(text, content, Json.member("policies", text)),
        (subject): [Subject.Subject, Subject.Content] => [subject, content]
      )
    ),
    (entries) => new Map(entries)
  )

/** The finding as the viewer sees it; none: an observed policy of the operator's. */
const show =
  (view: Evaluation.View) =>
  ({ bound, objection }: Evaluation.Finding): ReadonlyArray<typeof Finding.Type> => {
    const { layer, policy, subject, version } = bound
    const { mode } = policy
    const isWhole = view === "operator" || layer === "account"
    if (!isWhole && mode === "observe") return []
    const { left, limit, problem, rule } = isWhole && objection !== null ? objection : hidden
    return [
      {
        subject,
        layer,
        version: isWhole && version !== Evaluation.draft ? version : null,
        mode,
        verdict: objection === null ? "allow" : "refuse",
        rule,
        limit,
        left,
        reason: problem
      }
    ]
  }

const hidden = { rule: null, limit: null, left: null, problem: null }

/** Evaluates the request as its caller's. Drafts replace the account's layer, or for the operator the operator's. */
export const evaluate = (caller: Caller, given: Request, view: Evaluation.View) =>
  Effect.gen(function* () {
    const { accountId } = caller.principal
    const drafts = yield* draftsOf(given)
    const stored = yield* Effect.mapError((yield* Store).current(accountId), () => unavailable())
    const versions = Evaluation.withDrafts(stored, drafts, { accountId, layer: view })
    const request = yield* Effect.mapError(read({ ...caller, isAsynchronous: true }, given), inRequest)
    const elements = yield* Effect.mapError(Evaluation.of(yield* Budgets, versions, request, view), () =>
      unavailable()
    )
    return {
      elements: elements.map(({ findings, index, movements, verdict, wallet }) => ({
        index,
        wallet,
        movements: movements.map(({ amount, asset, contract, kind, selector, to }) => ({
          kind,
          contract,
          selector,
          token: asset,
          to,
          amount
        })),
        verdict,
        policies: findings.flatMap(show(view))
      }))
    }
  })

/** Judges a request as if it were posted now, by the policies in force or by drafts. Holds, signs and sends nothing. */
export const run = (caller: Caller, given: Request) =>
  Effect.gen(function* () {
    const { keyId = null } = given
    const { principal } = caller
    if (keyId === null || keyId === principal.keyId) return yield* evaluate(caller, given, "account")
    yield* Policies.checkKey(principal, keyId, "keyId")
    return yield* evaluate({ ...caller, principal: { ...principal, keyId } }, given, "account")
  }).pipe(Span.named("EvaluatePolicies"))
