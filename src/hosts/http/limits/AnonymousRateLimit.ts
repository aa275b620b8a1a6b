import { Lru } from "../../../domain/primitives/Lru.js"

export interface Limits {
  /** Requests without a valid key per address and UTC minute. */
  readonly perMinute: number
  /** Most addresses counted; the least recently seen is evicted first. */
  readonly addresses?: number
  /** Most known keys; the least recently seen is evicted first. */
  readonly keys?: number
}

const minute = 60_000

/** `cst_` and 12 more characters of a key: too many to guess, too few to use. */
const beginning = (key: string): string => key.slice(0, 16)

/**
 * Counts the requests without a valid key by address, in this process. A caller over the limit is refused before any work.
 * A key that was valid here before still gets its check, so that a keyless caller at the same address (a proxy's, for
 * example) cannot lock an account out.
 */
export class AnonymousRateLimit {
  private begins = Number.NaN
  private counts: Lru<string, number>
  private refused = new Set<string>()
  private readonly known: Lru<string, true>

  constructor(private readonly limits: Limits) {
    this.counts = this.noCounts()
    this.known = new Lru(limits.keys ?? 16_384)
  }

  /** Whether the address has used up its minute and the key is not known. */
  refuses(address: string, key: string, now: number): boolean {
    this.enter(now)
    return (this.counts.get(address) ?? 0) >= this.limits.perMinute && !this.recognises(key)
  }

  /** Whether a valid key had the same beginning. */
  recognises(key: string): boolean {
    return this.known.get(beginning(key)) !== undefined
  }

  /** Whether this is the address's first refusal of the minute, the only one to log. */
  firstRefusal(address: string): boolean {
    const before = this.refused.has(address)
    this.refused.add(address)
    return !before
  }

  count(address: string, now: number): void {
    this.enter(now)
    this.counts.set(address, (this.counts.get(address) ?? 0) + 1)
  }

  recognise(key: string): void {
    if (!this.recognises(key)) this.known.set(beginning(key), true)
  }

  /** Seconds until the next minute. */
  resetSeconds(now: number): number {
    return Math.ceil((minute - (now % minute)) / 1_000)
  }

  get size(): { readonly addresses: number; readonly keys: number } {
    return { addresses: this.counts.size, keys: this.known.size }
  }

  private noCounts(): Lru<string, number> {
    return new Lru(this.limits.addresses ?? 65_536)
  }

  private enter(now: number): void {
    const begins = now - (now % minute)
    if (begins === this.begins) return
    this.begins = begins
    this.counts = this.noCounts()
    this.refused = new Set()
  }
}
