import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Policy from "../../../domain/policy/Policy.js"
import * as Subject from "../../../domain/policy/Subject.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import { type Failure, invalidAt, notFound, unavailable } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import * as Uses from "../../policies/Usage.js"
import { Budgets } from "../../ports/Budgets.js"
import { Networks } from "../../ports/Networks.js"
import { Policies, PoliciesError, type PolicyVersion } from "../../ports/Policies.js"
import { Tenants } from "../../ports/Tenants.js"
import { authorOf, type Caller } from "../../request/Caller.js"
import * as Fields from "../../request/Fields.js"

/** The endpoints of an account's own spending rules. The operator's layer is not shown to accounts. */

/** Most bytes of a body. */
export const maxBytes = 65_536

export const Path = Schema.Struct({
  subject: Schema.String.annotate({
    description:
      "account, key: and the id of a key, signer: or wallet: and an address, wallet:* for each wallet without its own, or list: and a name."
  })
}).annotate({ identifier: "PolicyPath" })
export type Path = typeof Path.Type

export const Content = Schema.Union([
  Policy.Policy.annotate({ identifier: "Policy" }),
  Policy.List.annotate({ identifier: "AddressList" })
])

export const Shown = Schema.Struct({
  subject: Schema.String,
  version: Schema.Int.annotate({ description: "Counts the subject's versions from 1." }),
  policy: Schema.NullOr(Content).annotate({ description: "Null: this version removes the policy." }),
  at: Schema.Int.annotate({ description: "Unix seconds." }),
  by: Schema.String.annotate({ description: "key: and the id of the key that set it." }),
  requestId: Schema.NullOr(Schema.String)
}).annotate({ identifier: "PolicyVersion" })

export const Written = Schema.Struct({
  ...Shown.fields,
  warnings: Schema.Array(Schema.String).annotate({
    description:
      "Probable mistakes: an end in the past or in milliseconds, a chain that the service does not have, a list that does not exist."
  })
}).annotate({ identifier: "WrittenPolicy" })

const shown = ({ at, by, content, requestId, subject, version }: PolicyVersion): typeof Shown.Type => ({
  subject,
  version,
  policy: content,
  at,
  by,
  requestId
})

export const subjectOf = (text: string, path = "subject"): Effect.Effect<Subject.Subject, Failure> =>
  Effect.fromResult(Result.mapError(Subject.from(text), (message) => invalidAt(path, message)))

/** The subject in canonical form; 400 for content of another kind. `at`: place of the content, and of its subject. */
export const subjectFor = (text: string, content: Subject.Content, at?: string) =>
  Effect.filterOrFail(
    subjectOf(text, at),
    (subject) => content === null || Subject.isList(subject) === "addresses" in content,
    (subject): Failure =>
      invalidAt(
        at ?? "",
        Subject.isList(subject)
          ? "a list holds addresses and no rules"
          : "a policy holds rules; addresses belong to a subject list:NAME"
      )
  )

/** Fails for the id of no key of the account. */
export const checkKey = ({ accountId }: Caller["principal"], keyId: string, path: string) =>
  Effect.gen(function* () {
    const { hasKey } = yield* Tenants
    const isKnown = yield* Effect.mapError(hasKey?.(accountId, keyId) ?? Effect.succeed(false), () =>
      unavailable()
    )
    if (!isKnown) return yield* invalidAt(path, "the account has no key with this id")
  })

/** Seconds of a hundred years: a later end is most probably written in milliseconds. */
const farSeconds = 3_155_760_000

/**
 * Probable mistakes in a version. They do not refuse it: a list or a network may follow, and the service signs documents
 * of other chains too.
 */
export const warningsOf = ({ accountId, at, content, layer }: PolicyVersion) =>
  Effect.gen(function* () {
    if (content === null || "addresses" in content) return []
    const chains = new Set((yield* (yield* Networks).chainIds).map(String))
    const subjects = (yield* (yield* Policies).current(accountId)).flatMap((each) =>
      each.layer === layer && each.content !== null ? each.subject : []
    )
    const { expiresAt, limits = [], rules } = content
    const warnings: Array<string> = []
    const checkChain = (path: string, chain: string) => {
      if (!chains.has(chain)) warnings.push(`${path}: the service has no network ${chain}`)
    }
    if (expiresAt !== 0 && expiresAt <= at)
      warnings.push("expiresAt: it is in the past, so everything is refused")
    if (expiresAt > at + farSeconds)
      warnings.push("expiresAt: it is more than a hundred years ahead; expected Unix seconds")
    for (const [index, { match }] of rules.entries()) {
      for (const chain of match.chains ?? []) checkChain(`rules[${index}].match.chains`, chain)
      for (const to of match.to ?? [])
        if (to.startsWith("list:") && !subjects.includes(to))
          warnings.push(`rules[${index}].match.to: there is no ${to}`)
    }
    for (const [index, { chain }] of limits.entries()) checkChain(`limits[${index}].chain`, chain)
    return warnings
  })

