import { generateKeyPairSync } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as FireblocksKeys from "../../../../src/adapters/keys/fireblocks/KeyProvider.js"
import { refusalMillis } from "../../../../src/adapters/keys/fireblocks/SigningRequests.js"
import type { ProviderKey } from "../../../../src/application/ports/KeyProvider.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import { digest, hosted } from "../../../ports/HostedKeyProvider.suite.js"
import { keyProviderSuite } from "../../../ports/KeyProvider.suite.js"
import * as Keys from "../../../support/kms/Keys.js"
import type { Server } from "../../../support/kms/Server.js"
import * as Fireblocks from "./Fireblocks.js"

const key = Keys.secp256k1(`0x${"a1".repeat(32)}`)
const assets: ReadonlyArray<Fireblocks.Asset> = [
  { vaultAccountId: "7", assetId: "ETH", key },
  { vaultAccountId: "7", assetId: "SOL", key, algorithm: "MPC_EDDSA_ED25519" }
]
const keyName = "7/ETH"
const secrets = [
  Fireblocks.remark,
  Fireblocks.apiKey,
  "PRIVATE KEY",
  Fireblocks.secretKey.slice(60, 100),
  "Bearer"
]

const options = {
  apiKey: Redacted.make(Fireblocks.apiKey),
  secretKey: Redacted.make(Fireblocks.secretKey),
  pollMillis: 10
}
const open = (server: Server, timeoutMillis: number, more: Partial<FireblocksKeys.Options> = {}) =>
  FireblocksKeys.make({ ...options, basePath: `http://127.0.0.1:${server.port}/v1`, timeoutMillis, ...more })

const within = <A>(
  body: (key: ProviderKey, there: Fireblocks.Fireblocks) => Effect.Effect<A, unknown>,
  timeoutMillis = 5_000
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const there = yield* Fireblocks.make(assets)
      const provider = yield* open(there.server, timeoutMillis)
      return yield* body(provider.key(keyName), there)
    })
  )

const digestOf = (n: number) => Hex.unsafe32(`0x${n.toString(16).padStart(64, "0")}`)
const rOf = (each: Hex.Bytes32) => key.sign(Buffer.from(each.slice(2), "hex")).r

const until = (condition: () => boolean) =>
  Effect.repeat(Effect.sleep("5 millis"), { until: condition }).pipe(Effect.timeout("5 seconds"))

const creations = ({ server }: Fireblocks.Fireblocks) =>
  server.asked.filter(({ method }) => method === "POST").length

keyProviderSuite("Fireblocks", {
  make: () => Effect.flatMap(Fireblocks.make(assets), ({ server }) => open(server, 20_000)),
  keyName,
  missingKeyName: "8/ETH",
  digests: 200
})

const { expectError } = hosted({
  name: "Fireblocks",
  serve: Effect.map(Fireblocks.make(assets), ({ server }) => server),
  open,
  keyName,
  secrets,
  unknownNames: ["", "7", "7/", "/ETH", "x/ETH", "7/ETH/0", "7/../ETH", "7/ETH?a=b", "../v1/7/ETH"]
})

