import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlAbiStore from "../../../src/adapters/sql/AbiStore.js"
import * as SqlBudgets from "../../../src/adapters/sql/budgets/Budgets.js"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as SqlPolicies from "../../../src/adapters/sql/Policies.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as SqlTenantStore from "../../../src/adapters/sql/TenantStore.js"
import * as Rulebook from "../../../src/application/policies/Rulebook.js"
import type { AbiStore } from "../../../src/application/ports/AbiStore.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import type { Journals } from "../../../src/application/ports/journal/Journals.js"
import type { Policies } from "../../../src/application/ports/Policies.js"
import { TenantStore } from "../../../src/application/ports/TenantStore.js"
import { options } from "./Layers.js"

/** SQLite journal in memory; it ends with the scope. */
export const makeJournal: Effect.Effect<Context.Context<Journals>, never, Scope.Scope> = Effect.flatMap(
  Sqlite.make({ filename: ":memory:" }),
  (sql) => SqlJournal.make(options).pipe(Effect.provideService(SqlClient.SqlClient, sql))
).pipe(Effect.provide(Reactivity.layer), Effect.orDie)

export const journal: Layer.Layer<Journals> = Layer.effectContext(makeJournal)

/** Each port over its own in-memory SQLite database, new on each use. */

const over = <A, E>(layer: Layer.Layer<A, E, SqlClient.SqlClient>): Layer.Layer<A> =>
  Layer.fresh(layer.pipe(Layer.provide(Sqlite.layer({ filename: ":memory:" })), Layer.orDie))

export const abiStore: Layer.Layer<AbiStore> = over(SqlAbiStore.layer)

export const budgets: Layer.Layer<Budgets> = over(SqlBudgets.layer)

export const policies: Layer.Layer<Policies | Rulebook.Rulebook> = Layer.provideMerge(
  Rulebook.layer,
  over(SqlPolicies.layer)
)

export const tenantStore: Layer.Layer<TenantStore> = over(SqlTenantStore.layer)

/** The service of a layer, for the lifetime of the scope. */
const built = <Id, S>(
  tag: Context.Key<Id, S>,
  layer: Layer.Layer<Id>
): Effect.Effect<S, never, Scope.Scope> => Effect.map(Layer.build(layer), Context.get(tag))

export const makeBudgets = built(Budgets, budgets)
export const makeTenantStore = built(TenantStore, tenantStore)
