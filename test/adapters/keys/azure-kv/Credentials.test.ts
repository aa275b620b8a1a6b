import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as AzureKeyProvider from "../../../../src/adapters/keys/AzureKeyVault.js"
import { digest, expectQuiet } from "../../../ports/HostedKeyProvider.suite.js"
import * as Keys from "../../../support/kms/Keys.js"
import type { Server } from "../../../support/kms/Server.js"
import * as Vault from "./AzureKeyVault.js"

const main = Keys.secp256k1(`0x${"a1".repeat(32)}`)
const serve = Vault.make([Vault.key("main", main)])
const secrets = [Vault.remark, Vault.clientSecret, Vault.token, "wrong~secret"]

const open = (server: Server, clientSecret: string) =>
  AzureKeyProvider.make({
    vaultUrl: Vault.vaultUrl(server),
    credentials: {
      tenantId: Vault.tenantId,
      clientId: Vault.clientId,
      clientSecret: Redacted.make(clientSecret),
      authorityHost: Vault.authorityHost(server)
    },
    agentOptions: Vault.agentOptions,
    timeoutMillis: 1_500
  })

const isAuthority = ({ url }: { readonly url: URL }) => url.hostname.startsWith("login.")

describe("an application of Microsoft Entra", () => {
  it.live("an Entra application gets one token for its secret, and signs", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* serve
        const key = (yield* open(server, Vault.clientSecret)).key("main")
        expect(server.asked).toEqual([])
        expect(yield* key.publicKey).toBe(main.publicKey)
        yield* key.sign([digest])
        const tokens = server.asked.filter((asked) => isAuthority(asked) && asked.method === "POST")
        expect(tokens).toHaveLength(1)
      })
    )
  )

  it.live("an application of Microsoft Entra with a wrong secret is refused, and shown neither", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* serve
        const key = (yield* open(server, "wrong~secret")).key("main")
        const error = yield* Effect.flip(key.publicKey)
        expect({ reason: error.reason, message: error.message }).toEqual({
          reason: "refused",
          message: "Azure Key Vault: invalid_client"
        })
        expectQuiet(error, secrets)
      })
    )
  )

  it.live("is unavailable while its authority is, does not wait for it for ever, and serves again", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* serve
        const key = (yield* open(server, Vault.clientSecret)).key("main")
        for (const fault of ["hang", "cut", { status: 503, body: "" }] as const) {
          server.fault = (asked) => (isAuthority(asked) ? fault : null)
          const error = yield* Effect.flip(key.publicKey)
          expect(error.reason).toBe("unavailable")
          expectQuiet(error, secrets)
        }
        server.fault = null
        expect(yield* key.publicKey).toBe(main.publicKey)
      })
    )
  )
})
