import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Address } from "../../domain/primitives/Address.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"

/**
 * The EOAs that submit, as far as this process has met them, and whether they can still pay. An EOA without money is no
 * surprise then: it was in the log, and in the figures, before.
 */
export interface Balances {
  readonly isOwn: (address: Address) => boolean
  /** It may submit; where it does, `submits` tells. */
  readonly meet: (address: Address) => Effect.Effect<void>
  /** It submits on this chain: its balance there is looked at from now on. */
  readonly submits: (chainId: bigint, address: Address) => Effect.Effect<void>
  /** Reads the balances through the operator's own nodes; says in the log who fell below the network's bound. */
  readonly look: Effect.Effect<void, never, ChainRpc>
}

/** A network, and the wei below which an EOA there is worth a word. */
export interface Bounded {
  readonly profile: NetworkProfile
  readonly least: bigint
}

const lookAt = (
  { least, profile }: Bounded,
  address: Address,
  low: Set<string>
): Effect.Effect<void, never, ChainRpc> =>
  Effect.gen(function* () {
    if (profile.rpc === null) return
    const rpcs = yield* ChainRpc
    const chain = yield* rpcs.connect(Redacted.value(profile.rpc), "operator")
    const balance = yield* chain.balance(address)
    const name = `${profile.chainId} ${address}`
    if (balance >= least) return void low.delete(name)
    if (low.has(name)) return
    low.add(name)
    yield* Effect.annotateLogs(Effect.logWarning("the balance of an EOA is low"), {
      chainId: profile.chainId.toString(),
      address,
      balance: balance.toString(),
      bound: least.toString()
    })
  }).pipe(
    Effect.timeout(Duration.seconds(10)),
    // A node that does not answer is in the figures of its own.
    Effect.ignore
  )

/** Nobody is met yet. */
export const make = (networks: ReadonlyArray<Bounded>): Balances => {
  const own = new Set<Address>()
  const submitting = new Map<bigint, Set<Address>>()
  const low = new Set<string>()
  return {
    isOwn: (address) => own.has(address),
    meet: (address) => Effect.sync(() => void own.add(address)),
    submits: (chainId, address) =>
      Effect.sync(() => {
        own.add(address)
        submitting.set(chainId, (submitting.get(chainId) ?? new Set()).add(address))
      }),
    look: Effect.suspend(() =>
      Effect.forEach(
        networks,
        (network) =>
          Effect.forEach([...(submitting.get(network.profile.chainId) ?? [])], (address) =>
            lookAt(network, address, low)
          ),
        {
          concurrency: "unbounded",
          discard: true
        }
      )
    )
  }
}
