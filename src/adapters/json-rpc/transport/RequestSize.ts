/**
 * After so long twice as many calls are tried at once where the node said that it takes fewer: it, or what is before it, may
 * have changed.
 */
const wideningMillis = 600_000

/**
 * The same where the rate was limited, perhaps by the calls of a request: whether it was by them or by the requests, nobody
 * says, so that more are tried soon, and twice as seldom after each time in vain.
 */
const soonMillis = 2_000
const seldomMillis = 32_000

/** Requests that are answered in a row, until a larger one is tried. */
const enough = 2

/** How many calls a node is asked in one request, by how it has answered. Times are Unix milliseconds. */
export class RequestSize {
  /** Calls of one request, at most. */
  calls: number
  private changedAt = 0
  private widenAfter = wideningMillis
  /** When the rate was limited last; null: requests need not go one after the other. */
  private slowedAt: number | null = null
  /** More than that was tried since it was narrowed. */
  private isWidened = false
  /** Requests of so many calls that were answered in a row. */
  private answered = 0

  constructor(private readonly most: number) {
    this.calls = most
  }

  /** Smaller than what the service would ask. */
  get isNarrow(): boolean {
    return this.calls < this.most
  }

  /** Requests go one after the other. */
  get isSlowed(): boolean {
    return this.slowedAt !== null
  }

  /** The node does not take so many calls in one request. */
  tooMany(calls: number, now: number): void {
    this.narrow(calls, now, wideningMillis)
  }

  /** All of the calls were refused for now: that may be one of so many of them. */
  refused(calls: number, now: number): void {
    this.answered = 0
    if (calls === 1) return
    this.slowedAt = now
    this.narrow(calls, now, this.isWidened ? Math.min(seldomMillis, 2 * this.widenAfter) : soonMillis)
  }

  /** It was the rate of the requests that was limited, or nothing is any more, where several are answered in a row. */
  taken(calls: number, now: number): void {
    if (this.slowedAt === null || calls < this.calls) return
    this.answered += 1
    if (this.answered >= enough) this.widen(now)
  }

  /** Whether more calls are to be tried at once from now on. */
  grow(now: number): boolean {
    // Not to be put off for longer where the clock was set back.
    const isOver = (at: number, millis: number) => now < at || now >= at + millis
    if (this.slowedAt !== null && isOver(this.slowedAt, seldomMillis)) this.slowedAt = null
    if (!this.isNarrow || !isOver(this.changedAt, this.widenAfter)) return false
    this.widen(now)
    return true
  }

  private narrow(calls: number, now: number, widenAfter: number): void {
    const half = Math.max(1, calls >> 1)
    if (half >= this.calls) return
    this.calls = half
    this.changedAt = now
    this.widenAfter = widenAfter
    this.isWidened = false
  }

  private widen(now: number): void {
    this.answered = 0
    this.changedAt = now
    this.calls = Math.min(this.most, 2 * this.calls)
    this.isWidened = this.isNarrow
    if (!this.isNarrow) this.slowedAt = null
  }
}
