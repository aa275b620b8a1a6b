import type { FailedElement } from "../ports/journal/Requests.js"
import type { RefusalCode } from "./Catalogue.js"
import { type RefusalDetail, type Unprocessable, unprocessable } from "./Failure.js"
import * as Reasons from "./Reasons.js"

/** The failure of one element of a request, while others may succeed. */
export interface ElementFailure {
  readonly code: RefusalCode
  readonly message: Reasons.Text
  /** Figures in the element's detail, in addition to the message. */
  readonly figures: Readonly<Record<string, string>>
}

export const elementFailure = (
  code: RefusalCode,
  message: Reasons.Text = Reasons.ofCode(code),
  figures: Readonly<Record<string, string>> = {}
): ElementFailure => ({ code, message, figures })

export const dependencyFailed = (on: number): ElementFailure =>
  elementFailure("dependency_failed", Reasons.text("dependency", { operation: on }))

/** Undecoded revert data for an element's answer, in addition to its error. */
export const revertDataOf = (failure: ElementFailure | undefined): { readonly data?: string } =>
  failure?.figures.data === undefined ? {} : { data: failure.figures.data }

/** Codes whose text the request's answer keeps: the elements' messages add the reason. */
const withReasons: ReadonlySet<string> = new Set([
  "execution_failed",
  "insufficient_funds",
  "submission_unpaid"
])

/** The field of a request's body that lists its elements. */
export type ElementList = "operations" | "accounts"

/** The failures of an accepted request's elements, from the journal. */
export const ofJournal = (
  failed: ReadonlyArray<FailedElement>
): ReadonlyArray<readonly [number, ElementFailure]> =>
  failed.map(({ code, figures, index, message }) => [
    index,
    { code: code as RefusalCode, message: Reasons.known(message), figures }
  ])

export const detailsOf = (
  list: ElementList,
  failures: ReadonlyArray<readonly [number, ElementFailure]>
): ReadonlyArray<RefusalDetail> =>
  failures.map(([index, { figures, message }]) => ({ path: `${list}[${index}]`, message, ...figures }))

/**
 * The refusal of a request when every element failed. It has the elements' code when they agree, and their message when
 * there is only one.
 */
export const refuseAll = (
  list: ElementList,
  failed: ReadonlyMap<number, ElementFailure>,
  extra: Readonly<Record<string, unknown>>
): Unprocessable => {
  const failures = [...failed].sort(([a], [b]) => a - b)
  const details = detailsOf(list, failures)
  const codes = new Set(failures.map(([, { code }]) => code))
  const messages = new Set(failures.map(([, { message }]) => message))
  const [first] = failures
  if (first === undefined || codes.size !== 1) return unprocessable("execution_failed", details, { extra })
  const [, { code, message }] = first
  const own = messages.size === 1 && !withReasons.has(code)
  return unprocessable(code, details, own ? { extra, message } : { extra })
}

/** The note of a request whose elements include already done ones. */
export const noteOf = (existing: Iterable<number>): string | null => {
  const all = [...existing]
  return all.length === 0 ? null : JSON.stringify({ existing: all })
}

/** The elements in `noteOf`'s note; other notes (JSON or hex) are the endpoint's own. */
export const existingOf = (note: string | null): Set<number> => {
  const { existing = [] }: { readonly existing?: ReadonlyArray<number> } =
    note === null || note.startsWith("0x") ? {} : JSON.parse(note)
  return new Set(existing)
}
