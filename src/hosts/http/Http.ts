import * as Chain from "./chain/Http.js"
import * as Events from "./events/Http.js"
import * as Network from "./network/Http.js"
import * as Operations from "./operations/Http.js"
import * as Registry from "./registry/Http.js"
import * as Signing from "./signing/Http.js"
import * as Wallets from "./wallets/Http.js"

/** The use case behind every endpoint that needs a key, by the endpoint's name in the contract. */
export const handlers = {
  ...Wallets.handlers,
  ...Operations.handlers,
  ...Chain.handlers,
  ...Events.handlers,
  ...Registry.handlers,
  ...Signing.handlers,
  ...Network.handlers
}
