/**
 * Values by key, in order of their use. When all of them together weigh more than `most`, the least recently used ones
 * leave; a value that weighs more by itself is not kept at all.
 */
export class Lru<K, V> {
  private readonly entries = new Map<K, { readonly value: V; readonly weight: number }>()
  private total = 0

  /** `weigh`: what a value weighs when it is set; without it `most` is a number of values. */
  constructor(
    private readonly most: number,
    private readonly weigh: (value: V) => number = () => 1
  ) {}

  /** How many values there are. */
  get size(): number {
    return this.entries.size
  }

  /** What they weigh together. */
  get weight(): number {
    return this.total
  }

  /** The value, which is the last one to leave from now on. */
  get(key: K): V | undefined {
    const entry = this.entries.get(key)
    if (entry === undefined) return undefined
    this.entries.delete(key)
    this.entries.set(key, entry)
    return entry.value
  }

  /** Sets the value, or weighs it anew. */
  set(key: K, value: V): void {
    this.delete(key)
    const weight = this.weigh(value)
    if (weight > this.most) return
    this.entries.set(key, { value, weight })
    this.total += weight
    for (const oldest of this.entries.keys()) {
      if (this.total <= this.most) break
      this.delete(oldest)
    }
  }

  delete(key: K): void {
    this.total -= this.entries.get(key)?.weight ?? 0
    this.entries.delete(key)
  }

  /** The values, the least recently used one first. */
  *values(): IterableIterator<V> {
    for (const { value } of this.entries.values()) yield value
  }
}
