import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { TokenCredential } from "../../../../src/adapters/keys/AzureKeyVault.js"
import * as AzureKeyProvider from "../../../../src/adapters/keys/AzureKeyVault.js"
import { digest, hosted } from "../../../ports/HostedKeyProvider.suite.js"
import { keyProviderSuite } from "../../../ports/KeyProvider.suite.js"
import * as Keys from "../../../support/kms/Keys.js"
import type { Answer, Server } from "../../../support/kms/Server.js"
import * as Vault from "./AzureKeyVault.js"

const main = Keys.secp256k1(`0x${"a1".repeat(32)}`)
const other = Keys.secp256k1(`0x${"b2".repeat(32)}`)
const older = "ffffffffffffffffffffffffffffffff"

const keys = [
  Vault.key("main", main),
  Vault.key("main", other, { version: older }),
  Vault.key("disabled", main, { enabled: false }),
  Vault.key("forbidden", main, { allowed: false }),
  Vault.key("verifying", main, { operations: ["verify"] }),
  Vault.key("expired", main, { expires: 1_700_000_000 }),
  Vault.key("nist", Keys.p256()),
  Vault.key("rsa", Keys.rsa())
]

const name = `main/${Vault.version}`
const secrets = [Vault.remark, "operator is not authorized", Vault.token, "5a5a5a", "WlpaWlpa"]

const credential: TokenCredential = {
  getToken: async () => ({ token: Vault.token, expiresOnTimestamp: Date.now() + 3_600_000 })
}

const serve = Vault.make(keys)
const open = (server: Server, timeoutMillis: number, more: Partial<AzureKeyProvider.Options> = {}) =>
  AzureKeyProvider.make({
    vaultUrl: Vault.vaultUrl(server),
    credential,
    agentOptions: Vault.agentOptions,
    timeoutMillis,
    ...more
  })

const nothing = "the answer lacks the requested data"

/** The service's answer with another body. */
const changed = (change: (body: { readonly key?: object }) => object) => () => (answer: Answer) => ({
  ...answer,
  body: JSON.stringify(change(JSON.parse(answer.body)))
})

keyProviderSuite("Azure Key Vault", {
  make: () => Effect.flatMap(serve, (server) => open(server, 5_000)),
  keyName: name,
  missingKeyName: "nobody",
  digests: 100
})

const unsuitable = "the key is not of type EC, curve P-256K, with the operation sign"
const { expectError, within } = hosted({
  name: "Azure Key Vault",
  serve,
  open,
  keyName: name,
  secrets,
  unknownNames: [
    "",
    "main/1",
    "main/",
    `../${name}`,
    "main?x=1",
    "https://elsewhere/keys/main",
    `${name}/sign`
  ],
  refusals: [
    ["disabled", "sign", "refused", "Forbidden (KeyDisabled)"],
    [
      "expired",
      "sign",
      "refused",
      "the key may not sign now, or the vault's challenge is for another service"
    ],
    ["forbidden", "sign", "refused", "Forbidden (ForbiddenByRbac)"],
    ["forbidden", "publicKey", "refused", "Forbidden (ForbiddenByRbac)"],
    ["nist", "publicKey", "unsuitable", unsuitable],
    ["rsa", "publicKey", "unsuitable", unsuitable],
    ["verifying", "publicKey", "unsuitable", unsuitable],
    ["nist", "sign", "unsuitable", "BadParameter"],
    ["rsa", "sign", "unsuitable", "BadParameter"]
  ],
  troubles: [
    ...(
      [
        [429, "Throttled"],
        [500, "InternalServerError"],
        [503, "ServiceUnavailable"],
        [504, "GatewayTimeout"]
      ] as const
    ).map(
      ([status, code]) =>
        [
          {
            ...Vault.failure(status, code),
            headers: { "content-type": "application/json", "retry-after": "1" }
          },
          "unavailable",
          code
        ] as const
    ),
    [
      Vault.failure(403, "<b>operator is not authorized</b>", "<b>operator is not authorized</b>"),
      "refused",
      "HTTP status 403"
    ]
  ]
})

