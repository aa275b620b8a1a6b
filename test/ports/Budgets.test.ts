import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlClient } from "effect/sql/SqlClient"
import * as SqlBudgets from "../../src/adapters/sql/budgets/Budgets.js"
import type { Budgets } from "../../src/application/ports/Budgets.js"
import * as Layers from "../support/journal/Layers.js"
import { suite } from "./Budgets.suite.js"

const over = <E>(client: Layer.Layer<SqlClient, E>): Layer.Layer<Budgets> =>
  SqlBudgets.layer.pipe(Layer.provide(Layer.fresh(client)), Layer.orDie)

for (const [name, client] of Object.entries(Layers.clients())) suite(name, Effect.map(client, over))
