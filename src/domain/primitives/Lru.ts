/** A place in the ring. */
interface Place<K, V> {
  before: Entry<K, V> | Place<K, V>
  after: Entry<K, V> | Place<K, V>
}

interface Entry<K, V> extends Place<K, V> {
  readonly key: K
  readonly value: V
  readonly weight: number
}

const ringOf = <K, V>(): Place<K, V> => {
  const ring = {} as Place<K, V>
  ring.before = ring
  ring.after = ring
  return ring
}

const take = <K, V>({ after, before }: Entry<K, V>): void => {
  before.after = after
  after.before = before
}

/** As the last one to leave. */
const put = <K, V>(entry: Entry<K, V>, ring: Place<K, V>): void => {
  entry.before = ring.before
  entry.after = ring
  ring.before.after = entry
  ring.before = entry
}

/**
 * Values by key, in order of their use. When their total weight exceeds `most`, the least recently used values leave; a
 * value heavier than `most` is not kept.
 */
export class Lru<K, V> {
  private readonly entries = new Map<K, Entry<K, V>>()
  /** A ring through all entries, from the least recently used: a map whose entries change places grows and shrinks. */
  private readonly ring = ringOf<K, V>()
  private total = 0

  /** `weigh`: the weight of a value when it is set; without it `most` is a number of values. */
  constructor(
    private readonly most: number,
    private readonly weigh: (value: V) => number = () => 1
  ) {}

  /** Number of values. */
  get size(): number {
    return this.entries.size
  }

  /** Total weight of the values. */
  get weight(): number {
    return this.total
  }

  /** The value, which is the last one to leave from now on. */
  get(key: K): V | undefined {
    const entry = this.entries.get(key)
    if (entry === undefined) return undefined
    take(entry)
    put(entry, this.ring)
    return entry.value
  }

  /** Sets the value and its weight. */
  set(key: K, value: V): void {
    this.delete(key)
    const weight = this.weigh(value)
    if (weight > this.most) return
    const entry: Entry<K, V> = { key, value, weight, before: this.ring, after: this.ring }
    this.entries.set(key, entry)
    put(entry, this.ring)
    this.total += weight
    while (this.total > this.most) {
      const { after } = this.ring
      if (!("key" in after)) break
      this.delete(after.key)
    }
  }

  delete(key: K): void {
    const entry = this.entries.get(key)
    if (entry === undefined) return
    this.entries.delete(key)
    take(entry)
    this.total -= entry.weight
  }

  /** The values, the least recently used one first. */
  *values(): IterableIterator<V> {
    for (let entry = this.ring.after; "key" in entry; entry = entry.after) yield entry.value
  }
}