describe("Fireblocks", () => {
  it.live("Fireblocks signs 127 digests in one transaction, each signature at its digest's place", () =>
    within((signer, there) =>
      Effect.gen(function* () {
        expect(signer.maxBatch).toBe(127)
        const digests = Array.from({ length: 127 }, (_, n) => digestOf(n + 1))
        const signatures = yield* signer.sign(digests)
        expect(signatures.map(({ r }) => r)).toEqual(digests.map(rOf))
        expect(there.transactions).toHaveLength(1)
        const [again] = yield* signer.sign([digestOf(5), digestOf(5)])
        expect(again?.r).toBe(rOf(digestOf(5)))
      })
    )
  )

  for (const status of [
    "SUBMITTED",
    "PENDING_AUTHORIZATION",
    "QUEUED",
    "PENDING_SIGNATURE",
    "A_STATUS_OF_TOMORROW"
  ])
    it.live(`Fireblocks waits while the transaction is ${status}, and signs when it is completed`, () =>
      within((signer, there) =>
        Effect.gen(function* () {
          there.policy = () => status
          const fiber = yield* Effect.forkChild(signer.sign([digest]))
          yield* until(() => there.server.asked.length >= 4)
          for (const transaction of there.transactions) there.decide(transaction, "COMPLETED")
          const signed = yield* Fiber.join(fiber)
          expect(signed[0]?.r).toBe(rOf(digest))
          expect(creations(there)).toBe(1)
        })
      )
    )

  for (const [status, subStatus, told] of [
    ["REJECTED", "REJECTED_BY_USER", "REJECTED (REJECTED_BY_USER)"],
    ["BLOCKED", "BLOCKED_BY_POLICY", "BLOCKED (BLOCKED_BY_POLICY)"],
    ["CANCELLED", "", "CANCELLED"],
    ["FAILED", `<b>${Fireblocks.remark}</b>`, "FAILED"]
  ] as const)
    it.live(`a transaction that is ${status} refuses with its status name only`, () =>
      within((signer, there) =>
        Effect.gen(function* () {
          there.policy = () => "PENDING_AUTHORIZATION"
          const fiber = yield* Effect.forkChild(Effect.flip(signer.sign([digest])))
          yield* until(() => there.transactions.length === 1)
          for (const transaction of there.transactions) there.decide(transaction, status, subStatus)
          expectError(yield* Fiber.join(fiber), "refused", `the transaction is ${told}`)
        })
      )
    )

  it.live("an approval that does not come in time is unavailable, and is found when it has come", () =>
    within(
      (signer, there) =>
        Effect.gen(function* () {
          there.policy = () => "PENDING_AUTHORIZATION"
          for (let turn = 0; turn < 3; turn++)
            expectError(
              yield* Effect.flip(signer.sign([digest])),
              "unavailable",
              "the transaction is still PENDING_AUTHORIZATION"
            )
          expect([there.transactions.length, creations(there)]).toEqual([1, 1])
          for (const transaction of there.transactions) there.decide(transaction, "COMPLETED")
          const signed = yield* signer.sign([digest])
          expect(signed[0]?.r).toBe(rOf(digest))
          expect(there.transactions).toHaveLength(1)
        }),
      200
    )
  )

  it.live("a pending digest is put to the approvers once, even when requested again with other digests", () =>
    within((signer, there) =>
      Effect.gen(function* () {
        there.policy = () => "PENDING_AUTHORIZATION"
        const [a, b, c, d] = [digestOf(1), digestOf(2), digestOf(3), digestOf(4)]
        const first = yield* Effect.forkChild(signer.sign([a, b, c]))
        yield* until(() => there.transactions.length === 1)
        yield* Fiber.interrupt(first)
        const second = yield* Effect.forkChild(signer.sign([c, a]))
        const third = yield* Effect.forkChild(signer.sign([d, b]))
        yield* until(() => there.transactions.length === 2)
        expect(there.transactions.map(({ contents }) => contents.length)).toEqual([3, 1])
        for (const transaction of there.transactions) there.decide(transaction, "COMPLETED")
        expect((yield* Fiber.join(second)).map(({ r }) => r)).toEqual([rOf(c), rOf(a)])
        expect((yield* Fiber.join(third)).map(({ r }) => r)).toEqual([rOf(d), rOf(b)])
      })
    )
  )

  it.live("another process that asks for the same digests waits for the same transaction", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const there = yield* Fireblocks.make(assets)
        there.policy = () => "PENDING_AUTHORIZATION"
        const one = yield* open(there.server, 5_000)
        const other = yield* open(there.server, 5_000)
        const first = yield* Effect.forkChild(one.key(keyName).sign([digest, digestOf(1)]))
        yield* until(() => there.transactions.length === 1)
        const second = yield* Effect.forkChild(other.key(keyName).sign([digestOf(1), digest]))
        yield* until(() => creations(there) === 2)
        for (const transaction of there.transactions) there.decide(transaction, "COMPLETED")
        const signed = yield* Fiber.join(first)
        expect((yield* Fiber.join(second)).map(({ r }) => r)).toEqual(signed.map(({ r }) => r).reverse())
        expect(there.transactions).toHaveLength(1)
      })
    )
  )

  it.live("a transaction whose creation got no reply is found, not created again", () =>
    within((signer, there) =>
      Effect.gen(function* () {
        there.server.fault = ({ method }) => (method === "POST" ? "cutInBody" : null)
        expect((yield* Effect.flip(signer.sign([digest]))).reason).toBe("unavailable")
        there.server.fault = null
        const signed = yield* signer.sign([digest])
        expect(signed[0]?.r).toBe(rOf(digest))
        expect([there.transactions.length, creations(there)]).toEqual([1, 2])
      })
    )
  )

  it.live(
    "a refusal answers for a minute; after it the same digests are put to the approvers once more",
    () =>
      within((signer, there) =>
        Effect.gen(function* () {
          there.policy = () => "BLOCKED"
          for (let turn = 0; turn < 3; turn++)
            expectError(yield* Effect.flip(signer.sign([digest])), "refused", "the transaction is BLOCKED")
          expect(there.transactions).toHaveLength(1)
          for (const transaction of there.transactions) transaction.lastUpdated -= refusalMillis
          there.policy = () => "COMPLETED"
          const signed = yield* signer.sign([digest])
          expect(signed[0]?.r).toBe(rOf(digest))
          expect(there.transactions).toHaveLength(2)
          expect(new Set(there.transactions.map(({ externalTxId }) => externalTxId)).size).toBe(2)
        })
      )
  )

  it.live("failed API replies are refused, unavailable or about no key, by their status numbers", () =>
    within((signer, there) =>
      Effect.gen(function* () {
        for (const [status, code, reason] of [
          [401, -8, "refused"],
          [403, -8, "refused"],
          [400, 1427, "refused"],
          [404, 1004, "notFound"],
          [400, 1006, "notFound"],
          [408, 0, "unavailable"],
          [429, 0, "unavailable"],
          [502, 0, "unavailable"]
        ] as const) {
          there.server.fault = ({ method }) =>
            method === "POST" ? { status, body: JSON.stringify({ code, message: Fireblocks.remark }) } : null
          expectError(
            yield* Effect.flip(signer.sign([digest])),
            reason,
            `HTTP status ${status}, code ${code}`
          )
        }
        expect(there.transactions).toEqual([])
      })
    )
  )

  it.live("a public key comes compressed or not, and one of another algorithm is unsuitable", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const there = yield* Fireblocks.make(assets)
        const provider = yield* open(there.server, 5_000)
        const short = `0${(key.y[31] ?? 0) % 2 === 0 ? 2 : 3}${key.x.toString("hex")}`
        there.server.fault = () => (answer) => ({
          ...answer,
          body: JSON.stringify({ ...JSON.parse(answer.body), publicKey: short })
        })
        expect(yield* provider.key(keyName).publicKey).toBe(key.publicKey)
        there.server.fault = null
        expect(yield* provider.key(keyName).publicKey).toBe(key.publicKey)
        expectError(
          yield* Effect.flip(provider.key("7/SOL").publicKey),
          "unsuitable",
          "the key is not of algorithm MPC_ECDSA_SECP256K1"
        )
        for (const garbage of ["", "04", `02${"ff".repeat(32)}`, 7, null]) {
          there.server.fault = () => (answer) => ({
            ...answer,
            body: JSON.stringify({ ...JSON.parse(answer.body), publicKey: garbage })
          })
          expectError(
            yield* Effect.flip(provider.key(keyName).publicKey),
            "unavailable",
            "the answer holds no public key"
          )
        }
      })
    )
  )

  it.live("a completed transaction without the signature of a digest is unavailable", () =>
    within((signer, there) =>
      Effect.gen(function* () {
        for (const signedMessages of [
          [],
          null,
          [{}],
          [{ content: digest.slice(2) }],
          [{ content: digest.slice(2), signature: { r: "zz", s: "00" } }],
          [{ content: digestOf(9).slice(2), signature: { r: "11".repeat(32), s: "11".repeat(32) } }]
        ]) {
          there.server.fault = ({ method }) =>
            method === "GET"
              ? (answer) => ({
                  ...answer,
                  body: JSON.stringify({ ...JSON.parse(answer.body), signedMessages })
                })
              : null
          expectError(
            yield* Effect.flip(signer.sign([digest])),
            "unavailable",
            "the answer holds no signature of a digest"
          )
        }
      })
    )
  )

  it.live("a redirect is not followed, for the token would go with it", () =>
    within((signer, there) =>
      Effect.gen(function* () {
        there.server.fault = () => ({
          status: 307,
          headers: { location: `${there.basePath}/elsewhere` },
          body: ""
        })
        expect((yield* Effect.flip(signer.publicKey)).reason).toBe("refused")
        expect(there.server.asked).toHaveLength(1)
      })
    )
  )

  it.live("a secret that is not an RSA key and an invalid base path are refused without their values", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const ec = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey
        const small = generateKeyPairSync("rsa", { modulusLength: 1_024 }).privateKey
        for (const pem of [
          "",
          "no PRIVATE KEY",
          Fireblocks.secretKey.slice(0, 200),
          ec.export({ format: "pem", type: "pkcs8" }).toString(),
          small.export({ format: "pem", type: "pkcs8" }).toString()
        ])
          expectError(
            yield* Effect.flip(FireblocksKeys.make({ ...options, secretKey: Redacted.make(pem) })),
            "refused",
            "the secret key is not an RSA private key of 2048 bits in PEM"
          )
        for (const basePath of ["", "api.fireblocks.io", "ftp://api.fireblocks.io/v1"])
          expectError(
            yield* Effect.flip(FireblocksKeys.make({ ...options, basePath })),
            "refused",
            "the base path is not an http or https URL"
          )
      })
    )
  )

  it.live("a token that another key has signed is refused", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { server } = yield* Fireblocks.make(assets)
        const other = generateKeyPairSync("rsa", { modulusLength: 2_048 }).privateKey
        const provider = yield* open(server, 5_000, {
          secretKey: Redacted.make(other.export({ format: "pem", type: "pkcs8" }).toString())
        })
        expectError(
          yield* Effect.flip(provider.key(keyName).publicKey),
          "refused",
          "HTTP status 401, code -1"
        )
        expectError(
          yield* Effect.flip(provider.key(keyName).sign([digest])),
          "refused",
          "HTTP status 401, code -1"
        )
      })
    )
  )
})
