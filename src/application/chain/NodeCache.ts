import { Lru } from "../../domain/primitives/Lru.js"
import type { ChainClient } from "../ports/chain/ChainRpc.js"

/**
 * What nodes have said, bounded over all of them together: a caller's node decides how long its answers are. The key
 * is the client, that is the node's URL and who named it: what one node says is nothing that another one's callers are
 * told.
 */
export class NodeCache<V> {
  private readonly answers: Lru<string, V>
  /** Numbers in place of the clients, so that none is kept for its answers. */
  private readonly numbers = new WeakMap<ChainClient, number>()
  private last = 0

  /** `most`: bytes of memory of all values; `weigh` finds those of one. */
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
