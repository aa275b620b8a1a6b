import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { Limit } from "../../domain/policy/Policy.js"
import { type Content, everyWallet, type Subject } from "../../domain/policy/Subject.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Budgets, BudgetsError, Figures, Window } from "../ports/Budgets.js"
import type { Layer, PolicyVersion } from "../ports/Policies.js"
import * as Rulebook from "./Rulebook.js"

/** Use of a limit in its window; null: the limit counts each op or request for itself. */
export interface Use {
  readonly limit: Limit
  readonly figures: Figures | null
}

/** The policy that binds a subject: its own, or for a wallet without its own that of `wallet:*`. */
export const bindingOf = (
  versions: ReadonlyArray<PolicyVersion>,
  layer: Layer,
  subject: Subject
): PolicyVersion | undefined => {
  const find = (name: Subject) => versions.find((each) => each.layer === layer && each.subject === name)
  return find(subject) ?? (subject.startsWith("wallet:") ? find(everyWallet) : undefined)
}

export const isWindow = (per: Limit["per"]): per is Limit["per"] & Window => per !== "op" && per !== "request"

/** Uses of the limits of the policy that binds the subject. `wallet:*` itself counts nothing: each wallet does. */
export const of = (
  { figures }: Pick<Budgets["Service"], "figures">,
  binding: PolicyVersion,
  subject: Subject
): Effect.Effect<ReadonlyArray<Use>, BudgetsError> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const { content } = binding
    const limits = content !== null && "rules" in content ? (content.limits ?? []) : []
    const wallet = subject.startsWith("wallet:0x") ? (subject.slice("wallet:".length) as Address) : null
    const isEach = binding.subject === everyWallet && wallet === null
    return yield* Effect.forEach(limits, (limit) =>
      isWindow(limit.per) && !isEach
        ? Effect.map(
            figures(Rulebook.potOf(binding.accountId, binding, limit, wallet), now, limit.per),
            (found): Use => ({ limit, figures: found })
          )
        : Effect.succeed<Use>({ limit, figures: null })
    )
  })

/** Unix seconds of the last date that can be written. */
const lastDate = 8_640_000_000_000

/** A subject's content in a few words, for people. */
export const summaryOf = (content: Content): string => {
  if (content === null) return "removed"
  if ("addresses" in content) return `addresses: ${content.addresses.length}`
  const { expiresAt, limits = [], mode, rules } = content
  const last = DateTime.makeUnsafe(Math.min(expiresAt, lastDate) * 1_000)
  const end = expiresAt === 0 ? "" : `, until ${DateTime.formatIso(last)}`
  return `${mode}, rules: ${rules.length}, limits: ${limits.length}${end}`
}
