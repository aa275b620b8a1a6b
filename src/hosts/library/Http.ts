/**
 * `castellan/http`: the HTTP service for programs with an existing server.
 *
 * - `toWebHandler(config)` and `make(config)`: the whole service as a fetch handler
 * - `httpApp(options)`: the HTTP API as a handler for Effect's `HttpRouter`, over the program's ports
 * - `api`, `errors`: the contract as a value, for clients and documents
 */

export * as Config from "../config/Config.js"
export { api } from "../http/contract/Api.js"
export { Authentication, apiKeyHeader, idempotencyHeader } from "../http/contract/EndpointAnnotations.js"
export { schemas as errors } from "../http/message/ErrorEnvelope.js"
export { StartError } from "../Wiring.js"
export { httpApp } from "./HttpApp.js"
export {
  type Handler,
  make,
  type Options,
  toWebHandler,
  type WebHandler,
  type WebHandlerOptions
} from "./WebHandler.js"
