import { randomBytes } from "node:crypto"
import { describe, expect, it } from "vitest"
import * as WebAuthn from "../../../src/domain/signature/WebAuthn.js"
import { entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { startStack } from "../../support/stack/Stack.js"
import { use } from "../../support/Use.js"

/** The longest client data that the service accepts, in the member order that costs wallets most. */
const costliest = (filled: (length: number) => string) => ({
  json: (challenge: string) => {
    const end = `":${"[".repeat(23)}${"]".repeat(23)}, "challenge":"${challenge}","type":"webauthn.get"}`
    return `{"${filled(WebAuthn.maxClientData - 2 - end.length)}${end}`
  },
  extensions: Buffer.alloc(WebAuthn.maxAuthenticatorData - 37, 0xff)
})
const random = (length: number) => randomBytes(length).toString("base64url").slice(0, length)

describe.each([
  ["with", []],
  ["without", ["--hardfork", "prague"]]
] as const)("%s the P-256 precompile", (_, anvil) => {
  const stack = use(() => startStack({ anvil }))
  const phone = Authenticator.make()
  const tablet = Authenticator.make()

  it.each(entryPointVersions)(
    "an op without a gas buffer pays for the largest assertion on EntryPoint %s",
    async (version) => {
      const journey = Journey.make(stack, version)
      const [salt, passkeyPubKey] = [
        `largest ${version}`,
        [phone, tablet].map(({ spki }) => spki.toString("base64"))
      ]
      const account = { salt, walletCustody: 5 as const, passkeyPubKey }
      const wallet = await journey.created(account)
      const exact = { percentUserOpGasOvershoot: 0n, percentTxGasOvershoot: 0n }
      for (const options of [costliest((length) => "o".repeat(length)), costliest(random)]) {
        const to = Journey.recipient()
        const op = await journey.hashed(journey.transfer(wallet, to), exact)
        const assertion = tablet.get(op.signingHash, options)
        expect(Buffer.from(assertion.clientDataJSON, "base64url")).toHaveLength(WebAuthn.maxClientData)
        expect(Buffer.from(assertion.authenticatorData, "base64url")).toHaveLength(
          WebAuthn.maxAuthenticatorData
        )
        await journey.transferred(await stack.ask(journey.executePasskey(op, assertion)), wallet, to)
      }
    }
  )

  it.each([
    ["clientDataJSON", { extra: { x: "x".repeat(WebAuthn.maxClientData) } }, "expected at most 512 bytes"],
    [
      "authenticatorData",
      { extensions: Buffer.alloc(WebAuthn.maxAuthenticatorData - 36) },
      "expected at most 160 bytes"
    ]
  ])("a longer assertion is refused: %s", async (field, options, message) => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await journey.created({
      salt: `longer ${field}`,
      walletCustody: 5,
      passkeyPubKey: [phone.spki.toString("base64")]
    })
    const op = await journey.hashed(journey.transfer(wallet, Journey.recipient()))
    const failure = await stack.refused(journey.executePasskey(op, phone.get(op.signingHash, options)))
    expect(failure).toMatchObject({
      code: "invalid_request",
      details: [{ path: `operations[0].validationData.${field}`, message }]
    })
  })
})
