import { Lru } from "../../../domain/primitives/Lru.js"

/** How much is remembered, and how much is allowed. */
export interface Limits {
  /** Requests without a valid key of one address in one UTC minute. */
  readonly perMinute: number
  /** Most addresses that are counted at a time; the one not seen for longest is forgotten first. */
  readonly addresses?: number
  /** Most keys that are recognised. */
  readonly keys?: number
}

const minute = 60_000

/** `cst_` and 12 more characters of a key: more than can be guessed, less than can be used. */
const beginning = (key: string): string => key.slice(0, 16)

/**
 * Counts the requests of callers that have shown no valid key, by address, in this process. A caller over the limit is
 * refused before any work is done for it. A key that was valid here before gets in all the same, to be looked at: no
 * caller without a key at the same address, that of a proxy perhaps, locks an account out.
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

  /** Whether the address has had its requests of this minute, and the key is none that is recognised. */
  refuses(address: string, key: string, now: number): boolean {
    this.enter(now)
    return (this.counts.get(address) ?? 0) >= this.limits.perMinute && !this.recognises(key)
  }

  /** Whether a key that begins like this one was valid. */
  recognises(key: string): boolean {
    return this.known.get(beginning(key)) !== undefined
  }

  /** Whether this is the first refusal of the address in this minute: the only one that is worth a line in a log. */
  firstRefusal(address: string): boolean {
    const before = this.refused.has(address)
    this.refused.add(address)
    return !before
  }

  /** One more request of this address without a valid key. */
  count(address: string, now: number): void {
    this.enter(now)
    this.counts.set(address, (this.counts.get(address) ?? 0) + 1)
  }

  /** The key was valid. */
  recognise(key: string): void {
    if (!this.recognises(key)) this.known.set(beginning(key), true)
  }

  /** Seconds until the next minute. */
  resetSeconds(now: number): number {
    return Math.ceil((minute - (now % minute)) / 1_000)
  }

  /** How many addresses and keys are remembered. */
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
