import * as Effect from "effect/Effect"
import { id, Wallet } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import { SystemSigners } from "../../../src/application/ports/Signers.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, startStack } from "../../support/stack/Stack.js"
import { configOf } from "../../support/suite/Keys.js"
import { use } from "../../support/Use.js"

const ether = 10n ** 18n
const alice = new Wallet(id("alice"))
const bob = new Wallet(id("bob"))
const phone = Authenticator.make()
const tablet = Authenticator.make()
const base64 = (bytes: Buffer) => bytes.toString("base64")
const own = keyOf(1)
const second = keyOf(6)
const firstRef = { clientId: "dev", versionId: "1" }
const secondRef = { clientId: "dev", versionId: "2" }

const stack = use(startStack)
let journey: Journey.Journey
beforeAll(async () => {
  journey = Journey.make(stack, "v0.7")
})

const passkeys = [base64(tablet.spki), base64(phone.spki)]

/** One account of every custody, with its wallet's expected configuration. */
const accounts = [
  [1, {}, configOf(1, [own])],
  [2, { passkeyPubKey: passkeys }, configOf(2, [own], [phone.passkey, tablet.passkey])],
  [
    3,
    { signers: [bob.address, secondRef, alice.address], threshold: "2" },
    configOf(3, [alice, bob, second], [], 2)
  ],
  [
    4,
    { signers: [firstRef, alice.address.toLowerCase()], passkeyPubKey: passkeys, threshold: "3" },
    configOf(4, [own, alice], [phone.passkey, tablet.passkey], 3)
  ],
  [5, { passkeyPubKey: passkeys }, configOf(5, [], [phone.passkey, tablet.passkey])]
] as const

describe.each(entryPointVersions)("through EntryPoint %s", (version) => {
  it("a wallet of every custody is created in one transaction, configured as requested", async () => {
    const journey = Journey.make(stack, version)
    const wanted = accounts.map(([walletCustody, fields]) => ({
      salt: `all ${version}`,
      walletCustody,
      ...fields
    }))
    const wallets = await Promise.all(
      wanted.map(({ salt, walletCustody }) => journey.addressOf(salt, walletCustody))
    )
    for (const wallet of wallets) await stack.fund(wallet, ether)
    const result = await stack.ask(journey.create(wanted))
    expect(result.status).toBe(1)
    expect(result.txHashes).toHaveLength(1)
    expect(result.returnData.map((element, index) => element[index]?.wallet)).toEqual(wallets)
    for (const [index, wallet] of wallets.entries()) {
      expect(await journey.configurationOf(wallet)).toEqual(accounts[index]?.[2])
      expect(await journey.check({ wallet, walletCustody: accounts[index]?.[0] ?? 1 })).toMatchObject({
        exists: true,
        error: null
      })
    }
    expect((await stack.ask(journey.create(wanted))).status).toBe(2)
  })
})

describe("a wallet that exists", () => {
  it("the same validators in another order and encoding name the same wallet", async () => {
    const salt = "order"
    await journey.created({
      salt,
      walletCustody: 4,
      signers: [alice.address, bob.address],
      passkeyPubKey: passkeys,
      threshold: "2"
    })
    const again = {
      salt,
      walletCustody: 4 as const,
      signers: [bob.address.toLowerCase(), alice.address],
      passkeyPubKey: [phone, tablet].map(({ passkey }) =>
        Authenticator.encodings.compressed(passkey.publicKey).toString("base64url")
      ),
      threshold: "2"
    }
    expect((await stack.ask(journey.create([again]))).status).toBe(2)
  })

  it.each([
    ["another threshold", { threshold: "1" }],
    ["one signer more", { signers: [alice.address, bob.address, own.address] }],
    ["another signer", { signers: [alice.address, own.address] }],
    ["another passkey", { passkeyPubKey: [base64(tablet.spki)] }]
  ])("with %s is 422 account already exists", async (name, change) => {
    const account = {
      salt: `differs by ${name}`,
      walletCustody: 4 as const,
      signers: [alice.address, bob.address],
      passkeyPubKey: [base64(phone.spki)],
      threshold: "2"
    }
    await journey.created(account)
    const failure = await stack.refused(journey.create([{ ...account, ...change }]))
    expect(failure).toMatchObject({ code: "account_exists", message: "account already exists" })
  })
})

describe("a legacy wallet", () => {
  it.each(entryPointVersions)("legacy wallets have their salt's address, on %s", async (version) => {
    const journey = Journey.make(stack, version)
    const salt = `legacy ${version}`
    const wallet = await journey.created({
      salt,
      walletCustody: 5,
      passkeyPubKey: passkeys,
      legacyWallet: true
    })
    expect(wallet).toBe(await journey.addressOf(salt, 3, true))
    expect(wallet).not.toBe(await journey.addressOf(salt, 5))
    expect(await journey.configurationOf(wallet)).toMatchObject({ custody: 5 })
    expect(await journey.check({ wallet })).toMatchObject({ exists: true, wallet, error: null })
    expect(await journey.check({ salt, walletCustody: 5 })).toMatchObject({ exists: false })
  })

  it("a legacy wallet is 422 account already exists for another custody with the same address", async () => {
    await journey.created({ salt: "one legacy", walletCustody: 1, legacyWallet: true })
    const failure = await stack.refused(
      journey.create([{ salt: "one legacy", walletCustody: 5, passkeyPubKey: passkeys, legacyWallet: true }])
    )
    expect(failure.message).toBe("account already exists")
  })
})

