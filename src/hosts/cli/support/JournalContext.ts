import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../application/ports/journal/TransactionJournal.js"
import { RequestHistory } from "../../../application/ports/RequestHistory.js"
import * as Wiring from "../../Wiring.js"
import * as OperatorContext from "./OperatorContext.js"

/** The journal of the configuration, to be read: the running service alone writes it. */
export const open = Effect.gen(function* () {
  const config = yield* OperatorContext.config
  const context = yield* Effect.mapError(Layer.build(Wiring.journal(config)), ({ message }) => message)
  const { request } = Context.get(context, RequestJournal)
  const { open, openOf } = Context.get(context, TransactionJournal)
  return { config, journal: { open, openOf, request }, history: Context.get(context, RequestHistory) }
})
