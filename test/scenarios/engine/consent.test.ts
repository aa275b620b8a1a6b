import { id, Wallet } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const own = { clientId: "dev", versionId: "1" }
const alice = new Wallet(id("alice"))
const passkey = () => Authenticator.make().spki.toString("base64")

describe("who of the keys at hand consents for a wallet", () => {
  let stack: Stack
  const wallets: Record<string, Address.Address> = {}
  beforeAll(async () => {
    stack = await startStack()
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
  afterAll(() => stack.stop())

  const transfer = (name: string, to: string, dependsOn?: number): Operation => ({
    wallet: String(wallets[name]),
    walletCustody: 0,
    to: Address.unsafe(String(stack.token.target)),
    funcSignature: "transfer(address,uint256)",
    funcParams: [to, "1"],
    ...(dependsOn !== undefined && { dependsOn })
  })
  const execute = (operations: ReadonlyArray<Operation>, more = {}) =>
    ExecuteOperations.run(stack.caller(), { operations, settings: { ...stack.settings, ...more } })

  it("operations of every custody go in one transaction, and may depend on each other", async () => {
    const to = Journey.recipient()
    const result = await stack.ask(
      execute(
        [transfer("mixed", to, 1), transfer("two", to, 2), transfer("both", to), transfer("ecdsa", to, 0)],
        { cosigners: [Journey.second] }
      )
    )
    expect(result.status).toBe(1)
    expect(result.txHashes.length).toBe(1)
    expect(await stack.balanceOf(to)).toBe(4n)
  })

  it("a signer that owns nothing may submit what its cosigner consents to", async () => {
    const to = Journey.recipient()
    const result = await stack.ask(execute([transfer("second", to)], { cosigners: [Journey.second] }))
    expect(result.status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(1n)
    const receipt = await stack.provider.getTransactionReceipt(result.txHash)
    expect(receipt?.from).toBe(stack.signer.address)
  })

  it("each operation has its own reason, and the others go", async () => {
    const to = Journey.recipient()
    const result = await stack.ask(
      execute([
        transfer("ecdsa", to),
        transfer("two", to),
        transfer("three", to),
        transfer("mixed", to),
        transfer("keyless", to),
        transfer("second", to)
      ])
    )
    expect(result.status).toBe(4)
    expect(result.returnData.map((element, index) => element[index]?.error)).toEqual([
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
    const before = await stack.provider.getTransactionCount(stack.signer.address)
    const failure = await stack.refused(execute([transfer(name, Journey.recipient())], more))
    expect(failure).toMatchObject({ _tag: "Unprocessable", code, message })
    expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(before)
  })

  it.each([
    [{ cosigners: [own] }, "settings.cosigners[0]", "settings.signer is the same key"],
    [
      { cosigners: [Journey.second, Journey.second] },
      "settings.cosigners[1]",
      "settings.cosigners[0] is the same key"
    ],
    [{ cosigners: Array(16).fill(own) }, "settings.cosigners", "expected at most 15 cosigners"],
    [
      { cosigners: [{ clientId: "dev" }] },
      "settings.cosigners[0]",
      "expected either versionId or assetId, and not both"
    ]
  ])("%j is 400 before the chain is asked", async (more, path, message) => {
    const failure = await stack.refused(
      execute([transfer("two", Journey.recipient())], { ...more, rpc: "http://127.0.0.1:1" })
    )
    expect(failure).toMatchObject({ _tag: "InvalidRequest", details: [{ path, message }] })
  })

  it("a cosigner that the account has not is 401, named", async () => {
    const failure = await stack.refused(
      execute([transfer("two", Journey.recipient())], { cosigners: [{ clientId: "dev", versionId: "9" }] })
    )
    expect(failure).toMatchObject({
      _tag: "Unauthorized",
      code: "version_not_found",
      details: [{ path: "settings.cosigners[0].versionId" }]
    })
  })

  it("a custody that is not the wallet's is 400", async () => {
    const failure = await stack.refused(
      execute([{ ...transfer("two", Journey.recipient()), walletCustody: 1 }])
    )
    expect(failure).toMatchObject({
      _tag: "InvalidRequest",
      code: "custody_mismatch",
      details: [{ path: "operations[0].walletCustody" }]
    })
  })
})
