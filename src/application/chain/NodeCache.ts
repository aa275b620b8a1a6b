import { Lru } from "../../domain/primitives/Lru.js"
import type { ChainClient } from "../ports/chain/ChainRpc.js"

/**
 * A cache of nodes' answers, bounded over all nodes together, since a caller's node decides how long its answers are.
 * The key is the client, that is the node's URL and its author: one node's answers never reach another node's callers.
 */
export class NodeCache<V> {
  private readonly answers: Lru<string, V>
  /** Numbers instead of the clients, so that no client is kept alive by its answers. */
  private readonly numbers = new WeakMap<ChainClient, number>()
  private last = 0

  /** `most`: bytes of memory of all values; `weigh` returns the bytes of one. */
  constructor(most: number, weigh: (value: V) => number) {
    this.answers = new Lru(most, weigh)
  }

  get(chain: ChainClient, key: string): V | undefined {
    return this.answers.get(this.keyOf(chain, key))
  }

  set(chain: ChainClient, key: string, value: V): void {
    this.answers.set(this.keyOf(chain, key), value)
  }

  delete(chain: ChainClient, key: string): void {
    this.answers.delete(this.keyOf(chain, key))
  }

  private keyOf(chain: ChainClient, key: string): string {
    const number = this.numbers.get(chain) ?? ++this.last
    this.numbers.set(chain, number)
    return `${number} ${key}`
  }
}
