import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Chain from "./Chain.js"
import * as Events from "./Events.js"
import * as Network from "./Network.js"
import * as Operations from "./Operations.js"
import * as Policies from "./Policies.js"
import * as Registry from "./Registry.js"
import * as Service from "./Service.js"
import * as Settings from "./Settings.js"
import * as Signing from "./Signing.js"
import * as Wallets from "./Wallets.js"
import * as Watches from "./Watches.js"
import * as Webhooks from "./Webhooks.js"

/**
 * The HTTP contract as a value: paths, methods, payloads, responses, errors and required scopes. The server, the OpenAPI
 * document, the documentation pages and derived clients read it.
 */
export const api = HttpApi.make("castellan")
  .add(
    Wallets.group,
    Operations.group,
    Chain.group,
    Events.group,
    Registry.group,
    Signing.group,
    Network.group,
    Webhooks.group,
    Watches.group,
    Policies.group,
    Settings.decisionHook,
    Settings.topUps,
    Service.group
  )
  .annotate(OpenApi.Title, "castellan")
  .annotate(OpenApi.Version, "0.1.0")
  .annotate(OpenApi.License, { name: "MIT", identifier: "MIT" })
  .annotate(
    OpenApi.Summary,
    "ERC-4337 smart-contract wallets for backends: predict, deploy and operate them over HTTP."
  )
