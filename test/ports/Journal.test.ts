import { adaptersOn } from "../support/journal/Layers.js"
import * as Postgres from "../support/postgres/Postgres.js"
import * as Acceptance from "./journal/Acceptance.suite.js"
import * as Authorisations from "./journal/Authorisations.suite.js"
import * as Cancellations from "./journal/Cancellations.suite.js"
import * as Events from "./journal/Events.suite.js"
import * as Handovers from "./journal/Handovers.suite.js"
import * as Leases from "./journal/Leases.suite.js"
import * as Listing from "./journal/Listing.suite.js"
import * as OpRows from "./journal/OpRows.suite.js"
import * as Ops from "./journal/Ops.suite.js"
import * as Records from "./journal/Records.suite.js"
import * as Recovery from "./journal/Recovery.suite.js"
import * as Reorganisations from "./journal/Reorganisations.suite.js"
import * as Requests from "./journal/Requests.suite.js"
import * as Routes from "./journal/Routes.suite.js"
import * as Schedules from "./journal/Schedules.suite.js"
import * as Settlement from "./journal/Settlement.suite.js"
import * as Transactions from "./journal/Transactions.suite.js"

for (const { layer, name } of adaptersOn(Postgres.perFile())) {
  Leases.suite(name, layer)
  Requests.suite(name, layer)
  Acceptance.suite(name, layer)
  Authorisations.suite(name, layer)
  Transactions.suite(name, layer)
  Records.suite(name, layer)
  Routes.suite(name, layer)
  Settlement.suite(name, layer)
  Reorganisations.suite(name, layer)
  Handovers.suite(name, layer)
  Ops.suite(name, layer)
  OpRows.suite(name, layer)
  Cancellations.suite(name, layer)
  Recovery.suite(name, layer)
  Events.suite(name, layer)
  Listing.suite(name, layer)
  Schedules.suite(name, layer)
}
