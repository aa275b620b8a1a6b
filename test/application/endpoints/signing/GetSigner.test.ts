import { describe, expect } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { computeAddress, SigningKey } from "ethers"
import * as GetSigner from "../../../../src/application/endpoints/signing/GetSigner.js"
import type { KeyProvider } from "../../../../src/application/ports/KeyProvider.js"
import { Signers } from "../../../../src/application/ports/Signers.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Parties from "../../../support/Parties.js"
import * as Scripted from "../../../support/signing/Scripted.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

const privateKey = `0x${"ab".repeat(32)}`
const address = Address.unsafe(computeAddress(privateKey))

const caller = Parties.caller("request", Scripted.account)

const ask = (
  provider: KeyProvider,
  options: Parameters<typeof Scripted.ring>[1] = {},
  signer: GetSigner.Request["signer"] = Scripted.ref
) =>
  Effect.flatMap(Scripted.ring(provider, options), ({ signers }) =>
    Effect.provideService(GetSigner.run(caller, { signer }), Signers, signers)
  )

describe("getSigner", () => {
  for (const type of ["HSM", "MPC", "KMS", "PRIVATE_KEY"] as const)
    test(`returns address, public key and type of a key of type ${type}`, function* () {
      const answer = yield* ask(Scripted.make({ privateKey, type }))
      expect(answer).toEqual({
        address,
        publicKey: new SigningKey(privateKey).publicKey.slice(2),
        type
      })
      expect(yield* Schema.encodeEffect(GetSigner.Response)(answer)).toEqual(answer)
    })

  const refusals = [
    [
      { clientId: "nobody", versionId: "1" },
      "client_id_incorrect",
      "invalid client ID: client ID incorrect",
      "signer.clientId"
    ],
    [
      { clientId: "client", versionId: "2" },
      "version_not_found",
      "version not found: HSM version does not exist",
      "signer.versionId"
    ],
    [
      { clientId: "client", assetId: "1" },
      "asset_not_supported",
      "asset not supported: MPC asset unavailable",
      "signer.assetId"
    ]
  ] as const
  for (const [signer, code, message, path] of refusals)
    test(`refuses ${JSON.stringify(signer)}: ${message}`, function* () {
      const failure = yield* Effect.flip(ask(Scripted.make({ privateKey }), {}, signer))
      expect(failure).toMatchObject({ _tag: "Unauthorized", code, message, details: [{ path }] })
    })

  test("answers signer unavailable while the provider is down, without the provider's message", function* () {
    const provider = Scripted.make({
      privateKey,
      publicKey: () => Scripted.failing("unavailable", "ECONNREFUSED 10.0.0.7")
    })
    const asking = yield* Effect.forkChild(Effect.flip(ask(provider, { address })))
    yield* Time.adjust("10 seconds")
    yield* Time.adjust("10 seconds")
    expect(yield* Fiber.join(asking)).toMatchObject({
      _tag: "Unprocessable",
      code: "signer_unavailable",
      message: "signer unavailable",
      details: [{ path: "signer", message: "the key provider did not answer" }]
    })
  })
})
