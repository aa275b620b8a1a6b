import * as Schema from "effect/Schema"
import { type InvalidRequest, invalidAt } from "../failures/Failure.js"
import { optional } from "../request/Fields.js"

/** Lists that are answered one page at a time. */

export const most = 100
const usual = 20

export const query = (noun: string) => ({
  cursor: optional(
    Schema.String.annotate({ description: "`next` of the previous page, with the same filters." })
  ),
  limit: optional(
    Schema.String.check(
      Schema.isPattern(/^(?:[1-9][0-9]?|100)$/u, { message: `expected a whole number, 1 to ${most}` })
    ).annotate({ description: `Maximum of ${noun} on the page, 1 to ${most}. Default ${usual}.` })
  )
})

export const next = Schema.NullOr(Schema.String).annotate({
  description: "Cursor of the next page, also when this page is not full; null: there is none."
})

export const limitOf = (limit: string | undefined): number => (limit === undefined ? usual : Number(limit))

/** Cuts a list, read with one more entry than the limit, to a page and the next page's cursor. */
export const cut = <A>(
  found: ReadonlyArray<A>,
  limit: number,
  cursorOf: (last: A) => string
): { readonly page: ReadonlyArray<A>; readonly next: string | null } => {
  const page = found.slice(0, limit)
  const last = page.at(-1)
  return { page, next: found.length > limit && last !== undefined ? cursorOf(last) : null }
}

export const foreignCursor: InvalidRequest = invalidAt("cursor", "expected the next of a page before")