describe("custody 0 with a salt", () => {
  it("custody 0 is the operator's default custody, with its fields", async () => {
    const life = stack.begin({ profile: { defaultCustody: 5 } })
    try {
      const wallet = await journey.addressOf("by default", 5)
      await stack.fund(wallet, ether)
      const account = { salt: "by default", walletCustody: 0 as const, passkeyPubKey: passkeys }
      expect(await life.runPromise(journey.create([account]))).toMatchObject({
        status: 1,
        returnData: [{ "0": { wallet } }]
      })
      expect(await journey.configurationOf(wallet)).toMatchObject({ custody: 5 })
    } finally {
      await life.dispose()
    }
  })
})

describe("a wallet named only by its address", () => {
  it("a wallet of any custody named by address exists already, with an empty salt in the answer", async () => {
    const wallet = await journey.created({ salt: "stands", walletCustody: 5, passkeyPubKey: passkeys })
    for (const walletCustody of [0, 5] as const)
      expect(await stack.ask(journey.create([{ wallet, walletCustody }]))).toMatchObject({
        status: 2,
        txHash: "",
        returnData: [{ "0": { salt: "", wallet } }]
      })
  })

  it("an existing wallet named by address gives status 3 together with a new one", async () => {
    const wallet = await journey.created({ salt: "stands beside", walletCustody: 1 })
    await stack.fund(await journey.addressOf("new beside", 1), ether)
    const accounts = [
      { wallet, walletCustody: 0 as const },
      { salt: "new beside", walletCustody: 1 as const }
    ]
    expect((await stack.ask(journey.create(accounts))).status).toBe(3)
  })

  it("an address without a wallet is 400 salt is required, and the whole request is refused", async () => {
    const beside = await journey.addressOf("beside missing", 1)
    await stack.fund(beside, ether)
    const wallet = Address.unsafe(alice.address)
    const failure = await stack.refused(
      journey.create([
        { salt: "beside missing", walletCustody: 1 },
        { wallet, walletCustody: 1 }
      ])
    )
    expect(failure).toMatchObject({
      _tag: "InvalidRequest",
      message: "salt is required",
      details: [{ path: "accounts[1].salt", wallet }]
    })
    expect(await stack.provider.getCode(beside)).toBe("0x")
  })

  it("a wallet of another custody is 400", async () => {
    const wallet = await journey.created({ salt: "custody 5", walletCustody: 5, passkeyPubKey: passkeys })
    expect(await stack.refused(journey.create([{ wallet, walletCustody: 1 }]))).toMatchObject({
      code: "custody_mismatch",
      details: [
        {
          path: "accounts[0].walletCustody",
          message: `wallet ${wallet} has custody 5; send 5 or 0`
        }
      ]
    })
  })

  it("a wallet named by address must match the validators in the request", async () => {
    const account = { walletCustody: 3 as const, signers: [alice.address, bob.address], threshold: "2" }
    const wallet = await journey.created({ ...account, salt: "described" })
    expect((await stack.ask(journey.create([{ ...account, wallet }]))).status).toBe(2)
    const failure = await stack.refused(journey.create([{ ...account, wallet, threshold: "1" }]))
    expect(failure.message).toBe("account already exists")
  })

  it("an address with other code is not supported", async () => {
    const wallet = stack.suite.factory
    const failure = await stack.refused(journey.create([{ wallet, walletCustody: 0 }]))
    expect(failure.message).toBe("wallet not supported")
  })

  it("an address next to a salt must be the wallet of that salt", async () => {
    const predicted = await journey.addressOf("agrees", 1)
    const other = Address.unsafe(alice.address)
    const failure = await stack.refused(journey.create([{ salt: "agrees", wallet: other, walletCustody: 1 }]))
    expect(failure.details).toEqual([
      {
        path: "accounts[0].wallet",
        message: `salt and walletCustody name another wallet: ${predicted}`
      }
    ])
    await stack.fund(predicted, ether)
    const agreeing = { salt: "agrees", wallet: predicted.toLowerCase(), walletCustody: 1 as const }
    expect((await stack.ask(journey.create([agreeing]))).status).toBe(1)
  })
})

describe("a factory that is not this account's", () => {
  const untouched = Effect.die(new Error("a system key was used"))
  const system = { deployer: untouched, serviceEoa: untouched, sponsor: untouched, treasury: untouched }

  it.each(accounts)(
    "is refused for custody %d before any system key is touched",
    async (walletCustody, fields) => {
      const settings = { factory: Address.unsafe(stack.suite.validator) }
      const create = (more: object) =>
        journey
          .create([{ salt: "foreign", walletCustody, ...fields }], more)
          .pipe(Effect.provideService(SystemSigners, system))
      expect(await stack.refused(create(settings))).toMatchObject({
        code: "factory_not_allowed",
        details: [
          { path: "settings.factory", message: "it is not the factory of this account's network profile" }
        ]
      })
      const own = { validator: Address.unsafe(stack.suite.validator) }
      await expect(stack.ask(create(own))).rejects.toThrow("a system key was used")
    }
  )
})
