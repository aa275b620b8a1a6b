import { createServer } from "node:http"
import type * as Http from "castellan/http"
import express from "express"
import { listen, mount, type Running } from "./node.js"

/**
 * Serves castellan below /wallets of an Express app. It mounts before express.json(), since the service reads bodies
 * itself, and as a middleware of the whole app, since app.use("/wallets", ...) would strip the path.
 */
export const start = async (config: Http.Config.Config, port = 8080): Promise<Running> => {
  const service = mount(config, "/wallets")
  await service.ready
  const app = express()
  app.use((request, response, next) => {
    if (/^\/wallets(\/|\?|$)/.test(request.url)) void service.listener(request, response)
    else next()
  })
  app.use(express.json())
  app.get("/", (_, response) => void response.send("the host app"))
  return listen(createServer(app), port, "/wallets", service.dispose)
}
