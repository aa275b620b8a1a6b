/**
 * The package's own entry also loads fetch, WebSocket, caches and mocks, and puts an agent under the fetch of the whole
 * process.
 */
declare module "undici/lib/dispatcher/agent.js" {
  export { Agent as default } from "undici"
}
