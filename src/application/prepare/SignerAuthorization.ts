import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Address } from "../../domain/primitives/Address.js"
import * as Proof from "../../domain/signature/Proof.js"
import type * as WalletConfig from "../../domain/wallet/WalletConfig.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import { type Failure, invalidAt } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import * as Keys from "../keys/Keys.js"
import type { Signer, SignerRef, Signers } from "../ports/Signers.js"
import type { Caller } from "../request/Caller.js"

/** Most cosigners of a request: with its signer, as many as one proof may have. */
export const maxCosigners = Proof.maxParts - 1

/** Selects the keys, by place, that consent for the wallet: the first owners among them, up to its threshold. */
export const places = (
  config: WalletConfig.WalletConfig,
  keys: ReadonlyArray<Address>
): Result.Result<ReadonlyArray<number>, ElementFailure> => {
  if (config.owners.length === 0) return Result.fail(elementFailure("signer_without_authority"))
  const owners = [...keys.keys()].filter((place) => config.owners.includes(keys[place] as Address))
  return owners.length < config.threshold
    ? Result.fail(
        elementFailure(
          "threshold_not_met",
          Reasons.text("threshold", { have: owners.length, threshold: config.threshold }),
          { threshold: String(config.threshold) }
        )
      )
    : Result.succeed(owners.slice(0, config.threshold))
}

/**
 * Resolves the keys that a request names: its signer first, if it names one, then its cosigners. The keys are distinct.
 */
export const signersOf = (
  caller: Caller,
  settings: {
    readonly signer?: SignerRef | undefined
    readonly cosigners?: ReadonlyArray<SignerRef> | undefined
  }
): Effect.Effect<ReadonlyArray<Signer>, Failure, Signers> =>
  Effect.gen(function* () {
    const { cosigners = [], signer } = settings
    if (cosigners.length > maxCosigners)
      return yield* invalidAt("settings.cosigners", `expected at most ${maxCosigners} cosigners`)
    const named = [
      ...(signer === undefined ? [] : [{ ref: signer, path: "settings.signer" }]),
      ...cosigners.map((ref, index) => ({ ref, path: `settings.cosigners[${index}]` }))
    ]
    const keys = yield* Effect.forEach(named, ({ path, ref }) => Keys.resolve(caller, ref, path), {
      concurrency: "unbounded"
    })
    const first = new Map<string, string>()
    for (const [position, { address }] of keys.entries()) {
      const path = named[position]?.path ?? ""
      const before = first.get(address)
      if (before !== undefined) return yield* invalidAt(path, `${before} is the same key`)
      first.set(address, path)
    }
    return keys
  })
