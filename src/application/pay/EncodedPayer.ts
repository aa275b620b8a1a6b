import * as Effect from "effect/Effect"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import * as Sponsorship from "../../domain/erc4337/paymaster/Sponsorship.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import { Lru } from "../../domain/primitives/Lru.js"
import type { ElementFailure } from "../request/Elements.js"
import * as Funding from "./Funding.js"
import { type Payer, wallet } from "./Payer.js"

/** Paymasters that are remembered: callers name any. */
const most = 1_024

/**
 * The payers of ops that come as they are: each op names its own, and nothing is added to it but what seals it. One that names
 * none is paid for by its wallet.
 */
export const make = (version: Version, of: (paymaster: Address) => Effect.Effect<Payer>): Payer => {
  const payers = new Lru<Address, Payer>(most)
  const payerOf = (op: UserOperation): Effect.Effect<Payer> => {
    const paymaster = Funding.paymasterOf(version, op)
    const known = paymaster === null ? wallet : payers.get(paymaster)
    if (paymaster === null || known !== undefined) return Effect.succeed(known ?? wallet)
    return Effect.tap(of(paymaster), (payer) => Effect.sync(() => payers.set(paymaster, payer)))
  }
  const grouped = <A extends { readonly op: UserOperation }>(ops: ReadonlyArray<A>) =>
    Effect.map(
      Effect.forEach(ops, (part) => Effect.map(payerOf(part.op), (payer) => ({ part, payer }))),
      (all) =>
        [...Map.groupBy(all, ({ payer }) => payer)].map(
          ([payer, some]) => [payer, some.map(({ part }) => part)] as const
        )
    )
  return {
    ...wallet,
    draft: (op) =>
      Effect.map(payerOf(op), ({ tail }) =>
        tail === 0 ? op : { ...op, signature: Sponsorship.append(op.signature, Sponsorship.dummy) }
      ),
    reserve: (ops) =>
      Effect.flatMap(grouped(ops), (groups) =>
        Effect.map(
          Effect.forEach(groups, ([payer, some]) => payer.reserve(some)),
          (failed) => new Map<number, ElementFailure>(failed.flatMap((each) => [...each]))
        )
      ),
    release: (ops) =>
      Effect.flatMap(grouped(ops), (groups) =>
        Effect.forEach(groups, ([payer, some]) => payer.release(some), { discard: true })
      ),
    end: Effect.suspend(() => Effect.forEach(payers.values(), ({ end }) => end, { discard: true })),
    seal: (op, userOpHash) => Effect.flatMap(payerOf(op), (payer) => payer.seal(op, userOpHash))
  }
}
