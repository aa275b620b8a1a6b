import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { id } from "ethers/hash"
import { ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import { type NewWatch, type WatchEvent, Watches } from "../../../src/application/ports/Watches.js"
import { type Target, Webhooks } from "../../../src/application/ports/Webhooks.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"
import { type ForkingChain, type Log, origin } from "./ForkingChain.js"

/** Blocks that a reorganisation may take back. */
export const depth = 64

export const token = Make.address(1)
export const other = Make.address(2)

export const transferTopic = Hex.unsafe32(id("Transfer(address,address,uint256)"))
export const transferText = "event Transfer(address indexed from, address indexed to, uint256 value)"

const topicOf = (n: number): Hex.Bytes32 => Hex.unsafe32(`0x${n.toString(16).padStart(64, "0")}`)

/** A transfer to the account of a number. */
export const transfer = (to: number, value = 1, address = token): Log => ({
  address,
  topics: [transferTopic, topicOf(0xff), topicOf(to)],
  data: topicOf(value)
})

export const addressOf = (n: number): string => `0x${n.toString(16).padStart(40, "0")}`

export const spec: NewWatch["spec"] = { contracts: [token], events: [transferText], fields: {} }

/** The node of a chain, shared by all accounts. */
export const node = { chainId: 31_337n, accountId: null, rpc: null }

/** Nodes and networks around one chain. */
export const around = (chain: ForkingChain): Layer.Layer<ChainRpc | Networks> => {
  const { client } = chain
  return Layer.merge(
    Layer.succeed(ChainRpc, { connect: () => Effect.succeed(client) }),
    Layer.succeed(Networks, {
      chainIds: Effect.succeed([31_337n]),
      profile: () => Effect.succeed(NetworkProfile.make({ chainId: 31_337n, rpc: Redacted.make(origin) }))
    })
  )
}

export const add = (fields: Partial<NewWatch> = {}) =>
  Effect.gen(function* () {
    const webhooks = yield* Webhooks
    const watches = yield* Watches
    const accountId = fields.accountId ?? Make.alice
    const [known] = yield* webhooks.list(accountId)
    const webhookId =
      known?.webhookId ??
      (yield* webhooks.add(accountId, Redacted.make("https://example.com/hook"), [], "operator")).webhookId
    const watch = { accountId, webhookId, node, spec, isBroad: true, confirmations: 1, fromBlock: 0n }
    return yield* watches.add({ ...watch, ...fields }, "operator")
  })

/** All pending deliveries to a webhook of an account, taken by it: by watch, in the order of delivery. */
export const deliveries = (accountId = Make.alice) =>
  Effect.gen(function* () {
    const webhooks = yield* Webhooks
    const told = new Map<string, Array<WatchEvent>>()
    const [webhook] = yield* webhooks.list(accountId)
    const webhookId = webhook?.webhookId ?? ""
    for (;;) {
      const next: { readonly target: Target; readonly deliveries: ReadonlyArray<unknown> } | null =
        yield* webhooks.next(webhookId, 100)
      if (next === null || next.deliveries.length === 0) return told
      for (const delivery of next.deliveries as ReadonlyArray<{
        readonly watchId: string
        readonly event: WatchEvent
      }>) {
        const { event, watchId } = delivery
        told.set(watchId, [...(told.get(watchId) ?? []), event])
        yield* webhooks.delivered({ webhookId, watchId, sequence: event.sequence })
      }
    }
  })

/** Advances time and turns the event loop until the condition holds. */
export const until = <E, R>(look: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.flatMap(look, (isSo) =>
    isSo ? Effect.void : Effect.andThen(TestClock.adjust("1 second"), until(look))
  )

/** Advances time by about this many polls of a source. */
export const rounds = (count: number): Effect.Effect<void, never, Watches> =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    () =>
      Effect.andThen(
        TestClock.adjust("1 second"),
        Effect.flatMap(Watches, (watches) => Effect.ignore(watches.list(null, { limit: 20_000 })))
      ),
    { discard: true }
  )

/** Until all watches that are not paused have read the chain to its end. */
export const caughtUp = (chain: ForkingChain) =>
  until(
    Effect.map(
      Effect.flatMap(Watches, (watches) => watches.list(null, { limit: 20_000 })),
      (all) => all.every(({ nextBlock, state }) => state === "paused" || nextBlock === chain.head.number + 1n)
    )
  )

export type Ports = Watches | Webhooks
