import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Address } from "../../domain/primitives/Address.js"
import * as Troubles from "../observe/Troubles.js"
import { KillSwitches, type Switched } from "../ports/KillSwitches.js"
import { catalogue } from "../request/Catalogue.js"
import { CurrentRequest } from "../request/CurrentRequest.js"
import { type Failure, Unavailable, unprocessable } from "../request/Failure.js"
import * as Reasons from "../request/Reasons.js"

/** Something that a request works with, and where in the request it is named. */
export interface Relied {
  readonly what: Switched
  readonly path: string
}

const told = ({ path, what }: Relied): Failure =>
  unprocessable("writes_paused", [
    {
      path,
      message:
        what.kind === "chain"
          ? Reasons.text("chainPaused", { chain: what.chainId })
          : Reasons.text("signerPaused", { signer: what.address })
    }
  ])

const unread: Troubles.Trouble = { what: "kill switches unavailable", place: "" }

/** Fails while the operator has paused it; also when nobody can say. */
export const check = (relied: Relied) =>
  Effect.flatMap(KillSwitches, ({ isPaused }) =>
    Effect.matchEffect(isPaused(relied.what), {
      onFailure: ({ message }) =>
        Effect.andThen(
          Effect.flatMap(Troubles.Shared, ({ failed }) => failed(unread, Cause.fail(message))),
          new Unavailable({
            code: "unavailable",
            message: catalogue.unavailable.text,
            details: [],
            retryAfterSeconds: 1
          })
        ),
      onSuccess: (paused) =>
        Effect.andThen(
          Effect.flatMap(Troubles.Shared, ({ passed }) => passed(unread)),
          paused ? Effect.fail(told(relied)) : Effect.void
        )
    })
  )

/**
 * What every use case passes that works with a key or on a chain. A request that only reads goes on, and so does one
 * that was accepted before; a new write is refused, now or at the latest when it is about to be accepted.
 */
export const guard = (what: Switched, path: string) =>
  Effect.flatMap(
    Effect.serviceOption(CurrentRequest),
    Option.match({
      onNone: () => Effect.void,
      onSome: ({ accepted, relies }) => {
        if (accepted()) return Effect.void
        relies.push({ what, path })
        return check({ what, path })
      }
    })
  )

/** The last look before acceptance, after which everything is signed and settles. */
export const recheck = ({ accepted, relies }: CurrentRequest["Service"], submitter: Address | null) =>
  Effect.suspend(() => {
    if (accepted()) return Effect.void
    const own: ReadonlyArray<Relied> =
      submitter === null ? [] : [{ what: { kind: "signer", address: submitter }, path: "settings.signer" }]
    return Effect.forEach([...relies, ...own], check, { discard: true })
  })
