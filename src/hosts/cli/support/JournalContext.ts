import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { RecoveryJournal } from "../../../application/ports/journal/RecoveryJournal.js"
import { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../application/ports/journal/TransactionJournal.js"
import { RequestHistory } from "../../../application/ports/RequestHistory.js"
import * as Wiring from "../../Wiring.js"
import * as OperatorContext from "./OperatorContext.js"

/** The journal of the configuration: to be read, and to cancel, release and drop by. All else is written by the running service alone. */
export const open = Effect.gen(function* () {
  const config = yield* OperatorContext.config
  const context = yield* Layer.build(Wiring.journal(config))
  const { cancel, request } = Context.get(context, RequestJournal)
  const { open, openOf } = Context.get(context, TransactionJournal)
  const { unhold } = Context.get(context, RecoveryJournal)
  return {
    config,
    journal: { cancel, open, openOf, request, unhold },
    history: Context.get(context, RequestHistory)
  }
})
