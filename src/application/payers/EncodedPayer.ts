import * as Effect from "effect/Effect"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import * as Sponsorship from "../../domain/erc4337/paymaster/Sponsorship.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { ElementFailure } from "../failures/Elements.js"
import * as Funding from "./Funding.js"
import { type Part, type Payer, wallet } from "./Payer.js"

/**
 * Payers for a request that names no paymaster: each wallet, or the paymaster that an externally built op names. Such
 * an op gets nothing but the seal.
 */
export const make = (
  version: Version,
  payerOf: (paymaster: Address) => Payer,
  release: Payer["release"]
): Payer => {
  const of = (op: UserOperation): Payer => {
    const paymaster = Funding.paymasterOf(version, op)
    return paymaster === null ? wallet : payerOf(paymaster)
  }
  const isOther = ({ given }: Pick<Part, "given">): boolean => given !== null
  return {
    ...wallet,
    draft: (op) =>
      Effect.succeed(
        of(op).tail === 0 ? op : { ...op, signature: Sponsorship.append(op.signature, Sponsorship.dummy) }
      ),
    objection: (part, now) => of(part.op).objection(part, now),
    reserve: (parts) =>
      Effect.gen(function* () {
        const failed = new Map<number, ElementFailure | null>()
        const places = Map.groupBy(parts.keys(), (place) => {
          const part = parts[place]
          return part === undefined || !isOther(part) ? null : Funding.paymasterOf(version, part.op)
        })
        for (const [paymaster, own] of places) {
          if (paymaster === null) continue
          const lacks = yield* payerOf(paymaster).reserve(own.flatMap((place) => parts[place] ?? []))
          for (const [at, place] of own.entries()) failed.set(place, lacks[at] ?? null)
        }
        return parts.map((_, place) => failed.get(place) ?? null)
      }),
    release: (held) => release(held.filter(isOther)),
    seal: (part, userOpHash) => (isOther(part) ? of(part.op) : wallet).seal(part, userOpHash)
  }
}
