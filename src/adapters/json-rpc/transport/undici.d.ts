/** The package's main entry also loads fetch, WebSocket, caches and mocks, and replaces the agent of the global fetch. */
declare module "undici/lib/dispatcher/agent.js" {
  export { Agent as default } from "undici"
}
