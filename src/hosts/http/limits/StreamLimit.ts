import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

/** How long an answer lasts at most: proxies and load balancers end older ones anyway. */
const longest = "1 hour"

/** Bounds the answers that go on for long, which count as no requests under way, and ends them when the service stops. */
export class StreamLimit {
  private readonly open = new Map<string, number>()
  private readonly closing = Deferred.makeUnsafe<void>()
  private total = 0

  constructor(
    private readonly most: number,
    readonly mostOfAccount: number
  ) {}

  /** Whether one more may begin. */
  admits(accountId: string): boolean {
    return this.total < this.most && (this.open.get(accountId) ?? 0) < this.mostOfAccount
  }

  /** The stream, counted while it runs. It ends with the service, and at once when there are too many by now. */
  bounded<A>(accountId: string, stream: Stream.Stream<A>): Stream.Stream<A> {
    return Stream.suspend(() => {
      if (!this.admits(accountId)) return Stream.empty
      this.count(accountId, 1)
      return stream.pipe(
        Stream.interruptWhen(Effect.sleep(longest)),
        Stream.interruptWhen(Deferred.await(this.closing)),
        Stream.ensuring(Effect.sync(() => this.count(accountId, -1)))
      )
    })
  }

  get stop(): Effect.Effect<void> {
    return Effect.asVoid(Deferred.succeed(this.closing, undefined))
  }

  private count(accountId: string, by: number): void {
    const now = (this.open.get(accountId) ?? 0) + by
    if (now === 0) this.open.delete(accountId)
    else this.open.set(accountId, now)
    this.total += by
  }
}
