import type { FailedElement } from "../ports/journal/Requests.js"
import type { RefusalCode } from "./Catalogue.js"
import { type RefusalDetail, type Unprocessable, unprocessable } from "./Failure.js"
import * as Reasons from "./Reasons.js"

/** Why one element of a request cannot be done, while others may. */
export interface ElementFailure {
  readonly code: RefusalCode
  readonly message: Reasons.Text
  /** Figures that the element's detail shows beside the message. */
  readonly figures: Readonly<Record<string, string>>
}

export const elementFailure = (
  code: RefusalCode,
  message: Reasons.Text = Reasons.ofCode(code),
  figures: Readonly<Record<string, string>> = {}
): ElementFailure => ({ code, message, figures })

/** The failure of an element because of the one that it depends on. */
export const dependencyFailed = (on: number): ElementFailure =>
  elementFailure("dependency_failed", Reasons.text("dependency", { operation: on }))

/** The revert data that an element's answer shows beside its error, where no definition decodes them. */
export const revertDataOf = (failure: ElementFailure | undefined): { readonly data?: string } =>
  failure?.figures.data === undefined ? {} : { data: failure.figures.data }

/** Codes whose text stands alone: the elements' messages add the reason. */
const withReasons: ReadonlySet<string> = new Set([
  "execution_failed",
  "insufficient_funds",
  "submission_unpaid"
])

/** Where the elements of a request stand in its body. */
export type ElementList = "operations" | "accounts"

/** Why elements of an accepted request have come to nothing, as the journal has kept it. */
export const ofJournal = (
  failed: ReadonlyArray<FailedElement>
): ReadonlyArray<readonly [number, ElementFailure]> =>
  failed.map(({ code, figures, index, message }) => [
    index,
    { code: code as RefusalCode, message: Reasons.known(message), figures }
  ])

/** What is told of each of the elements that failed. */
export const detailsOf = (
  list: ElementList,
  failures: ReadonlyArray<readonly [number, ElementFailure]>
): ReadonlyArray<RefusalDetail> =>
  failures.map(([index, { figures, message }]) => ({ path: `${list}[${index}]`, message, ...figures }))

/**
 * The refusal of a request of which no element can be done: the elements' own code when they agree, and their own
 * text when there is but one text.
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

/** The note of a request of which these elements were found done. */
export const noteOf = (existing: Iterable<number>): string | null => {
  const all = [...existing]
  return all.length === 0 ? null : JSON.stringify({ existing: all })
}

/** What else is noted is its endpoint's own: JSON or hex. */
export const existingOf = (note: string | null): Set<number> => {
  const { existing = [] }: { readonly existing?: ReadonlyArray<number> } =
    note === null || note.startsWith("0x") ? {} : JSON.parse(note)
  return new Set(existing)
}
