import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Address } from "../../domain/primitives/Address.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"

/**
 * The EOAs of this process that submit transactions, and their balances. A balance that runs low is in the log, and in
 * the metrics, before transactions fail for it.
 */
export interface Balances {
  readonly isOwn: (address: Address) => boolean
  /** Registers an EOA that may submit, on chains that `submits` names. */
  readonly register: (address: Address) => Effect.Effect<void>
  /** Registers an EOA that submits on this chain: its balance there is checked from now on. */
  readonly submits: (chainId: bigint, address: Address) => Effect.Effect<void>
  /** Reads the balances through the operator's own nodes, and logs each that has fallen below the network's bound. */
  readonly check: Effect.Effect<void, never, ChainRpc>
}

/** A network, and the wei below which the balance of an EOA is logged. */
export interface Bounded {
  readonly profile: NetworkProfile
  readonly least: bigint
}

const checkOne = Effect.fnUntraced(
  function* ({ least, profile }: Bounded, address: Address, low: Set<string>) {
    if (profile.rpc === null) return
    const rpcs = yield* ChainRpc
    const chain = yield* rpcs.connect(Redacted.value(profile.rpc), "operator")
    const balance = yield* chain.balance(address)
    const name = `${profile.chainId} ${address}`
    if (balance >= least) return void low.delete(name)
    if (low.has(name)) return
    low.add(name)
    yield* Effect.annotateLogs(Effect.logWarning("EOA balance low"), {
      chainId: profile.chainId.toString(),
      address,
      balance: balance.toString(),
      bound: least.toString()
    })
  },
  Effect.timeout(Duration.seconds(10)),
  // The metrics of nodes count one that does not answer.
  (effect) => Effect.ignore(effect)
)

/** Without any EOA at first. */
export const make = (networks: ReadonlyArray<Bounded>): Balances => {
  const own = new Set<Address>()
  const submitting = new Map<bigint, Set<Address>>()
  const low = new Set<string>()
  return {
    isOwn: (address) => own.has(address),
    register: (address) => Effect.sync(() => void own.add(address)),
    submits: (chainId, address) =>
      Effect.sync(() => {
        own.add(address)
        submitting.set(chainId, (submitting.get(chainId) ?? new Set()).add(address))
      }),
    check: Effect.suspend(() =>
      Effect.forEach(
        networks,
        (network) =>
          Effect.forEach([...(submitting.get(network.profile.chainId) ?? [])], (address) =>
            checkOne(network, address, low)
          ),
        {
          concurrency: "unbounded",
          discard: true
        }
      )
    )
  }
}
