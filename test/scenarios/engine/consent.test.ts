import { id, Wallet } from "ethers"
import { describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { type Address, errorsOf, useStack } from "../../support/stack/Stack.js"

const own = { clientId: "dev", versionId: "1" }
const alice = new Wallet(id("alice"))
const passkey = () => Authenticator.make().spki.toString("base64")

describe("the consenting key of a wallet", () => {
  const wallets: Record<string, Address.Address> = {}
  const stack = useStack({}, async (stack) => {
    const journey = Journey.make(stack, "v0.7")
    const accounts = {
      ecdsa: { walletCustody: 1 },
      both: { walletCustody: 2, passkeyPubKey: [passkey()] },
      second: { walletCustody: 3, signers: [Journey.second, alice.address], threshold: "1" },
      two: { walletCustody: 3, signers: [own, Journey.second, alice.address], threshold: "2" },
      three: { walletCustody: 3, signers: [own, Journey.second, alice.address], threshold: "3" },
      mixed: { walletCustody: 4, signers: [own, Journey.second], passkeyPubKey: [passkey()], threshold: "2" },
      keyless: { walletCustody: 5, passkeyPubKey: [passkey()] }
    } as const
    for (const [salt, account] of Object.entries(accounts))
      wallets[salt] = await journey.created({ salt, ...account } as Parameters<typeof journey.created>[0])
  })

  const transfer = (name: string, to: string, more: Partial<Operation> = {}): Operation => {
    const { salt: _, ...operation } = stack.transfer("", to)
    return { ...operation, wallet: String(wallets[name]), walletCustody: 0, ...more }
  }

  it("operations of every custody go in one transaction, and may depend on each other", async () => {
    const to = Journey.recipient()
    const operations = [
      transfer("mixed", to, { dependsOn: 1 }),
      transfer("two", to, { dependsOn: 2 }),
      transfer("both", to),
      transfer("ecdsa", to, { dependsOn: 0 })
    ]
    const result = await stack.ask(stack.execute(operations, { cosigners: [Journey.second] }))
    expect(result).toMatchObject({ status: 1, txHashes: [result.txHash] })
    expect(await stack.balanceOf(to)).toBe(4n)
  })

  it("a signer without wallets may submit ops with its cosigner's consent", async () => {
    const to = Journey.recipient()
    const { status, txHash } = await stack.ask(
      stack.execute([transfer("second", to)], { cosigners: [Journey.second] })
    )
    expect(status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(1n)
    expect((await stack.provider.getTransactionReceipt(txHash))?.from).toBe(stack.signer.address)
  })

  it("each operation has its own reason, and the others go", async () => {
    const to = Journey.recipient()
    const names = ["ecdsa", "two", "three", "mixed", "keyless", "second"]
    const result = await stack.ask(stack.execute(names.map((name) => transfer(name, to))))
    expect(result.status).toBe(4)
    expect(errorsOf(result)).toEqual([
      null,
      "threshold not met: have 1 of 2",
      "threshold not met: have 1 of 3",
      "threshold not met: have 1 of 2",
      "signer has no authority over this wallet",
      "threshold not met: have 0 of 1"
    ])
    expect(await stack.balanceOf(to)).toBe(1n)
  })

  it.each([
    ["two", {}, "threshold_not_met", "threshold not met: have 1 of 2"],
    ["three", { cosigners: [Journey.second] }, "threshold_not_met", "threshold not met: have 2 of 3"],
    [
      "keyless",
      { cosigners: [Journey.second] },
      "signer_without_authority",
      "signer has no authority over this wallet"
    ]
  ])("alone, a wallet of %s under %j is 422 %s", async (name, more, code, message) => {
    const before = await stack.nonce()
    const failure = await stack.refused(stack.execute([transfer(name, Journey.recipient())], more))
    expect(failure).toMatchObject({ _tag: "Unprocessable", code, message })
    expect(await stack.nonce()).toBe(before)
  })

  const nowhere = { rpc: "http://127.0.0.1:1" }
  const cosigners = "settings.cosigners"
  it.each([
    [{ ...nowhere, cosigners: [own] }, `${cosigners}[0]`, "settings.signer is the same key"],
    [
      { ...nowhere, cosigners: [Journey.second, Journey.second] },
      `${cosigners}[1]`,
      "settings.cosigners[0] is the same key"
    ],
    [{ ...nowhere, cosigners: Array(16).fill(own) }, cosigners, "expected at most 15 cosigners"],
    [{ cosigners: [{ clientId: "dev", versionId: "9" }] }, `${cosigners}[0].versionId`, expect.any(String)]
  ])("%j is refused, named", async (more, path, message) => {
    const failure = await stack.refused(stack.execute([transfer("two", Journey.recipient())], more))
    expect(failure.details).toEqual([{ path, message }])
  })

  it("a custody that is not the wallet's is 400", async () => {
    const operation = transfer("two", Journey.recipient(), { walletCustody: 1 })
    expect(await stack.refused(stack.execute([operation]))).toMatchObject({
      _tag: "InvalidRequest",
      code: "custody_mismatch",
      details: [{ path: "operations[0].walletCustody" }]
    })
  })
})
