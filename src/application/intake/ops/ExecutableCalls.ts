import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Submitter from "../../pay/Submitter.js"
import type { Signer } from "../../ports/Signers.js"
import type { EncodedCall } from "../../prepare/EncodeCall.js"
import type * as OpContext from "../../prepare/OpContext.js"
import * as Windows from "../../prepare/ops/Windows.js"
import * as SignerAuthorization from "../../prepare/SignerAuthorization.js"
import * as Snapshot from "../../prepare/Snapshot.js"
import * as OwnedWallets from "../../prepare/wallets/OwnedWallets.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import type * as BuildOps from "./BuildOps.js"

export interface Input {
  readonly calls: ReadonlyArray<EncodedCall>
  readonly walletOf: (index: number) => Address
  /** The first one submits. */
  readonly signers: readonly [Signer, ...ReadonlyArray<Signer>]
  readonly context: OpContext.OpContext
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
  snapshot: Snapshot.Snapshot,
  scheduled: ReadonlyMap<number, number>,
  isAccepted: boolean
): Effect.Effect<Found, Failure> =>
  Effect.gen(function* () {
    const todo = elements.flatMap((index) => calls[index] ?? [])
    const found = yield* Effect.fromResult(
      OwnedWallets.find(
        todo.map(({ index, selector: { walletCustody } }) => ({
          index,
          wallet: walletOf(index),
          walletCustody
        })),
        snapshot
      )
    )
    const failed = new Map<number, ElementFailure>(found.failed)
    const ready = new Map<number, Executable>()
    const lastSecond = yield* Snapshot.validUntil(snapshot.block)
    for (const call of todo) {
      const { index } = call
      const bounds = Windows.check(call.window, `operations[${index}]`, snapshot.block, context.version)
      if (Result.isFailure(bounds) && "_tag" in bounds.failure && !isAccepted)
        return yield* Effect.fail(bounds.failure)
      const config = found.configs.get(index)
      if (config === undefined) continue
      const consent = SignerAuthorization.bySigners(config, signers)
      if (Result.isFailure(bounds) && scheduled.has(index) && !("_tag" in bounds.failure)) {
        if (Result.isFailure(consent)) failed.set(index, consent.failure)
      } else if (Result.isFailure(bounds))
        failed.set(index, "_tag" in bounds.failure ? elementFailure("window_passed") : bounds.failure)
      else if (Result.isFailure(consent)) failed.set(index, consent.failure)
      else if (!scheduled.has(index)) {
        const { validAfter, validUntil } = bounds.success
        ready.set(index, {
          call,
          wallet: walletOf(index),
          consent: consent.success,
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
