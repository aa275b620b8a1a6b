import { createServer } from "node:http"
import type * as Http from "castellan/http"
import express from "express"
import { listen, mount, type Running } from "./node.js"

/**
 * The service below /wallets of an Express app. Before express.json(): the service reads bodies itself. By a middleware
 * of the whole app: app.use("/wallets", ...) would take the path away.
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
  app.get("/", (_, response) => void response.send("an app of its own"))
  return listen(createServer(app), port, "/wallets", service.dispose)
}
