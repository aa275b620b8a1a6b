import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import * as Sponsorship from "../../domain/erc4337/paymaster/Sponsorship.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { ElementFailure } from "../request/Elements.js"
import * as Funding from "./Funding.js"
import { type Payer, wallet } from "./Payer.js"

/** The payers of ops that come as they are: each op names its own, and nothing is added to it but what seals it. */
export const make = (version: Version, payers: ReadonlyMap<Address, Payer>): Payer => {
  const payerOf = (op: UserOperation): Payer => {
    const paymaster = Funding.paymasterOf(version, op)
    return (paymaster === null ? undefined : payers.get(paymaster)) ?? wallet
  }
  const grouped = <A extends { readonly op: UserOperation }>(ops: ReadonlyArray<A>) =>
    Object.values(Arr.groupBy(ops, ({ op }) => payerOf(op).paymaster ?? "")).flatMap((group) =>
      group === undefined ? [] : [{ payer: payerOf(group[0].op), group }]
    )
  return {
    ...wallet,
    draft: (op) =>
      Effect.succeed(
        payerOf(op).tail === 0
          ? op
          : { ...op, signature: Sponsorship.append(op.signature, Sponsorship.dummy) }
      ),
    reserve: (ops) =>
      Effect.map(
        Effect.forEach(grouped(ops), ({ group, payer }) => payer.reserve(group)),
        (failed) => new Map<number, ElementFailure>(failed.flatMap((each) => [...each]))
      ),
    release: (ops) =>
      Effect.forEach(grouped(ops), ({ group, payer }) => payer.release(group), { discard: true }),
    end: Effect.forEach(payers.values(), ({ end }) => end, { discard: true }),
    seal: (op, userOpHash) => payerOf(op).seal(op, userOpHash)
  }
}
