import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Subject from "../../../domain/policy/Subject.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import { invalidAt, notFound } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import * as Usage from "../../policies/Usage.js"
import { Budgets } from "../../ports/Budgets.js"
import type { PolicyVersion } from "../../ports/Policies.js"
import type { Caller } from "../../request/Caller.js"
import * as Policies from "./Policies.js"

export const Response = Schema.Struct({
  subject: Schema.String.annotate({ description: "The subject whose policy counts, for example wallet:*." }),
  version: Schema.Int,
  limits: Schema.Array(
    Schema.Struct({
      limit: Schema.String.annotate({ description: "Name of the limit." }),
      chain: Schema.String,
      asset: Schema.String,
      window: Schema.Literals(["op", "request", "day", "24h", "30d"]),
      max: Uint.schema,
      held: Schema.NullOr(Uint.schema).annotate({
        description:
          "Reserved for work that is not settled. Null: the limit counts each op or request for itself."
      }),
      booked: Schema.NullOr(Uint.schema).annotate({ description: "Spent in the window." })
    })
  )
}).annotate({ identifier: "PolicyUsage" })

export const shown = (
  { subject, version }: PolicyVersion,
  uses: ReadonlyArray<Usage.Use>
): typeof Response.Type => ({
  subject,
  version,
  limits: uses.map(({ figures, limit: { asset, chain, max, name, per } }) => ({
    limit: name,
    chain,
    asset,
    window: per,
    max,
    held: figures?.held ?? null,
    booked: figures?.booked ?? null
  }))
})

/** Use of the limits of a subject's policy. */
export const run = (caller: Caller, { subject: text }: Policies.Path) =>
  Effect.gen(function* () {
    const subject = yield* Policies.subjectOf(text)
    const binding = Usage.bindingOf(yield* Policies.current(caller), "account", subject)
    if (binding === undefined) return yield* notFound("policy_not_found")
    if (subject === Subject.everyWallet)
      return yield* invalidAt(
        "subject",
        "wallet:* counts each wallet for itself: ask for wallet: and its address"
      )
    return shown(binding, yield* Effect.orDie(Usage.of(yield* Budgets, binding, subject)))
  }).pipe(Policies.toFailure, Span.named("GetPolicyUsage"))
