import { JsonRpcProvider, type Subscriber, type Subscription } from "ethers"

/**
 * Tells of the newest block at once, then of each that it finds. That of ethers takes the first for known: whoever waits
 * for a transaction that it holds waits for the next block, which a chain that makes them on demand may never have.
 */
class Blocks implements Subscriber {
  #isRunning = false
  #newest = -1
  #timer: number | undefined

  constructor(readonly provider: JsonRpcProvider) {}

  start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    void this.#look()
  }

  stop(): void {
    this.#isRunning = false
    if (this.#timer !== undefined) this.provider._clearTimeout(this.#timer)
    this.#timer = undefined
  }

  pause(dropWhilePaused = false): void {
    this.stop()
    if (dropWhilePaused) this.#newest = -1
  }

  resume(): void {
    this.start()
  }

  async #look(): Promise<void> {
    try {
      const block = await this.provider.getBlockNumber()
      if (this.#isRunning && block !== this.#newest) {
        this.#newest = block
        await this.provider.emit("block", block)
      }
    } catch {
      // The next look may have an answer.
    }
    if (this.#isRunning)
      this.#timer = this.provider._setTimeout(() => void this.#look(), this.provider.pollingInterval)
  }
}

/** A node by JSON-RPC; `wait()` of a transaction ends on every chain. */
export class NodeProvider extends JsonRpcProvider {
  override _getSubscriber(subscription: Subscription): Subscriber {
    return subscription.type === "block" ? new Blocks(this) : super._getSubscriber(subscription)
  }
}
