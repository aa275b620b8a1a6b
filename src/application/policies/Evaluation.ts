import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Dependencies from "../../domain/erc4337/Dependencies.js"
import * as Policy from "../../domain/policy/Policy.js"
import type { Address } from "../../domain/primitives/Address.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import type { Budgets, BudgetsError } from "../ports/Budgets.js"
import type { PolicyVersion } from "../ports/Policies.js"
import type { AccountId } from "../ports/Tenants.js"
import * as Call from "../prepare/Call.js"
import * as Links from "../prepare/ops/Links.js"
import * as EventLoop from "../runtime/EventLoop.js"
import * as Judgement from "./Judgement.js"
import * as Rulebook from "./Rulebook.js"
import * as Signing from "./Signing.js"
import * as Usage from "./Usage.js"

/**
 * A dry run of a request's elements against policies. It holds, signs and sends nothing.
 *
 * Gotchas: fees are unknown before an op is estimated, so limits of `fees` count nothing here.
 */

/** Whose numbers are shown: an account sees those of its own layer, the operator all. */
export type View = "account" | "operator"

/** The verdict of one policy on an element. */
export interface Finding {
  readonly bound: Rulebook.Bound
  /** Null: it allows the element. */
  readonly objection: Judgement.Objection | null
}

export interface Evaluated {
  readonly index: number
  /** Null: a signature that no wallet is named for. */
  readonly wallet: Address | null
  readonly movements: Policy.Spending["movements"]
  /** `refuse`: a policy in force refuses it, or the element on which it depends. */
  readonly verdict: "allow" | "refuse"
  readonly findings: ReadonlyArray<Finding>
}

/** Version of a draft. */
export const draft = 0

/** The versions with drafts in place of those of the account's layer; null removes a subject's policy. */
export const withDrafts = (
  versions: ReadonlyArray<PolicyVersion>,
  drafts: ReadonlyMap<string, PolicyVersion["content"]>,
  of: Pick<PolicyVersion, "accountId" | "layer">
): ReadonlyArray<PolicyVersion> => {
  const isDrafted = ({ layer, subject }: PolicyVersion) => layer === of.layer && drafts.has(subject)
  const made = [...drafts].map(([subject, content]): PolicyVersion => {
    const before = versions.find((each) => each.layer === of.layer && each.subject === subject)
    const countedAs = before?.countedAs ?? subject
    return { ...of, subject, content, countedAs, version: draft, at: 0, by: "", requestId: null }
  })
  return [...versions.filter((each) => !isDrafted(each)), ...made]
}

/** An element, and the objection of each policy that binds it, windows of limits aside. */
interface Candidate {
  readonly index: number
  readonly element: Judgement.Element
  readonly chainId: bigint | null
  readonly objectionOf: (
    bound: Rulebook.Bound,
    at: number,
    sums: Map<string, bigint>
  ) => Judgement.Objection | null
}

/** A request that is only judged. */
export interface Request {
  readonly accountId: AccountId
  readonly dependencies: Dependencies.Dependencies
  readonly candidates: (book: Rulebook.Book) => ReadonlyArray<Candidate>
}

/** A request for ops, deployments or a transaction. */
export const ofCalls = (asker: Judgement.Judged): Request => ({
  accountId: asker.context.accountId,
  dependencies: Call.dependencies(asker.calls),
  candidates: (book) =>
    asker.calls.map((call) => {
      const element = Judgement.elementOf(book, asker, call, undefined)
      const op = call.kind === "given" ? { kind: call.kind, unsigned: call.op } : undefined
      return {
        index: call.index,
        element,
        chainId: asker.context.chainId,
        objectionOf: (bound, at, sums) => Judgement.objection(book, asker, bound, element, op, at, sums)
      }
    })
})

/** A request for signatures. */
export const ofContents = (
  asker: Signing.Asker,
  contents: ReadonlyArray<Pick<Signing.Content, "movements">>
): Request => ({
  accountId: asker.caller.principal.accountId,
  dependencies: contents.map(() => null),
  candidates: (book) =>
    contents.map((content, index) => {
      const { chainId, element } = Signing.elementOf(book, asker, content)
      const place = { accountId: asker.caller.principal.accountId, chainId, endpoint: asker.endpoint }
      return {
        index,
        element,
        chainId,
        objectionOf: (bound, at) => Judgement.ofSpending(book, { ...place, at }, bound, element, new Map())
      }
    })
})

/** Judges the elements as if their request were posted now. `versions`: in force, or drafts. */
export const of = (
  { figures }: Pick<Budgets["Service"], "figures">,
  versions: ReadonlyArray<PolicyVersion>,
  { accountId, candidates, dependencies: on }: Request,
  view: View
): Effect.Effect<ReadonlyArray<Evaluated>, BudgetsError> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const book = Rulebook.bookOf(versions)
    const failed = new Map<number, ElementFailure>()
    const refuse = (findings: ReadonlyArray<Finding>, index: number) => {
      if (findings.some(({ bound, objection }) => objection !== null && bound.policy.mode === "enforce"))
        failed.set(index, elementFailure("policy_refused"))
    }

    let sums: ReadonlyMap<string, bigint> = new Map()
    const judged = yield* EventLoop.map(candidates(book), (candidate) => {
      const { element, index, objectionOf } = candidate
      const own = new Map(sums)
      const findings = element.bound.map((each): Finding => {
        const bound = view === "operator" ? each : Judgement.shown(each)
        return { bound, objection: objectionOf(bound, now, own) }
      })
      refuse(findings, index)
      if (!Links.hasFailed(on, failed, index)) sums = own
      return { candidate, findings }
    })
    Links.failDependants(on, failed)

    /** Room of each limit over a window, after the elements before. */
    const rooms = new Map<string, bigint>()
    /** Counts an element in the limits of a policy; `taken`: the room that it leaves. */
    const count = (
      { bound, objection }: Finding,
      { chainId, element }: Candidate,
      taken: Map<string, bigint>
    ) =>
      Effect.gen(function* () {
        for (const limit of objection === null ? (bound.policy.limits ?? []) : []) {
          const { max, per } = limit
          const asked = Policy.amountOf(limit, element.spending) ?? 0n
          if (!Usage.isWindow(per) || !Policy.isOn(limit, chainId) || asked === 0n) continue
          const pot = Rulebook.potOf(accountId, bound, limit, element.wallet)
          const read = Effect.map(figures(pot, now, per), ({ booked, held }) => max - booked - held)
          const room = BigInts.max(0n, rooms.get(pot.name) ?? (yield* read))
          if (asked > room) return { bound, objection: Judgement.ofLimit(limit, room, asked) }
          taken.set(pot.name, room - asked)
        }
        return { bound, objection }
      })

    const evaluated: Array<Omit<Evaluated, "verdict">> = []
    for (const { candidate, findings: ofRules } of judged) {
      const { element, index } = candidate
      const taken = new Map<string, bigint>()
      const findings = failed.has(index)
        ? ofRules
        : yield* Effect.forEach(ofRules, (finding) => count(finding, candidate, taken))
      refuse(findings, index)
      if (!failed.has(index)) for (const [name, room] of taken) rooms.set(name, room)
      const { spending, wallet } = element
      evaluated.push({ index, wallet, movements: spending.movements, findings })
    }
    Links.failDependants(on, failed)
    return evaluated.map((each) => ({ ...each, verdict: failed.has(each.index) ? "refuse" : "allow" }))
  })
