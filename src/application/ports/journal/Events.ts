/**
 * Kinds of events of an accepted request. The transaction that makes a change writes its event.
 * - `scheduled`: the remaining work waits for a time of the chain's clock
 * - `signed`: work is in a signed transaction, or in ops given to a bundler, and may land from then on
 * - `submitted`, `replaced`: a node or the bundler took it, or the chain shows it; it was signed at higher prices
 * - `included`, `reopened`: it is in a block; a reorganisation removed it, and the request is not final
 * - `settled`: no reorganisation is expected to remove it
 * - `final`: the request has its answer
 * - `cancelled`, `expired`: the request is final, and no work of it was ever signed
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
  /** JSON; its size grows only with the elements of the request. */
  readonly data: EventData
  /** Unix milliseconds. */
  readonly at: number
}

/** The request has its answer, unless a `reopened` follows. */
export const isEnd = (kind: EventKind): boolean =>
  kind === "final" || kind === "cancelled" || kind === "expired"
