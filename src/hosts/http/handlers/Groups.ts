import * as Chain from "./Chain.js"
import * as Events from "./Events.js"
import * as Network from "./Network.js"
import * as Operations from "./Operations.js"
import * as Registry from "./Registry.js"
import * as Signing from "./Signing.js"
import * as Wallets from "./Wallets.js"
import * as Watches from "./Watches.js"
import * as Webhooks from "./Webhooks.js"

/** The use case behind every endpoint that needs a key, by the endpoint's name in the contract. */
export const handlers = {
  ...Wallets.handlers,
  ...Operations.handlers,
  ...Chain.handlers,
  ...Events.handlers,
  ...Registry.handlers,
  ...Signing.handlers,
  ...Network.handlers,
  ...Webhooks.handlers,
  ...Watches.handlers
}
