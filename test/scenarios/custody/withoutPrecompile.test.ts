import { id, Wallet } from "ethers"
import { describe, expect, it } from "vitest"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { startStack } from "../../support/stack/Stack.js"
import { assertion, configOf, ecdsa, indexIn } from "../../support/suite/Keys.js"
import { mixedProof } from "../../support/suite/Layouts.js"
import { use } from "../../support/Use.js"

/** Before Osaka, 0x100 has no precompile: wallets verify P-256 in Solidity. */
const stack = use(() => startStack({ anvil: ["--hardfork", "prague"] }))

const alice = new Wallet(id("alice"))
const [phone, tablet] = [Authenticator.make(), Authenticator.make()]
const passkeyPubKey = [phone, tablet].map(({ spki }) => spki.toString("base64"))

describe("on a chain without the P-256 precompile", () => {
  it("a passkey wallet without a balance executes within its estimated gas", async () => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await journey.createdPoor({ salt: "plain", walletCustody: 5, passkeyPubKey })
    const to = Journey.recipient()
    const op = await journey.hashed(journey.transfer(wallet, to), journey.sponsored)
    const answer = await stack.ask(journey.executePasskey(op, tablet.get(op.signingHash), journey.sponsored))
    await journey.transferred(answer, wallet, to)
    expect(answer.gasUsed).toBeGreaterThan(300_000)
  })

  it("signers and passkeys execute together", async () => {
    const journey = Journey.make(stack, "v0.7")
    const config = configOf(4, [alice], [phone.passkey, tablet.passkey], 3)
    const wallet = await journey.created({
      salt: "plain mix",
      walletCustody: 4,
      signers: [alice.address],
      passkeyPubKey,
      threshold: "3"
    })
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to))
    const hash = op.signingHash
    const parts = [phone, tablet].map(({ passkey }) =>
      assertion(hash, passkey, { index: indexIn(config, passkey) })
    )
    const answer = await stack.ask(journey.executeEncoded(op, mixedProof(ecdsa(hash, alice), parts)))
    await journey.transferred(answer, wallet, to)
  })
})
