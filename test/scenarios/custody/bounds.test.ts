import { id, Wallet } from "ethers"
import { describe, expect, it } from "vitest"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { startStack } from "../../support/stack/Stack.js"
import { assertion, configOf, ecdsa, indexIn } from "../../support/suite/Keys.js"
import { mixedProof } from "../../support/suite/Layouts.js"
import { use } from "../../support/Use.js"

const owners = Array.from({ length: 16 }, (_, n) => new Wallet(id(`owner ${n}`)))
const authenticators = Array.from({ length: 16 }, () => Authenticator.make())
const passkeys = authenticators.map(({ passkey }) => passkey)
const config = configOf(4, owners, passkeys, 32)

const stack = use(startStack)

describe("the largest wallet, 32 of 32", () => {
  it("the largest wallet is created, and executes with all of its validators", async () => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await journey.created({
      salt: `largest`,
      walletCustody: 4,
      signers: owners.map(({ address }) => address),
      passkeyPubKey: authenticators.map(({ spki }) => spki.toString("base64")),
      threshold: "32"
    })
    expect(await journey.configurationOf(wallet)).toEqual(config)
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to))
    const hash = op.signingHash
    const parts = passkeys.map((passkey) => assertion(hash, passkey, { index: indexIn(config, passkey) }))
    const proof = mixedProof(ecdsa(hash, ...owners), parts)
    await journey.transferred(await stack.ask(journey.executeEncoded(op, proof)), wallet, to)
  })
})
