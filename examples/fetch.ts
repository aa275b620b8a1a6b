import { createServer } from "node:http"
import type * as Http from "castellan/http"
import { listen, mount, type Running } from "./node.js"

/**
 * Serves only castellan. `Deno.serve` and `Bun.serve` take `service.handler` unchanged; Node needs
 * `service.listener`.
 */
export const start = async (config: Http.Config.Config, port = 8080): Promise<Running> => {
  const service = mount(config, "")
  await service.ready
  return listen(createServer(service.listener), port, "", service.dispose)
}
