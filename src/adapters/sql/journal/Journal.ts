import * as SqlClient from "@effect/sql/SqlClient"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Journal } from "../../../application/ports/journal/Journal.js"
import * as Migrations from "../Migrations.js"
import * as Store from "../Store.js"
import * as Acceptances from "./Acceptances.js"
import * as Claims from "./Claims.js"
import * as Leases from "./Leases.js"
import * as Ops from "./Ops.js"
import * as Records from "./Records.js"
import * as RemoteSubmissions from "./RemoteSubmissions.js"
import * as Requests from "./Requests.js"
import * as Retention from "./Retention.js"
import * as Settlements from "./Settlements.js"
import * as Transactions from "./Transactions.js"
import * as Work from "./Work.js"

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
      decline: Requests.decline(store),
      refuse: Requests.refuse(store),
      finish: Requests.finish(store),
      request: Requests.request(store),
      requestOf: Requests.requestOf(store),
      finalAmong: Requests.finalAmong(store),
      work: Work.work(store),
      claim: Claims.claim(store),
      forget: Retention.forget(store),
      identify: Ops.identify(store),
      abandon: Ops.abandon(store),
      abandonUnsigned: Ops.abandonUnsigned(store),
      allocate: Transactions.allocate(store),
      unallocate: Transactions.unallocate(store),
      recordSigned: Transactions.recordSigned(store),
      settle: Settlements.settle(store),
      finalise: Settlements.finalise(store),
      unsettle: Settlements.unsettle(store),
      recordExternalUse: Settlements.recordExternalUse(store),
      submitRemotely: RemoteSubmissions.submitRemotely(store),
      recordInclusions: RemoteSubmissions.recordInclusions(store),
      revertInclusions: RemoteSubmissions.revertInclusions(store),
      finaliseInclusions: RemoteSubmissions.finaliseInclusions(store),
      revokeRemote: RemoteSubmissions.revokeRemote(store),
      remoteSubmissions: RemoteSubmissions.remoteSubmissions(store),
      open: Records.open(store),
      openOf: Records.openOf(store),
      transactionsBetween: Records.transactionsBetween(store),
      findTransaction: Records.findTransaction(store),
      transactionOf: Records.transactionOf(store),
      findOp: Ops.findOp(store)
    }
  })

export const layer = (
  options: Store.Options
): Layer.Layer<Journal, Migrations.MigrationsError, SqlClient.SqlClient> =>
  Layer.effect(Journal, make(options))
