import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Submitter from "../../pay/Submitter.js"
import type { Signer } from "../../ports/Signers.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import * as Preparation from "../Preparation.js"
import * as SignerAuthorization from "../SignerAuthorization.js"
import type * as BuildOps from "./BuildOps.js"
import type { EncodedCall } from "./Calls.js"
import * as OwnedWallets from "./OwnedWallets.js"
import * as Windows from "./Windows.js"

export interface Input {
  readonly calls: ReadonlyArray<EncodedCall>
  readonly walletOf: (index: number) => Address
  /** The first one submits. */
  readonly signers: readonly [Signer, ...ReadonlyArray<Signer>]
  readonly context: Preparation.OpContext
}

/** A call that a wallet consents to, before it has a nonce. */
export type Executable = Omit<BuildOps.AuthorizedCall, "nonceKey">

export interface Found {
  readonly ready: Map<number, Executable>
  readonly failed: Map<number, ElementFailure>
}

/**
 * Which of the elements can be executed now, as far as wallets, windows and signers go, and why others can not; what is
 * `scheduled` is neither, unless its wallet or its signers fail it. Fails when the whole request is bad: a window that
 * has ended makes it so until it is accepted, and is the operation's own affair from then on.
 */
export const find = (
  { calls, context, signers, walletOf }: Input,
  elements: ReadonlyArray<number>,
  snapshot: Preparation.ChainSnapshot,
  scheduled: ReadonlyMap<number, number>,
  isAccepted: boolean
): Effect.Effect<Found, Failure> =>
  Effect.gen(function* () {
    const todo = elements.flatMap((index) => calls[index] ?? [])
    const found = yield* OwnedWallets.find(
      todo.map(({ index, selector: { walletCustody } }) => ({
        index,
        wallet: walletOf(index),
        walletCustody
      })),
      snapshot
    )
    const failed = new Map<number, ElementFailure>(found.failed)
    const ready = new Map<number, Executable>()
    const lastSecond = yield* Preparation.validUntil(snapshot.block)
    for (const call of todo) {
      const { index } = call
      const bounds = Windows.check(call.window, `operations[${index}]`, snapshot.block, context.version)
      if (Either.isLeft(bounds) && "_tag" in bounds.left && !isAccepted)
        return yield* Effect.fail(bounds.left)
      const config = found.configs.get(index)
      if (config === undefined) continue
      const consent = SignerAuthorization.bySigners(config, signers)
      if (Either.isLeft(bounds) && scheduled.has(index) && !("_tag" in bounds.left)) {
        if (Either.isLeft(consent)) failed.set(index, consent.left)
      } else if (Either.isLeft(bounds))
        failed.set(index, "_tag" in bounds.left ? elementFailure("window_passed") : bounds.left)
      else if (Either.isLeft(consent)) failed.set(index, consent.left)
      else if (!scheduled.has(index)) {
        const { validAfter, validUntil } = bounds.right
        ready.set(index, {
          call,
          wallet: walletOf(index),
          consent: consent.right,
          conditions: {
            validUntil: validUntil === 0 ? lastSecond : validUntil,
            validAfter,
            bundler: Submitter.boundTo(context.connection.profile, signers[0].address)
          }
        })
      }
    }
    return { failed, ready }
  })
