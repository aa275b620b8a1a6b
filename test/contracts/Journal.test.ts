import { adapters } from "../support/journal/Layers.js"
import * as Acceptance from "./journal/Acceptance.suite.js"
import * as Authorisations from "./journal/Authorisations.suite.js"
import * as Leases from "./journal/Leases.suite.js"
import * as Ops from "./journal/Ops.suite.js"
import * as Settlement from "./journal/Settlement.suite.js"
import * as Transactions from "./journal/Transactions.suite.js"

for (const { layer, name } of adapters) {
  Leases.suite(name, layer)
  Acceptance.suite(name, layer)
  Authorisations.suite(name, layer)
  Transactions.suite(name, layer)
  Settlement.suite(name, layer)
  Ops.suite(name, layer)
}
