import { JsonRpcProvider, type Subscriber, type Subscription } from "ethers"

/**
 * Emits the newest block immediately, then each new block. The subscriber of ethers skips the first block, so `wait()` for
 * a transaction in it blocks until the next one, which an on-demand chain may never mine.
 */
class Blocks implements Subscriber {
  #isRunning = false
  #newest = -1
  #timer: number | undefined

  constructor(readonly provider: JsonRpcProvider) {}

  start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    void this.#poll()
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

  async #poll(): Promise<void> {
    try {
      const block = await this.provider.getBlockNumber()
      if (this.#isRunning && block !== this.#newest) {
        this.#newest = block
        await this.provider.emit("block", block)
      }
    } catch {
      // The next poll may succeed.
    }
    if (this.#isRunning)
      this.#timer = this.provider._setTimeout(() => void this.#poll(), this.provider.pollingInterval)
  }
}

/** A JSON-RPC node on which a transaction's `wait()` ends on every chain. */
export class NodeProvider extends JsonRpcProvider {
  override _getSubscriber(subscription: Subscription): Subscriber {
    return subscription.type === "block" ? new Blocks(this) : super._getSubscriber(subscription)
  }
}
