import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Authenticator from "../../support/custody/Authenticator.js"
import type { Envelope } from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

/** Every invalid combination of custody and fields over HTTP, with the exact refusal. */

const service = perFile()
let transactions: number
beforeAll(async () => {
  transactions = await service.provider.getTransactionCount(service.signer.address)
})
afterAll(async () => {
  expect(await service.provider.getTransactionCount(service.signer.address)).toBe(transactions)
})

const problems = ({ code, details, error }: Envelope) => ({
  code,
  error,
  details: details.map(({ message, path }) => `${path}: ${message}`)
})
/** Refusal of an account's creation. */
const create = async (...accounts: ReadonlyArray<object>) =>
  problems(await service.refused(400, "/create", { accounts, settings: service.info.settings }))

const invalidRequest = (...details: ReadonlyArray<unknown>) => ({
  code: "invalid_request",
  error: "invalid request",
  details
})
const wrongCustody = (walletCustody: unknown, from = 0) => ({
  code: "invalid_wallet_custody_type",
  error: "invalid wallet custody type",
  details: [`accounts[0].walletCustody: expected an integer from ${from} to 5, got ${walletCustody}`]
})
const saltRequired = (why = "") => ({
  code: "salt_required",
  error: "salt is required",
  details: [`accounts[0].salt: salt is required${why}`]
})

const keys = Array.from({ length: 17 }, () => Authenticator.make().passkey.publicKey)
const passkeys = keys.map((key) => Authenticator.encodings.SPKI(key).toString("base64"))
const [first = "", second = ""] = passkeys
const addresses = Array.from({ length: 17 }, (_, n) => `0x${String(n + 1).padStart(40, "0")}`)
const [alice = "", bob = ""] = addresses
const own = { clientId: "dev", versionId: "1" }

const given = { passkeyPubKey: [first], signers: [alice], threshold: "1" } as const
type Field = keyof typeof given
const fields: ReadonlyArray<Field> = ["passkeyPubKey", "signers", "threshold"]
const needs: Readonly<Record<number, ReadonlyArray<Field>>> = {
  1: [],
  2: ["passkeyPubKey"],
  3: ["signers", "threshold"],
  4: ["passkeyPubKey", "signers", "threshold"],
  5: ["passkeyPubKey"]
}

describe("create", () => {
  it.each([0, 1, 2, 3, 4, 5])("custody %d accepts only its own fields", async (walletCustody) => {
    const custody = walletCustody === 0 ? 1 : walletCustody
    const needed = needs[custody] ?? []
    const sets = Array.from({ length: 8 }, (_, bits) => fields.filter((__, at) => (bits >> at) % 2 === 1))
    const wrong = sets.filter((set) => set.join() !== needed.join())
    expect(wrong).toHaveLength(7)
    for (const set of wrong) {
      const account = Object.fromEntries(set.map((field) => [field, given[field]]))
      const details = fields.flatMap((field) => {
        if (set.includes(field) === needed.includes(field)) return []
        const message = set.includes(field)
          ? `custody ${custody} does not use this field`
          : `is required for custody ${custody}`
        return [`accounts[0].${field}: ${message}`]
      })
      expect(await create({ salt: "a", walletCustody, ...account })).toEqual(invalidRequest(...details))
    }
  })

  it("a refusal names the wrong account, and an unknown custody", async () => {
    expect(await create({ salt: "good", walletCustody: 1 }, { salt: "bad", walletCustody: 5 })).toEqual(
      invalidRequest("accounts[1].passkeyPubKey: is required for custody 5")
    )
    expect(await create({ salt: "a", walletCustody: 6 })).toEqual(wrongCustody(6))
    expect((await create({ salt: "a" })).details).toEqual([
      "accounts[0].walletCustody: accounts[0].walletCustody is required"
    ])
  })
})

