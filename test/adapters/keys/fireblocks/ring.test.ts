import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import { recoverAddress } from "ethers"
import * as KeyRing from "../../../../src/application/keys/KeyRing.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as KeyProviders from "../../../../src/hosts/config/KeyProviders.js"
import * as Keys from "../../../support/kms/Keys.js"
import * as Scripted from "../../../support/signing/Scripted.js"
import * as Fireblocks from "./Fireblocks.js"

const key = Keys.secp256k1(`0x${"a1".repeat(32)}`)
const digests = [1, 2, 3].map((n) => Hex.unsafe32(`0x${`0${n}`.repeat(32)}`))

it.live("a configured Fireblocks provider signs; the ring's retries ask the approver once", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const there = yield* Fireblocks.make([{ vaultAccountId: "7", assetId: "ETH", key }])
      there.policy = () => "PENDING_AUTHORIZATION"
      const { signers } = yield* KeyRing.make({
        providers: {
          mpc: KeyProviders.provider({
            kind: "fireblocks",
            name: "mpc",
            apiKey: Redacted.make(Fireblocks.apiKey),
            secretKey: Redacted.make(Fireblocks.secretKey),
            basePath: there.basePath,
            pollMillis: 50,
            timeoutMillis: 200
          })
        },
        signers: [
          { accountIds: [Scripted.account], ...Scripted.ref, source: { provider: "mpc", key: "7/ETH" } }
        ],
        system: {}
      })
      const signer = yield* signers.resolve(Scripted.account, Scripted.ref)
      expect([signer.type, signer.publicKey]).toEqual(["MPC", key.publicKey])
      const signing = yield* Effect.forkChild(
        Effect.forEach(digests, signer.sign, { concurrency: "unbounded" })
      )
      // Longer than three attempts of the ring take.
      const attempts = () => there.server.asked.filter(({ method }) => method === "GET").length > 12
      yield* Effect.repeat(Effect.sleep("20 millis"), { until: attempts }).pipe(Effect.timeout("20 seconds"))
      expect(there.transactions.map(({ contents }) => contents.length)).toEqual([3])
      for (const transaction of there.transactions) there.decide(transaction, "COMPLETED")
      for (const [index, signature] of (yield* Fiber.join(signing)).entries())
        expect(recoverAddress(digests[index] ?? "", signature)).toBe(signer.address)
      expect(there.transactions).toHaveLength(1)
      expect(there.server.asked.filter(({ method }) => method === "POST")).toHaveLength(1)
    })
  )
)
