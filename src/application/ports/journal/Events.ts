/**
 * What became of an accepted request, each written in the transaction that made it so.
 *
 * `accepted`; `scheduled`: what is left of it waits for a time of the chain's clock; `signed`: work of it is in a signed transaction, or in ops that are given to
 * a bundler, and may land from then on; `submitted`: a node or the bundler took that, or it was found on the chain;
 * `replaced`: that transaction was signed anew at higher prices; `included`: it is in a block; `reopened`: it is in none
 * any more, after a reorganisation, and the request not final; `settled`: no reorganisation takes it back; `final`: the
 * request has its answer; `cancelled`, `expired`: it is final, and nothing of it was ever signed.
 */
export const kinds = [
  "accepted",
  "scheduled",
  "signed",
  "submitted",
  "replaced",
  "included",
  "reopened",
  "settled",
  "final",
  "cancelled",
  "expired"
] as const
export type EventKind = (typeof kinds)[number]

export type EventData = Readonly<Record<string, unknown>>

export interface RequestEvent {
  /** From 1 on, without a gap. */
  readonly sequence: number
  readonly kind: EventKind
  /** JSON, of a size that grows with nothing but the elements of the request. */
  readonly data: EventData
  /** Unix milliseconds. */
  readonly at: number
}

/** The request has its answer, as long as no `reopened` comes after it. */
export const isEnd = (kind: EventKind): boolean =>
  kind === "final" || kind === "cancelled" || kind === "expired"