describe("Azure Key Vault", () => {
  it.live("Azure Key Vault shows its token when it is challenged, and never the digest before", () =>
    within((key, server) =>
      Effect.gen(function* () {
        expect(key(name).type).toBe("KMS")
        expect(server.asked).toEqual([])
        yield* key(name).sign([digest])
        yield* key(name).sign([digest])
        expect(
          server.asked.map(({ body, headers, method }) => [
            method,
            headers.authorization !== undefined,
            body.length > 0
          ])
        ).toEqual([
          ["GET", false, false],
          ["GET", true, false],
          ["POST", true, true],
          ["GET", true, false],
          ["POST", true, true]
        ])
      })
    )
  )

  it.live("Azure Key Vault signs concurrent requests from the first signature on", () =>
    within((key, server) =>
      Effect.gen(function* () {
        server.fault = ({ headers }) => (headers.authorization === undefined ? Vault.challenge : null)
        const signing = [key(name), key("main"), key(`main/${older}`), key(name)]
        const signed = yield* Effect.forEach(signing, (each) => each.sign([digest]), {
          concurrency: "unbounded"
        })
        const [mine, others] = [main, other].map(({ sign }) => sign(Buffer.from(digest.slice(2), "hex")).r)
        expect(signed.map(([signature]) => signature?.r)).toEqual([mine, mine, others, mine])
      })
    )
  )

  it.live("a key of a version keeps to it, a name alone is the newest version's", () =>
    within((key) =>
      Effect.gen(function* () {
        expect(yield* key("main").publicKey).toBe(main.publicKey)
        expect(yield* key(name).publicKey).toBe(main.publicKey)
        expect(yield* key(`main/${older}`).publicKey).toBe(other.publicKey)
        expect((yield* Effect.flip(key(`main/${"0".repeat(32)}`).publicKey)).reason).toBe("notFound")
      })
    )
  )

  it.live("Azure Key Vault reads a refused key again, so an operator's fix applies immediately", () =>
    within((key, server) =>
      Effect.gen(function* () {
        const expired = key("main")
        server.fault = changed((body) => ({ ...body, attributes: { enabled: true, exp: 1_700_000_000 } }))
        expect((yield* Effect.flip(expired.sign([digest]))).reason).toBe("refused")
        server.fault = null
        expect(yield* expired.sign([digest])).toHaveLength(1)
      })
    )
  )

  it.live("a key may sign though it may not be read", () =>
    within((key, server) =>
      Effect.gen(function* () {
        server.fault = ({ headers, method }) =>
          method === "GET" && headers.authorization !== undefined
            ? Vault.failure(403, "Forbidden", "ForbiddenByPolicy")
            : null
        expect(yield* key(name).sign([digest])).toHaveLength(1)
      })
    )
  )

  it.live("a token that the vault does not take is refused", () =>
    within(
      (key) =>
        Effect.map(Effect.flip(key(name).publicKey), (error) =>
          expectError(error, "refused", "Unauthorized")
        ),
      {
        credential: { getToken: async () => ({ token: "stale", expiresOnTimestamp: Date.now() + 3_600_000 }) }
      }
    )
  )

  it.live("a challenge that names another service gets no token", () => {
    const asked: Array<unknown> = []
    return within(
      (key, server) =>
        Effect.gen(function* () {
          server.fault = () => ({
            ...Vault.challenge,
            headers: {
              "www-authenticate": 'Bearer authorization="https://elsewhere/x", resource="https://elsewhere"'
            }
          })
          expect((yield* Effect.flip(key(name).sign([digest]))).reason).toBe("refused")
          expect(asked).toEqual([])
        }),
      {
        credential: {
          getToken: async (scopes) => {
            asked.push(scopes)
            return { token: Vault.token, expiresOnTimestamp: Date.now() + 3_600_000 }
          }
        }
      }
    )
  })

  it.live("a reply about another key, or garbage, is unavailable; the ring refuses another key's point", () =>
    within((key, server) =>
      Effect.gen(function* () {
        const jwk = (fields: object) => changed((body) => ({ ...body, key: { ...body.key, ...fields } }))
        const kid = (which: string) => ({ kid: `https://castellan-test.vault.azure.net/keys/${which}` })
        const coordinates = (x: Buffer, y: Buffer) => ({
          x: x.toString("base64url"),
          y: y.toString("base64url")
        })
        for (const fields of [
          kid(`elsewhere/${Vault.version}`),
          kid(`main/${older}`),
          coordinates(main.x, other.y),
          coordinates(main.x.subarray(1), main.y),
          coordinates(Buffer.of(), Buffer.concat([main.x, main.y])),
          { x: undefined }
        ]) {
          server.fault = jwk(fields)
          expectError(yield* Effect.flip(key(name).publicKey), "unavailable", nothing)
        }
        server.fault = jwk(coordinates(other.x, other.y))
        expect(yield* key(name).publicKey).toBe(other.publicKey)
        server.fault = null
        yield* key(name).sign([digest])
        for (const size of [0, 1, 63, 65, 4_096]) {
          const value = Buffer.alloc(size, 1).toString("base64url")
          server.fault = (asked) =>
            asked.method === "POST" ? changed((body) => ({ ...body, value }))() : null
          expectError(yield* Effect.flip(key(name).sign([digest])), "unavailable", nothing)
        }
      })
    )
  )

  it.live("a vault whose certificate is not trusted gets nothing", () =>
    within(
      (key, server) =>
        Effect.gen(function* () {
          expect((yield* Effect.flip(key(name).sign([digest]))).reason).toBe("unavailable")
          expect(server.asked).toEqual([])
        }),
      { agentOptions: { lookup: Vault.agentOptions.lookup } }
    )
  )

  it.effect("Azure Key Vault refuses a vault URL that is not an https origin before any request", () =>
    Effect.gen(function* () {
      for (const vaultUrl of [
        "nonsense",
        "http://x.vault.azure.net",
        "https://x.vault.azure.net/keys/main",
        "https://u:p@x.vault.azure.net",
        "https://x.vault.azure.net/?a=b"
      ])
        expectError(
          yield* Effect.flip(Effect.scoped(AzureKeyProvider.make({ vaultUrl, credential }))),
          "refused",
          "the vault's URL is not an https origin"
        )
    })
  )
})
