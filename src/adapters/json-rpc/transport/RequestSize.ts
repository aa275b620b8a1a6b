/** Wait before a narrowed batch is doubled, in ms: the node or its gateway may have changed. */
const wideningMillis = 600_000

/**
 * Likewise after a rate limit, which may count calls or requests. The batch is doubled soon; the wait doubles after each
 * failure.
 */
const soonMillis = 2_000
const seldomMillis = 32_000

/** Consecutive answered requests before a larger one. */
const enough = 2

/** Adapts the calls per request to the node's responses. Times are Unix milliseconds. */
export class RequestSize {
  /** Most calls of one request. */
  calls: number
  private changedAt = 0
  private widenAfter = wideningMillis
  /** Time of the last rate limit; null: requests may run concurrently. */
  private slowedAt: number | null = null
  /** A larger batch was tried since the last narrowing. */
  private isWidened = false
  /** Consecutive answered requests of `calls` calls. */
  private answered = 0

  constructor(private readonly most: number) {
    this.calls = most
  }

  /** Whether batches are smaller than configured. */
  get isNarrow(): boolean {
    return this.calls < this.most
  }

  /** Whether requests run one by one. */
  get isSlowed(): boolean {
    return this.slowedAt !== null
  }

  /** The node refused the number of calls. */
  tooMany(calls: number, now: number): void {
    this.narrow(calls, now, wideningMillis)
  }

  /** The node refused all calls for now, perhaps because of their number. */
  refused(calls: number, now: number): void {
    this.answered = 0
    if (calls === 1) return
    this.slowedAt = now
    this.narrow(calls, now, this.isWidened ? Math.min(seldomMillis, 2 * this.widenAfter) : soonMillis)
  }

  /** Several full batches in a row show that the number of calls is not, or no longer, limited. */
  taken(calls: number, now: number): void {
    if (this.slowedAt === null || calls < this.calls) return
    this.answered += 1
    if (this.answered >= enough) this.widen(now)
  }

  /** Widens the batch when its wait is over; returns whether it did. */
  grow(now: number): boolean {
    // A clock that was set back must not prolong the wait.
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