/** A store that fails is a defect. */
export const toFailure = <A, R>(effect: Effect.Effect<A, Failure | PoliciesError, R>) =>
  Effect.catchIf(
    effect,
    (error) => error instanceof PoliciesError,
    (error): Effect.Effect<never, Failure> =>
      error.reason === "full" ? Effect.fail(invalidAt("", error.message)) : Effect.die(error)
  )

const put = ({ ifMatch, principal, requestId }: Caller, text: string, content: Subject.Content) =>
  Effect.gen(function* () {
    const subject = yield* subjectFor(text, content)
    // A misspelt id would bind nothing.
    if (content !== null && subject.startsWith("key:"))
      yield* checkKey(principal, subject.slice("key:".length), "subject")
    const { accountId } = principal
    const now = yield* Clock.currentTimeMillis
    const put = yield* (yield* Policies).put(
      {
        accountId,
        layer: "account",
        subject,
        content,
        at: Math.floor(now / 1_000),
        by: authorOf(principal),
        requestId
      },
      ifMatch ?? null
    )
    if ("version" in put) return put
    if (content === null && put.mismatch === 0) return yield* notFound("policy_not_found")
    return yield* invalidAt(
      "If-Match",
      put.mismatch === 0 ? "there is no version" : `version ${put.mismatch} is the current one`,
      "version_mismatch"
    )
  }).pipe(toFailure)

/** Adds the next version of a subject's policy, or of a list. */
export const set = (caller: Caller, { subject, ...content }: typeof Content.Type & Path) =>
  Effect.flatMap(put(caller, subject, content), (version) =>
    Effect.map(toFailure(warningsOf(version)), (warnings) => ({ ...shown(version), warnings }))
  ).pipe(Span.named("SetPolicy"))

/** Adds a version without rules. */
export const remove = (caller: Caller, { subject }: Path) =>
  put(caller, subject, null).pipe(Effect.map(shown), Span.named("RemovePolicy"))

export const List = Schema.Struct({ policies: Schema.Array(Shown) }).annotate({ identifier: "PolicyList" })

/** The account's own policies in force. */
export const current = ({ principal }: Caller) =>
  Effect.map(
    Effect.flatMap(Policies, (store) => store.current(principal.accountId)),
    (versions) => versions.filter(({ layer }) => layer === "account")
  )

export const list = (caller: Caller) =>
  current(caller).pipe(
    Effect.map((versions) => ({ policies: versions.map(shown) })),
    toFailure,
    Span.named("ListPolicies")
  )

export const Query = Schema.Struct({
  version: Fields.optional(
    Schema.String.check(
      Schema.isPattern(/^[1-9][0-9]{0,14}$/, { message: "expected a version, a decimal number" })
    ).annotate({ description: "Default: the current version." })
  )
}).annotate({ identifier: "PolicyQuery" })

/** One version of a subject's policy. */
export const get = (caller: Caller, { subject: text, version }: Path & typeof Query.Type) =>
  Effect.gen(function* () {
    const subject = yield* subjectOf(text)
    const versions =
      version === undefined
        ? yield* current(caller)
        : yield* (yield* Policies).history(caller.principal.accountId, "account", subject)
    const found = versions.find(
      (each) => each.subject === subject && (version === undefined || each.version === Number(version))
    )
    return found === undefined ? yield* notFound("policy_not_found") : shown(found)
  }).pipe(toFailure, Span.named("GetPolicy"))

export const Usage = Schema.Struct({
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

export const shownUsage = (
  { subject, version }: PolicyVersion,
  uses: ReadonlyArray<Uses.Use>
): typeof Usage.Type => ({
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
export const usage = (caller: Caller, { subject: text }: Path) =>
  Effect.gen(function* () {
    const subject = yield* subjectOf(text)
    const binding = Uses.bindingOf(yield* current(caller), "account", subject)
    if (binding === undefined) return yield* notFound("policy_not_found")
    if (subject === Subject.everyWallet)
      return yield* invalidAt(
        "subject",
        "wallet:* counts each wallet for itself: ask for wallet: and its address"
      )
    return shownUsage(binding, yield* Effect.orDie(Uses.of(yield* Budgets, binding, subject)))
  }).pipe(toFailure, Span.named("GetPolicyUsage"))
