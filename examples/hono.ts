import { createServer } from "node:http"
import { getRequestListener } from "@hono/node-server"
import * as Http from "castellan/http"
import { Hono } from "hono"
import { listen, type Running } from "./node.js"

/** Serves castellan below /wallets of a Hono app. */
export const start = async (config: Http.Config.Config, port = 8080): Promise<Running> => {
  const service = Http.toWebHandler(config, { basePath: "/wallets" })
  await service.ready
  const app = new Hono()
    .get("/", (context) => context.text("the host app"))
    .all("/wallets/*", (context) => service.handler(context.req.raw))
  return listen(createServer(getRequestListener(app.fetch)), port, "/wallets", service.dispose)
}
