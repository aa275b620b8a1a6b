import { id, Wallet, ZeroAddress } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import * as Address from "../../../src/domain/primitives/Address.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { startStack } from "../../support/stack/Stack.js"
import { use } from "../../support/Use.js"
import { npmInterface } from "../lens/Abis.js"

const stack = use(startStack)
let paymaster: Address.Address
beforeAll(async () => {
  paymaster = Address.unsafe(stack.suite.paymaster)
})

const phone = Authenticator.make()
const alice = new Wallet(id("alice"))

/** Of every custody with the service's signer as a part, and of the one without it. */
const accounts = [
  { walletCustody: 1 },
  { walletCustody: 2, passkeyPubKey: [phone.spki.toString("base64")] },
  {
    walletCustody: 3,
    signers: [{ clientId: "dev", versionId: "1" }, Journey.second, alice.address],
    threshold: "2"
  },
  {
    walletCustody: 4,
    signers: [{ clientId: "dev", versionId: "1" }, Journey.second],
    passkeyPubKey: [phone.spki.toString("base64")],
    threshold: "2"
  },
  { walletCustody: 5, passkeyPubKey: [phone.spki.toString("base64")] }
] as const

describe.each(entryPointVersions)("a wallet that never had a coin, on EntryPoint %s", (version) => {
  const deposit = async (of: string): Promise<bigint> => {
    const abi = npmInterface(version, "EntryPoint")
    const data = abi.encodeFunctionData("balanceOf", [of])
    return BigInt(await stack.provider.call({ to: entryPoints[version], data }))
  }

  it("is created with a sponsor, whatever its custody, and executes with it", async () => {
    const journey = Journey.make(stack, version)
    const wanted = accounts.map((account) => ({ salt: `sponsored ${version}`, ...account }))
    const wallets = await Promise.all(
      wanted.map(({ salt, walletCustody }) => journey.addressOf(salt, walletCustody))
    )
    const before = await deposit(paymaster)
    const created = await stack.ask(journey.create(wanted, { paymaster }))
    expect(created).toMatchObject({ status: 1, txHashes: { length: 1 } })
    for (const wallet of wallets) await stack.mint(wallet, 10n)
    for (const [position, { walletCustody }] of accounts.entries()) {
      const wallet = wallets[position] ?? ZeroAddress
      if (walletCustody === 5) continue
      const to = Journey.recipient()
      const cosigners = walletCustody > 2 ? { cosigners: [Journey.second] } : {}
      const answer = await stack.ask(
        journey.execute(journey.transfer(wallet, to), { paymaster, ...cosigners })
      )
      await journey.transferred(answer, wallet, to)
    }
    for (const wallet of wallets) {
      expect(await stack.provider.getBalance(wallet)).toBe(0n)
      expect(await deposit(wallet)).toBe(0n)
    }
    const receipt = await stack.provider.getTransactionReceipt(created.txHash)
    expect(before - (await deposit(paymaster))).toBeGreaterThan(0n)
    expect(receipt?.status).toBe(1)
  })

  it("lets its owners sign a sponsored estimate, which the sponsor signs when it comes back", async () => {
    const journey = Journey.make(stack, version)
    const salt = `handed out ${version}`
    await stack.ask(journey.create([{ salt, walletCustody: 1 }], { paymaster }))
    const wallet = await journey.addressOf(salt, 1)
    await stack.mint(wallet, 10n)
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to), { paymaster })
    const answer = await stack.ask(journey.executeEncoded(op, undefined, { paymaster }))
    await journey.transferred(answer, wallet, to)
    expect(await stack.provider.getBalance(wallet)).toBe(0n)
  })

  it("sends value with a sponsor as soon as it has only the value", async () => {
    const journey = Journey.make(stack, version)
    const salt = `value ${version}`
    await stack.ask(journey.create([{ salt, walletCustody: 1 }], { paymaster }))
    const wallet = await journey.addressOf(salt, 1)
    const to = Journey.recipient()
    const payment = {
      wallet,
      walletCustody: 1 as const,
      to,
      value: 1_000n,
      funcSignature: "receive()",
      funcParams: []
    }
    const poor = await stack.refused(journey.execute(payment, { paymaster }))
    expect(poor).toMatchObject({
      code: "insufficient_funds",
      details: [{ path: "operations[0]", wallet, required: "1000", available: "0", missing: "1000" }]
    })
    await stack.fund(wallet, 1_000n)
    expect(await stack.ask(journey.execute(payment, { paymaster }))).toMatchObject({ status: 1 })
    expect(await stack.provider.getBalance(to)).toBe(1_000n)
    expect(await stack.provider.getBalance(wallet)).toBe(0n)
  })
})
