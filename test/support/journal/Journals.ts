import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Journals } from "../../../src/application/ports/journal/Journals.js"
import { LaneJournal } from "../../../src/application/ports/journal/LaneJournal.js"
import { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import { RecoveryJournal } from "../../../src/application/ports/journal/RecoveryJournal.js"
import { RemoteOpJournal } from "../../../src/application/ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"

export type Ports = Journals

/** The methods of all journal ports, for tests that span ports. */
export type Methods = RequestJournal["Service"] &
  OpJournal["Service"] &
  LaneJournal["Service"] &
  TransactionJournal["Service"] &
  RecoveryJournal["Service"] &
  RemoteOpJournal["Service"]

export const methodsOf = (ports: Context.Context<Ports>): Methods => ({
  ...Context.get(ports, RequestJournal),
  ...Context.get(ports, OpJournal),
  ...Context.get(ports, LaneJournal),
  ...Context.get(ports, TransactionJournal),
  ...Context.get(ports, RecoveryJournal),
  ...Context.get(ports, RemoteOpJournal)
})

export const all: Effect.Effect<Methods, never, Ports> = Effect.map(Effect.context<Ports>(), methodsOf)

/** The ports with wrapped methods. */
export const mapped =
  (around: (methods: Methods) => Methods) =>
  (ports: Context.Context<Ports>): Context.Context<Ports> => {
    const methods = around(methodsOf(ports))
    return Context.empty().pipe(
      Context.add(RequestJournal, methods),
      Context.add(OpJournal, methods),
      Context.add(LaneJournal, methods),
      Context.add(TransactionJournal, methods),
      Context.add(RecoveryJournal, methods),
      Context.add(RemoteOpJournal, methods)
    )
  }
