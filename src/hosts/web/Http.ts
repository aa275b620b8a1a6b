/**
 * `castellan/http`: the HTTP service for programs that have a server already.
 *
 * - `toWebHandler(config)` and `make(config)`: the whole service as a fetch handler
 * - `httpApp(options)`: the same interface as a handler for Effect's `HttpRouter`, over ports of the program's own
 * - `api`, `errors`: the contract as a value, from which clients and documents are derived
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
