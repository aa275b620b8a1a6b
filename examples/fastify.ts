import type * as Http from "castellan/http"
import Fastify from "fastify"
import { listen, mount, type Running } from "./node.js"

/** Serves castellan below /wallets of a Fastify app. A plugin, so that only its routes leave bodies to the service. */
export const start = async (config: Http.Config.Config, port = 8080): Promise<Running> => {
  const service = mount(config, "/wallets")
  await service.ready
  const app = Fastify()
  app.get("/", () => "the host app")
  app.register(async (wallets) => {
    wallets.removeAllContentTypeParsers()
    wallets.addContentTypeParser("*", (_request, _body, done) => done(null))
    wallets.all("/wallets/*", async (request, reply) => {
      reply.hijack()
      await service.listener(request.raw, reply.raw)
    })
  })
  await app.ready()
  return listen(app.server, port, "/wallets", async () => {
    await service.dispose()
    await app.close()
  })
}
