import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Castellan from "castellan"
import * as Http from "castellan/http"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import type { Running } from "./node.js"

/** The program itself decides which API key belongs to which account. */
const tenants = (apiKey: string) =>
  Layer.succeed(Castellan.Tenants.Tenants, {
    authenticate: (given) =>
      Effect.map(Castellan.caller(), ({ principal }) => (Redacted.value(given) === apiKey ? principal : null))
  })

/** Serves the HTTP interface below /wallets of an Effect server, over the program's own layer. */
const server = (options: Castellan.Options, apiKey: string) =>
  Layer.unwrap(
    Effect.map(Http.httpApp({ basePath: "/wallets" }), (app) =>
      HttpRouter.serve(
        Layer.merge(
          HttpRouter.add("GET", "/", HttpServerResponse.text("the host app")),
          HttpRouter.addAll([HttpRouter.route("*", "/*", app)], { prefix: "/wallets" })
        )
      )
    )
  ).pipe(Layer.provide(Layer.merge(Castellan.layer(options), tenants(apiKey))))

export const start = async (options: Castellan.Options, apiKey: string, port = 8080): Promise<Running> => {
  const scope = Effect.runSync(Scope.make())
  const node = createServer()
  const listening = server(options, apiKey).pipe(
    Layer.provideMerge(NodeHttpServer.layer(() => node, { port, host: "127.0.0.1" })),
    Layer.buildWithScope(scope)
  )
  await Effect.runPromise(listening)
  const address = node.address()
  return {
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : port}/wallets`,
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
