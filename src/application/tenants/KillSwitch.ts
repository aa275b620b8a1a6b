import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { type Failure, unavailable, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import * as Troubles from "../observe/Troubles.js"
import { KillSwitches, type Switched } from "../ports/KillSwitches.js"

/** A key or chain of a request, and the request's field that names it. */
export interface Pausable {
  readonly what: Switched
  readonly path: string
}

const refusal = ({ path, what }: Pausable): Failure =>
  unprocessable("writes_paused", [
    {
      path,
      message:
        what.kind === "account"
          ? Reasons.text("accountPaused")
          : what.kind === "chain"
            ? Reasons.text("chainPaused", { chain: what.chainId })
            : Reasons.text("signerPaused", { signer: what.address })
    }
  ])

const unread: Troubles.Trouble = { what: "kill switches unavailable", place: "" }

/** Fails while the operator has paused it, or while that is unknown. Reads and previously accepted work continue. */
export const check = (pausable: Pausable) =>
  Effect.flatMap(KillSwitches, ({ isPaused }) =>
    Effect.matchEffect(isPaused(pausable.what), {
      onFailure: ({ message }) =>
        Effect.andThen(
          Effect.flatMap(Troubles.Shared, ({ failed }) => failed(unread, Cause.fail(message))),
          unavailable()
        ),
      onSuccess: (paused) =>
        Effect.andThen(
          Effect.flatMap(Troubles.Shared, ({ passed }) => passed(unread)),
          paused ? Effect.fail(refusal(pausable)) : Effect.void
        )
    })
  )
