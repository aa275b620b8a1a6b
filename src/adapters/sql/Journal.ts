import * as SqlClient from "@effect/sql/SqlClient"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Journal } from "../../application/ports/Journal.js"
import * as Acceptances from "./Acceptances.js"
import * as Handovers from "./Handovers.js"
import * as Leases from "./Leases.js"
import * as Migrations from "./Migrations.js"
import * as Ops from "./Ops.js"
import * as Records from "./Records.js"
import * as Requests from "./Requests.js"
import * as Settlements from "./Settlements.js"
import * as Store from "./Store.js"
import * as Transactions from "./Transactions.js"

/** The journal in the database of the client; brings its schema up to date first. */
export const make = (
  options: Store.Options
): Effect.Effect<Context.Tag.Service<typeof Journal>, Migrations.MigrationsError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    yield* Migrations.run
    const store = Store.make(yield* SqlClient.SqlClient, options)
    return {
      lease: Leases.lease(store),
      release: Leases.release(store),
      accept: Acceptances.accept(store),
      refuse: Requests.refuse(store),
      finish: Requests.finish(store),
      request: Requests.request(store),
      requestOf: Requests.requestOf(store),
      unfinished: Requests.unfinished(store),
      forget: Requests.forget(store),
      identify: Ops.identify(store),
      abandon: Ops.abandon(store),
      allocate: Transactions.allocate(store),
      unallocate: Transactions.unallocate(store),
      recordSigned: Transactions.recordSigned(store),
      settle: Settlements.settle(store),
      finalise: Settlements.finalise(store),
      unsettle: Settlements.unsettle(store),
      strand: Settlements.strand(store),
      handOver: Handovers.handOver(store),
      land: Handovers.land(store),
      unland: Handovers.unland(store),
      finaliseLanded: Handovers.finaliseLanded(store),
      takeBack: Handovers.takeBack(store),
      handedOver: Handovers.handedOver(store),
      open: Records.open(store),
      openOf: Records.openOf(store),
      findTransaction: Records.findTransaction(store),
      findOp: Ops.findOp(store)
    }
  })

export const layer = (
  options: Store.Options
): Layer.Layer<Journal, Migrations.MigrationsError, SqlClient.SqlClient> =>
  Layer.effect(Journal, make(options))
