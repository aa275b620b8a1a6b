import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as AwsKeyProvider from "../../../../src/adapters/keys/AwsKms.js"
import { digest, expectQuiet, hosted } from "../../../ports/HostedKeyProvider.suite.js"
import { keyProviderSuite } from "../../../ports/KeyProvider.suite.js"
import * as Keys from "../../../support/kms/Keys.js"
import type { Server } from "../../../support/kms/Server.js"
import * as AwsKms from "./AwsKms.js"

const main = Keys.secp256k1(`0x${"a1".repeat(32)}`)
const other = Keys.secp256k1(`0x${"b2".repeat(32)}`)

const keys = [
  AwsKms.key("main", main),
  AwsKms.key("disabled", main, { state: "Disabled" }),
  AwsKms.key("doomed", main, { state: "PendingDeletion" }),
  AwsKms.key("forbidden", main, { allowed: false }),
  AwsKms.key("exchange", main, { usage: "KEY_AGREEMENT" }),
  AwsKms.key("nist", Keys.p256()),
  AwsKms.key("rsa", Keys.rsa())
]

const secrets = [
  AwsKms.accessKeyId,
  AwsKms.remark,
  "operator is not authorized",
  AwsKms.secretAccessKey,
  AwsKms.sessionToken,
  "5a5a5a"
]

const serve = Effect.map(AwsKms.make(keys), ({ server }) => server)
const credentials = {
  accessKeyId: Redacted.make(AwsKms.accessKeyId),
  secretAccessKey: Redacted.make(AwsKms.secretAccessKey)
}
const open = (server: Server, timeoutMillis: number, more: Partial<AwsKeyProvider.Options> = {}) =>
  AwsKeyProvider.make({
    region: AwsKms.region,
    endpoint: `http://127.0.0.1:${server.port}`,
    credentials,
    timeoutMillis,
    ...more
  })

keyProviderSuite("AWS KMS", {
  make: () => Effect.flatMap(serve, (server) => open(server, 5_000)),
  keyName: AwsKms.arn("main"),
  missingKeyName: "alias/nobody",
  digests: 200
})

const { expectError, within } = hosted({
  name: "AWS KMS",
  serve,
  open,
  keyName: "main",
  secrets,
  refusals: [
    ["disabled", "sign", "refused", "DisabledException"],
    ["doomed", "sign", "refused", "KMSInvalidStateException"],
    ["doomed", "publicKey", "refused", "KMSInvalidStateException"],
    ["forbidden", "sign", "refused", "AccessDeniedException"],
    ["forbidden", "publicKey", "refused", "AccessDeniedException"],
    ...["nist", "rsa", "exchange"].flatMap((name) => [
      [
        name,
        "publicKey",
        "unsuitable",
        "the key is not of spec ECC_SECG_P256K1 and usage SIGN_VERIFY"
      ] as const,
      [name, "sign", "unsuitable", "InvalidKeyUsageException"] as const
    ])
  ],
  troubles: [
    ...(
      [
        ["ThrottlingException", 400],
        ["TooManyRequestsException", 429],
        ["DependencyTimeoutException", 500],
        ["KeyUnavailableException", 500],
        ["KMSInternalException", 500],
        ["ExpiredTokenException", 400]
      ] as const
    ).map(([code, status]) => [AwsKms.failure(code, status), "unavailable", code] as const),
    [AwsKms.failure("<b>operator is not authorized</b>", 403), "refused", "an error without a name"]
  ]
})

describe("AWS KMS", () => {
  it.live("AWS KMS knows a key by its id, its ARN and its alias, and asks with a session token", () =>
    within(
      (key, server) =>
        Effect.gen(function* () {
          expect(key("main").type).toBe("KMS")
          for (const name of ["main", AwsKms.arn("main"), "alias/main"])
            expect(yield* key(name).publicKey).toBe(main.publicKey)
          expect(
            server.asked.every(({ headers }) => headers["x-amz-security-token"] === AwsKms.sessionToken)
          ).toBe(true)
        }),
      { credentials: { ...credentials, sessionToken: Redacted.make(AwsKms.sessionToken) } }
    )
  )

  it.live("a wrong secret is refused, and not shown", () =>
    within(
      (key) =>
        Effect.map(Effect.flip(key("main").sign([digest])), (error) => {
          expectError(error, "refused", "InvalidSignatureException")
          expectQuiet(error, ["another secret"])
        }),
      { credentials: { ...credentials, secretAccessKey: Redacted.make("another secret") } }
    )
  )

  it.live("a clock that is wrong is unavailable once, then corrected", () =>
    within((key, server) =>
      Effect.gen(function* () {
        const there = Date.now() + 3_600_000
        server.fault = ({ headers }) => {
          const date = String(headers["x-amz-date"]).replace(
            /(....)(..)(..)T(..)(..)(..)Z/,
            "$1-$2-$3T$4:$5:$6Z"
          )
          return Math.abs(Date.parse(date) - there) < 300_000
            ? null
            : AwsKms.failure("InvalidSignatureException", 400, { date: new Date(there).toUTCString() })
        }
        expectError(yield* Effect.flip(key("main").publicKey), "unavailable", "InvalidSignatureException")
        expect(yield* key("main").publicKey).toBe(main.publicKey)
      })
    )
  )

  it.live("a signature or public key that is garbage is unavailable", () =>
    within((key, server) =>
      Effect.gen(function* () {
        const garbage = (bytes: Buffer) => (answer: { readonly status: number; readonly body: string }) => ({
          ...answer,
          body: JSON.stringify({
            ...JSON.parse(answer.body),
            Signature: bytes.toString("base64"),
            PublicKey: bytes.toString("base64")
          })
        })
        const whole = Keys.der({ r: 1n, s: 2n })
        for (const bytes of [
          Buffer.of(),
          Buffer.of(0x30),
          Buffer.concat([whole, Buffer.of(0)]),
          Buffer.alloc(4_096, 1)
        ]) {
          server.fault = () => garbage(bytes)
          expectError(
            yield* Effect.flip(key("main").sign([digest])),
            "unavailable",
            "the answer holds no DER signature"
          )
          expectError(
            yield* Effect.flip(key("main").publicKey),
            "unavailable",
            "the answer holds no DER public key"
          )
        }
        server.fault = () => garbage(other.spki)
        expect(yield* key("main").publicKey).toBe(other.publicKey)
        server.fault = () => garbage(Keys.p256().spki)
        expect((yield* Effect.flip(key("main").publicKey)).reason).toBe("unsuitable")
      })
    )
  )

  it.effect("AWS KMS refuses an endpoint that is not a URL before any request", () =>
    Effect.gen(function* () {
      for (const endpoint of ["nonsense", "ftp://127.0.0.1", "localhost:4566"])
        expectError(
          yield* Effect.flip(Effect.scoped(AwsKeyProvider.make({ region: AwsKms.region, endpoint }))),
          "refused",
          "the endpoint is not an http or https URL"
        )
    })
  )
})