describe("a field", () => {
  const x = "11".repeat(32)
  const base64 = (bytes: string) => Buffer.from(bytes, "hex").toString("base64")
  const offCurve = "the coordinates are of no point of the curve P-256"

  it.each<readonly [string, Field, unknown, string, unknown]>([
    ["none", "passkeyPubKey", [], "", "expected 1 to 16 passkeys, but there are 0"],
    ["one twice", "passkeyPubKey", [first, second, first], "[2]", "entry 0 is the same key"],
    ["off the curve", "passkeyPubKey", [base64(x + x)], "[0]", offCurve],
    ["no base64", "passkeyPubKey", ["***"], "[0]", "expected base64 or base64url, without white space"],
    ["one twice", "signers", [alice, bob, alice], "", `${alice} is named twice`],
    ["a short address", "signers", [alice, "0x1234"], "[1]", "expected an address: 0x and 40 hex digits"],
    ["a number", "signers", [alice, 7], "[1]", "expected a string or an object, got a number"],
    [
      "without version and asset",
      "signers",
      [{ clientId: "dev" }],
      "[0]",
      "expected either versionId or assetId, and not both"
    ],
    ["no validator at all", "threshold", "0", "", "expected 1 to 3, the number of validators"],
    ["a leading zero", "threshold", "02", "", 'expected a decimal integer in a string, got "02"']
  ])("%s in %s is refused", async (_, field, value, place, message) => {
    const account = {
      salt: "a",
      walletCustody: 4,
      signers: [alice, bob],
      passkeyPubKey: [first],
      threshold: "1"
    }
    expect(await create({ ...account, [field]: value })).toEqual(
      invalidRequest(`accounts[0].${field}${place}: ${message}`)
    )
  })

  it("a signer and its own address count as one", async () => {
    const signers = [service.signer.address.toLowerCase(), own]
    expect(await create({ salt: "a", walletCustody: 3, signers, threshold: "2" })).toEqual(
      invalidRequest(`accounts[0].signers: ${service.signer.address} is named twice`)
    )
  })

  it.each([
    [{ clientId: "nobody", versionId: "1" }, "invalid client ID: client ID incorrect", "clientId"],
    [{ clientId: "dev", versionId: "99" }, "version not found: HSM version does not exist", "versionId"]
  ])("%j is not a signer of this account", async (signer, error, field) => {
    const refusal = await service.refused(401, "/create", {
      accounts: [{ salt: "a", walletCustody: 3, signers: [alice, signer], threshold: "1" }],
      settings: service.info.settings
    })
    expect([refusal.error, refusal.details[0]?.path]).toEqual([error, `accounts[0].signers[1].${field}`])
  })
})

describe("a wallet without a salt", () => {
  const wallet = bob

  it("a wallet that is not deployed or not named needs its salt under every custody", async () => {
    for (const walletCustody of [0, 1, 2, 3, 4, 5])
      expect(await create({ wallet, walletCustody })).toEqual(saltRequired(": the wallet is not deployed"))
    expect(await create({ walletCustody: 1 })).toEqual(saltRequired())
  })

  it("a wallet without a salt needs all of its fields or none", async () => {
    expect(await create({ wallet, walletCustody: 3, threshold: "1" })).toEqual(
      invalidRequest("accounts[0].signers: is required for custody 3")
    )
    expect(await create({ wallet, walletCustody: 1, threshold: "1" })).toEqual(
      invalidRequest("accounts[0].threshold: custody 1 does not use this field")
    )
  })

  it("a wallet by address, by salt and as a legacy one is one wallet of a request", async () => {
    const [named = ""] = await service.predict("named")
    expect(await create({ salt: "named", walletCustody: 1 }, { wallet: named, walletCustody: 1 })).toEqual(
      invalidRequest("accounts[1].wallet: accounts[0] names the same wallet")
    )
    const legacy = { salt: "a", legacyWallet: true }
    expect(
      await create({ ...legacy, walletCustody: 1 }, { ...legacy, walletCustody: 5, passkeyPubKey: [first] })
    ).toEqual(invalidRequest("accounts[1].salt: accounts[0] names the same wallet"))
  })
})

describe.each(["/predict", "/check"])("%s", (path) => {
  const ask = (account: object) =>
    service.refused(400, path, { accounts: [account], settings: service.info.settings })

  it("custody 0 and fields of a creation are refused", async () => {
    expect(problems(await ask({ salt: "a", walletCustody: 0 }))).toEqual(wrongCustody(0, 1))
    for (const [field, value] of Object.entries({ ...given, legacyWallet: true })) {
      const { code, details } = await ask({ salt: "a", walletCustody: 4, [field]: value })
      expect([code, details[0]?.path]).toEqual(["unknown_field", `accounts[0].${field}`])
    }
  })
})

it("an unknown custody is refused by predict, and an element's error in check", async () => {
  const { settings } = service.info
  for (const walletCustody of [-1, 6, 255, 1.5]) {
    const accounts = [{ salt: "a", walletCustody }]
    expect(problems(await service.refused(400, "/predict", { accounts, settings }))).toEqual(
      wrongCustody(walletCustody, 1)
    )
    expect(await service.ok("/check", { accounts, settings })).toEqual([
      { exists: false, wallet: "", salt: "a", error: "invalid wallet custody type" }
    ])
  }
})
