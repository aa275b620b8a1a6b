import { writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as Crc32c from "../../../../src/adapters/keys/gcp-kms/Crc32c.js"
import * as GcpKeyProvider from "../../../../src/adapters/keys/gcp-kms/KeyProvider.js"
import { digest, hosted } from "../../../ports/HostedKeyProvider.suite.js"
import { keyProviderSuite } from "../../../ports/KeyProvider.suite.js"
import * as Keys from "../../../support/kms/Keys.js"
import type { Answer, Server } from "../../../support/kms/Server.js"
import * as GcpKms from "./GcpKms.js"

const main = Keys.secp256k1(`0x${"a1".repeat(32)}`)
const other = Keys.secp256k1(`0x${"b2".repeat(32)}`)

const keys = [
  GcpKms.key("main", main),
  GcpKms.key("disabled", main, { enabled: false }),
  GcpKms.key("forbidden", main, { allowed: false }),
  GcpKms.key("nist", Keys.p256()),
  GcpKms.key("rsa", Keys.rsa())
]

const name = GcpKms.versionName("main")
const secrets = [GcpKms.remark, "operator is not authorized", "PRIVATE KEY", "5a5a5a", "WlpaWlpa"]

const serve = GcpKms.make(keys)
const endpointOf = (server: Server) => ({ host: "127.0.0.1", port: server.port, protocol: "http" as const })
const open = (server: Server, timeoutMillis: number) =>
  Effect.flatMap(GcpKms.credentialsFile(GcpKms.serviceAccount), (credentialsFile) =>
    GcpKeyProvider.make({ endpoint: endpointOf(server), credentialsFile, timeoutMillis })
  )

/** The service's answer with other fields. */
const with_ = (fields: object) => () => (answer: Answer) => ({
  ...answer,
  body: JSON.stringify({ ...JSON.parse(answer.body), ...fields })
})

keyProviderSuite("Google Cloud KMS", {
  make: () => Effect.flatMap(serve, (server) => open(server, 5_000)),
  keyName: name,
  missingKeyName: GcpKms.versionName("nobody"),
  digests: 100
})

const { expectError, within } = hosted({
  name: "Google Cloud KMS",
  serve,
  open,
  keyName: name,
  secrets,
  unknownNames: [
    "main",
    "",
    GcpKms.ring,
    name.replace(/\/cryptoKeyVersions.*/, ""),
    `${name}/../2`,
    `${name}?x=1`,
    name.replace("acme", "ac/me")
  ],
  refusals: (["publicKey", "sign"] as const).flatMap((call) => {
    const unsuitable =
      call === "sign" ? "INVALID_ARGUMENT" : "the key version is not of algorithm EC_SIGN_SECP256K1_SHA256"
    return [
      [GcpKms.versionName("disabled"), call, "refused", "FAILED_PRECONDITION"],
      [GcpKms.versionName("forbidden"), call, "refused", "PERMISSION_DENIED"],
      [GcpKms.versionName("nist"), call, "unsuitable", unsuitable],
      [GcpKms.versionName("rsa"), call, "unsuitable", unsuitable]
    ] as const
  }),
  troubles: [
    ...(
      [
        [429, "RESOURCE_EXHAUSTED"],
        [500, "INTERNAL"],
        [503, "UNAVAILABLE"],
        [504, "DEADLINE_EXCEEDED"],
        [409, "ABORTED"]
      ] as const
    ).map(([status, code]) => [GcpKms.failure(status, code), "unavailable", code] as const),
    [GcpKms.failure(403, "<b>operator is not authorized</b>"), "refused", "HTTP status 403"],
    [{ status: 404, body: "<html>operator is not authorized</html>" }, "notFound", "HTTP status 404"]
  ]
})

describe("Google Cloud KMS", () => {
  it.live("Google Cloud KMS sends no request before a key is used, nor for a self-signed token", () =>
    within((key, server) =>
      Effect.gen(function* () {
        expect(key(name).type).toBe("KMS")
        expect(server.asked).toEqual([])
        yield* key(name).publicKey
        expect(server.asked.map(({ url }) => url.pathname)).toEqual([`/v1/${name}/publicKey`])
      })
    )
  )

  it.live("Google Cloud KMS is unavailable when any checksum of a reply does not match", () =>
    within((key, server) =>
      Effect.gen(function* () {
        const message = "the answer is not as it was sent"
        const bent = Keys.der({ r: 5n, s: 6n }).toString("base64")
        for (const fields of [
          { signature: bent },
          { signatureCrc32c: "1" },
          { signatureCrc32c: null },
          { verifiedDigestCrc32c: false },
          { verifiedDigestCrc32c: undefined }
        ]) {
          server.fault = with_(fields)
          expectError(yield* Effect.flip(key(name).sign([digest])), "unavailable", message)
        }
        for (const fields of [
          { pemCrc32c: "0" },
          { pemCrc32c: undefined },
          { pem: "-----BEGIN PUBLIC KEY-----" }
        ]) {
          server.fault = with_(fields)
          expectError(yield* Effect.flip(key(name).publicKey), "unavailable", message)
        }
      })
    )
  )

  it.live("Google Cloud KMS ignores a reply about another key version", () =>
    within((key, server) =>
      Effect.gen(function* () {
        server.fault = with_({ name: GcpKms.versionName("main", 2) })
        const message = "the answer lacks the requested data"
        expectError(yield* Effect.flip(key(name).sign([digest])), "unavailable", message)
        expectError(yield* Effect.flip(key(name).publicKey), "unavailable", message)
      })
    )
  )

  it.live("garbage with a valid checksum is unavailable; the ring refuses another key's public key", () =>
    within((key, server) =>
      Effect.gen(function* () {
        const message = "the answer lacks the requested data"
        const whole = Keys.der({ r: 1n, s: 2n })
        for (const bytes of [Buffer.of(0x30), Buffer.concat([whole, Buffer.of(0)]), Buffer.alloc(4_096, 1)]) {
          server.fault = with_({ signature: bytes.toString("base64"), signatureCrc32c: GcpKms.crc32c(bytes) })
          expectError(yield* Effect.flip(key(name).sign([digest])), "unavailable", message)
        }
        const pem = (body: string) => {
          const text = `-----BEGIN PUBLIC KEY-----\n${body}\n-----END PUBLIC KEY-----\n`
          return { pem: text, pemCrc32c: GcpKms.crc32c(Buffer.from(text)) }
        }
        for (const body of ["AAAA", "====", "", "<html>", `${main.spki.toString("base64")}\nAAAA`]) {
          server.fault = with_(pem(body))
          expectError(yield* Effect.flip(key(name).publicKey), "unavailable", message)
        }
        server.fault = with_(pem(other.spki.toString("base64")))
        expect(yield* key(name).publicKey).toBe(other.publicKey)
        server.fault = with_(pem(Keys.p256().spki.toString("base64")))
        expect((yield* Effect.flip(key(name).publicKey)).reason).toBe("unsuitable")
      })
    )
  )

  it.live("an answer without an end in sight is dropped", () =>
    within((key, server) =>
      Effect.gen(function* () {
        server.fault = () => ({ status: 200, body: " ".repeat(1_024 * 1_024) })
        expectError(yield* Effect.flip(key(name).publicKey), "unavailable", "no answer that could be read")
      })
    )
  )

  it.live("a file of credentials that cannot be used is refused at the start, and not shown", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* serve
        const missing = "/nowhere/credentials.json"
        const files = [
          missing,
          yield* GcpKms.credentialsFile('{"private_key": "PRIVATE KEY'),
          yield* GcpKms.credentialsFile({}),
          yield* GcpKms.credentialsFile([]),
          yield* GcpKms.credentialsFile("null")
        ]
        for (const credentialsFile of files)
          expectError(
            yield* Effect.flip(GcpKeyProvider.make({ endpoint: endpointOf(server), credentialsFile })),
            "refused",
            "the file of the credentials cannot be used"
          )
      })
    )
  )

  it.live("a workload identity exchanges its token first; a failed exchange reports its reason", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* serve
        const file = yield* GcpKms.credentialsFile("")
        const subject = join(dirname(file), "token")
        writeFileSync(subject, "PRIVATE KEY of a workload")
        writeFileSync(
          file,
          JSON.stringify({
            type: "external_account",
            audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
            subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
            token_url: `http://127.0.0.1:${server.port}/token`,
            credential_source: { file: subject }
          })
        )
        const options = { endpoint: endpointOf(server), credentialsFile: file, timeoutMillis: 1_500 }
        const key = (yield* GcpKeyProvider.make(options)).key(name)
        const refuse = (status: number, error: string) => () => ({
          status,
          body: JSON.stringify({ error, error_description: "operator is not authorized" })
        })
        server.fault = refuse(400, "invalid_grant")
        expectError(yield* Effect.flip(key.publicKey), "refused", "invalid_grant")
        server.fault = refuse(503, "temporarily_unavailable")
        expectError(yield* Effect.flip(key.publicKey), "unavailable", "temporarily_unavailable")
        expect(server.asked).toHaveLength(2)
        server.fault = () => "hang"
        expectError(yield* Effect.flip(key.publicKey), "unavailable", "no answer that could be read")
        server.fault = null
        expect(yield* key.publicKey).toBe(main.publicKey)
        expect(server.connections()).toBe(1)
      })
    )
  )

  it("sums as the definition of CRC-32C says, and as its published check value", () => {
    expect(Crc32c.of(Buffer.from("123456789"))).toBe(0xe3069283)
    fc.assert(fc.property(fc.uint8Array(), (bytes) => String(Crc32c.of(bytes)) === GcpKms.crc32c(bytes)))
  })
})
