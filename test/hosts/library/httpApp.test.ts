import { describe, expect, it } from "@effect/vitest"
import * as Castellan from "castellan"
import * as Http from "castellan/http"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"

const key = "a key of the program's own"

/** The program assigns keys to accounts. */
const tenants = Layer.succeed(Castellan.Tenants.Tenants, {
  authenticate: (given) =>
    Effect.map(Castellan.caller(), ({ principal }) => (Redacted.value(given) === key ? principal : null))
})

const ports = Layer.merge(
  Castellan.layer({
    networks: [],
    signers: [{ clientId: "treasury", versionId: "1", privateKey: `0x${"11".repeat(32)}` }]
  }),
  tenants
)

const make = Effect.gen(function* () {
  const app = yield* Http.httpApp({ basePath: "/wallets", drain: 0 })
  const { handler } = HttpRouter.toWebHandler(
    Layer.merge(
      HttpRouter.add("GET", "/", HttpServerResponse.text("another page")),
      HttpRouter.addAll([HttpRouter.route("*", "/*", app)], { prefix: "/wallets" })
    )
  )
  return (path: string, init: RequestInit = {}) =>
    Effect.promise(async () => {
      const headers = { "content-type": "application/json", "x-api-key": key }
      const response = await handler(new Request(`http://own.test${path}`, { headers, ...init }))
      return { status: response.status, text: await response.text() }
    })
})

const signer = {
  method: "POST",
  body: JSON.stringify({ signer: { clientId: "treasury", versionId: "1" } })
}

describe("httpApp", () => {
  it.live("runs in another Effect server over the program's own ports and keys", () =>
    Effect.gen(function* () {
      const ask = yield* make
      expect((yield* ask("/")).text).toBe("another page")
      const { status, text } = yield* ask("/wallets/getSigner", signer)
      expect({ status, ...JSON.parse(text) }).toMatchObject({ status: 200, type: "PRIVATE_KEY" })
      const unknown = yield* ask("/wallets/getSigner", { ...signer, headers: { "x-api-key": "another" } })
      expect(JSON.parse(unknown.text).code).toBe("unauthorized")
      expect(JSON.parse((yield* ask("/wallets/nope")).text).code).toBe("not_found")
      const document = yield* ask("/wallets/openapi.json")
      expect(JSON.parse(document.text).servers).toEqual([{ url: "/wallets" }])
    }).pipe(Effect.provide(ports))
  )

  it.live("has no routes outside its path, within the layers of the other server", () =>
    Effect.gen(function* () {
      const routes = HttpRouter.use((router) =>
        Effect.flatMap(Http.httpApp({ basePath: "/wallets", drain: 0 }), (app) =>
          router.prefixed("/wallets").add("*", "/*", app)
        )
      )
      const { dispose, handler } = HttpRouter.toWebHandler(Layer.provide(routes, ports))
      yield* Effect.addFinalizer(() => Effect.promise(dispose))
      const headers = { "content-type": "application/json", "x-api-key": key }
      const status = (path: string) =>
        Effect.promise(
          async () => (await handler(new Request(`http://own.test${path}`, { headers, ...signer }))).status
        )
      expect(yield* status("/wallets/getSigner")).toBe(200)
      expect(yield* status("/getSigner")).toBe(404)
    })
  )

  it.live("answers 503 when its scope has closed", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const ask = yield* Scope.provide(make, scope)
      yield* Scope.close(scope, Exit.void)
      expect(JSON.parse((yield* ask("/wallets/getSigner", signer)).text).code).toBe("shutting_down")
    }).pipe(Effect.provide(ports))
  )
})
