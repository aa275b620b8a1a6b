import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Authenticator from "../../support/custody/Authenticator.js"
import { type DevService, type Envelope, start } from "../../support/http/DevService.js"

/** Every wrong combination of custody and fields over HTTP, with the very words of its refusal. */

let service: DevService
let transactions: number
beforeAll(async () => {
  service = await start()
  transactions = await service.provider.getTransactionCount(service.signer.address)
})
afterAll(async () => {
  expect(await service.provider.getTransactionCount(service.signer.address)).toBe(transactions)
  await service.stop()
})

const create = (account: object, ...others: ReadonlyArray<object>): Promise<Envelope> =>
  service.refused(400, "/create", { accounts: [account, ...others], settings: service.info.settings })

const problems = ({ code, details, error }: Envelope) => ({
  code,
  error,
  details: details.map(({ message, path }) => `${path}: ${message}`)
})

const invalidRequest = (...details: ReadonlyArray<string>) => ({
  code: "invalid_request",
  error: "invalid request",
  details
})

const keys = Array.from({ length: 17 }, () => Authenticator.make().passkey.publicKey)
const spki = Authenticator.encodings.SPKI
const passkeys = keys.map((key) => spki(key).toString("base64"))
const [first = "", second = ""] = passkeys
const addresses = Array.from({ length: 17 }, (_, n) => `0x${String(n + 1).padStart(40, "0")}`)
const [alice = "", bob = ""] = addresses
const zero = `0x${"0".repeat(40)}`
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

/** Of all sets of fields those that this custody does not want, with what is wrong about each. */
const combinations = Object.entries(needs).flatMap(([custody, needed]) =>
  Array.from({ length: 8 }, (_, bits) => fields.filter((_, place) => (bits >> place) % 2 === 1))
    .filter((set) => set.join() !== needed.join())
    .map((set) => ({
      custody: Number(custody),
      set,
      name: set.length === 0 ? "nothing" : set.join(", "),
      details: fields.flatMap((field) => {
        if (set.includes(field) === needed.includes(field)) return []
        const message = set.includes(field)
          ? `custody ${custody} does not use this field`
          : `is required for custody ${custody}`
        return [`accounts[0].${field}: ${message}`]
      })
    }))
)

describe("create", () => {
  it("has 35 wrong combinations of custody and fields", () => {
    expect(combinations).toHaveLength(35)
  })

  it.each(combinations)("of custody $custody with $name is refused", async ({ custody, details, set }) => {
    const account = Object.fromEntries(set.map((field) => [field, given[field]]))
    const refusal = await create({ salt: "a", walletCustody: custody, ...account })
    expect(problems(refusal)).toEqual(invalidRequest(...details))
  })

  it.each(combinations.filter(({ custody }) => custody === 1))(
    "of custody 0, which is 1 here, with $name is refused",
    async ({ details, set }) => {
      const account = Object.fromEntries(set.map((field) => [field, given[field]]))
      expect(problems(await create({ salt: "a", walletCustody: 0, ...account }))).toEqual(
        invalidRequest(...details)
      )
    }
  )

  it.each([-1, 6, 255, 1.5])("of custody %d is refused by its name", async (walletCustody) => {
    expect(problems(await create({ salt: "a", walletCustody }))).toEqual({
      code: "invalid_wallet_custody_type",
      error: "invalid wallet custody type",
      details: [`accounts[0].walletCustody: expected an integer from 0 to 5, got ${walletCustody}`]
    })
  })

  it.each([["1"], [null], [[1]], [true]])("of custody %j is refused by its name", async (walletCustody) => {
    expect(problems(await create({ salt: "a", walletCustody }))).toMatchObject({
      code: "invalid_wallet_custody_type",
      error: "invalid wallet custody type"
    })
  })

  it("without a custody is refused", async () => {
    expect(problems(await create({ salt: "a" })).details).toEqual([
      "accounts[0].walletCustody: accounts[0].walletCustody is required"
    ])
  })

  it("names the account that is wrong", async () => {
    const good = { salt: "good", walletCustody: 1 }
    const refusal = await service.refused(400, "/create", {
      accounts: [good, { salt: "bad", walletCustody: 5 }],
      settings: service.info.settings
    })
    expect(problems(refusal)).toEqual(invalidRequest("accounts[1].passkeyPubKey: is required for custody 5"))
  })
})

describe("passkeyPubKey", () => {
  const x = "11".repeat(32)
  const expected =
    "expected X || Y (64 bytes), 04 || X || Y (65), a compressed point (33), SubjectPublicKeyInfo in DER or a COSE_Key in CBOR"
  const offCurve = (bytes: string) => [Buffer.from(bytes, "hex").toString("base64")]

  it.each([
    ["that is empty", [], "", "expected 1 to 16 passkeys, but there are 0"],
    ["of 17 keys", passkeys, "", "expected 1 to 16 passkeys, but there are 17"],
    ["with one key twice", [first, second, first], "[2]", "entry 0 is the same key"],
    [
      "with one key in two encodings",
      [first, Authenticator.encodings.compressed(keys[0] ?? { x: "", y: "" }).toString("base64url")],
      "[1]",
      "entry 0 is the same key"
    ],
    ["off the curve", offCurve(x + x), "[0]", "the coordinates are of no point of the curve P-256"],
    [
      "off the curve, with its prefix",
      [first, ...offCurve(`04${x}${x}`)],
      "[1]",
      "the coordinates are of no point of the curve P-256"
    ],
    ["of zeros", offCurve("00".repeat(64)), "[0]", "the coordinates are of no point of the curve P-256"],
    [
      "of two halves off the curve",
      [...offCurve(x), ...offCurve(x)],
      "[0]",
      "the coordinates are of no point of the curve P-256"
    ],
    ["of one half", offCurve(x), "[0]", "32 bytes are one coordinate: the only two entries are then X and Y"],
    ["of 63 bytes", offCurve("11".repeat(63)), "[0]", `${expected}, but the entry has 63 bytes`],
    ["that is no base64", ["***"], "[0]", "expected base64 or base64url, without white space"],
    ["with an empty text", [""], "[0]", `${expected}, but the entry has 0 bytes`]
  ] as const)("%s is refused", async (_, passkeyPubKey, place, message) => {
    const { code, details, error } = await create({ salt: "a", walletCustody: 5, passkeyPubKey })
    expect({ code, error }).toEqual({ code: "invalid_request", error: "invalid request" })
    expect(details).toMatchObject([{ path: `accounts[0].passkeyPubKey${place}`, message }])
  })
})

describe("signers", () => {
  it.each([
    ["that are none", [], "", "expected 1 to 16 signers, but there are 0"],
    ["of 17", addresses, "", "expected 1 to 16 signers, but there are 17"],
    ["with one twice", [alice, bob, alice], "", `${alice} is named twice`],
    ["with the zero address", [alice, zero], "", "the zero address cannot sign"],
    ["with a short address", [alice, "0x1234"], "[1]", "expected an address: 0x and 40 hex digits"],
    [
      "with a wrong checksum",
      ["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed".replace("B", "b").replace("aA", "Aa")],
      "[0]",
      "the address is of mixed case and its EIP-55 checksum does not match"
    ],
    ["with a signer twice", [own, own], "", expect.stringMatching(/^0x\w{40} is named twice$/)],
    [
      "with a signer without version and asset",
      [{ clientId: "dev" }],
      "[0]",
      "expected either versionId or assetId, and not both"
    ]
  ] as const)("%s are refused", async (_, signers, place, message) => {
    const { code, details, error } = await create({ salt: "a", walletCustody: 3, signers, threshold: "1" })
    expect({ code, error }).toEqual({ code: "invalid_request", error: "invalid request" })
    expect(details).toMatchObject([{ path: `accounts[0].signers${place}`, message }])
  })

  it("that are no texts and no signers are refused", async () => {
    const { code, details } = await create({
      salt: "a",
      walletCustody: 3,
      signers: [alice, 7],
      threshold: "1"
    })
    expect(code).toBe("invalid_request")
    expect(details).toEqual([
      { path: "accounts[0].signers[1]", message: "expected a string or an object, got a number" }
    ])
  })

  it("a signer and its own address are one signer", async () => {
    const signers = [service.signer.address.toLowerCase(), own]
    expect(problems(await create({ salt: "a", walletCustody: 3, signers, threshold: "2" }))).toEqual(
      invalidRequest(`accounts[0].signers: ${service.signer.address} is named twice`)
    )
  })

  it.each([
    [{ clientId: "nobody", versionId: "1" }, "invalid client ID: client ID incorrect", "clientId"],
    [{ clientId: "dev", versionId: "99" }, "version not found: HSM version does not exist", "versionId"]
  ])("%j is nobody of this account", async (signer, error, field) => {
    const refusal = await service.refused(401, "/create", {
      accounts: [{ salt: "a", walletCustody: 3, signers: [alice, signer], threshold: "1" }],
      settings: service.info.settings
    })
    expect(refusal.error).toBe(error)
    expect(refusal.details.map(({ path }) => path)).toEqual([`accounts[0].signers[1].${field}`])
  })
})

describe("threshold", () => {
  it.each([
    ["0", "expected 1 to 3, the number of validators"],
    ["4", "expected 1 to 3, the number of validators"],
    ["257", "expected 1 to 3, the number of validators"],
    ["9".repeat(400), "expected 1 to 3, the number of validators"],
    ["", 'expected a decimal integer in a string, got ""'],
    ["02", 'expected a decimal integer in a string, got "02"'],
    ["+2", 'expected a decimal integer in a string, got "+2"'],
    ["2.0", 'expected a decimal integer in a string, got "2.0"'],
    ["0x2", 'expected a decimal integer in a string, got "0x2"'],
    ["-1", 'expected a decimal integer in a string, got "-1"'],
    [" 2", 'expected a decimal integer in a string, got " 2"'],
    ["two", 'expected a decimal integer in a string, got "two"']
  ])("%j of two signers and a passkey is refused", async (threshold, message) => {
    const account = { salt: "a", walletCustody: 4, signers: [alice, bob], passkeyPubKey: [first] }
    expect(problems(await create({ ...account, threshold }))).toEqual(
      invalidRequest(`accounts[0].threshold: ${message}`)
    )
  })

  it("as a number is refused", async () => {
    const { details } = await create({ salt: "a", walletCustody: 3, signers: [alice], threshold: 1 })
    expect(details.map(({ path }) => path)).toEqual(["accounts[0].threshold"])
  })
})

describe("a wallet without a salt", () => {
  const wallet = bob

  it.each([0, 1, 2, 3, 4, 5])("of custody %d that is not deployed wants its salt", async (walletCustody) => {
    expect(problems(await create({ wallet, walletCustody }))).toEqual({
      code: "salt_required",
      error: "salt is required",
      details: ["accounts[0].salt: salt is required: the wallet is not deployed"]
    })
  })

  it("is described wholly or not at all", async () => {
    expect(problems(await create({ wallet, walletCustody: 3, threshold: "1" }))).toEqual(
      invalidRequest("accounts[0].signers: is required for custody 3")
    )
    expect(problems(await create({ wallet, walletCustody: 1, threshold: "1" }))).toEqual(
      invalidRequest("accounts[0].threshold: custody 1 does not use this field")
    )
  })

  it("that is no address is refused", async () => {
    expect(problems(await create({ wallet: "0x12", walletCustody: 1 }))).toEqual(
      invalidRequest("accounts[0].wallet: expected an address: 0x and 40 hex digits")
    )
  })

  it("is one wallet of a request, by its address or by its salt", async () => {
    const [named = ""] = await service.predict("named")
    const refusal = await create({ salt: "named", walletCustody: 1 }, { wallet: named, walletCustody: 1 })
    expect(problems(refusal)).toEqual(invalidRequest("accounts[1].wallet: accounts[0] names the same wallet"))
  })

  it("and without a wallet is nothing", async () => {
    expect(problems(await create({ walletCustody: 1 }))).toEqual({
      code: "salt_required",
      error: "salt is required",
      details: ["accounts[0].salt: salt is required"]
    })
  })
})

describe("a legacy wallet", () => {
  it("of two custodies is one address, and wanted once in a request", async () => {
    const refusal = await create(
      { salt: "a", walletCustody: 1, legacyWallet: true },
      { salt: "a", walletCustody: 5, passkeyPubKey: [first], legacyWallet: true }
    )
    expect(problems(refusal)).toEqual(invalidRequest("accounts[1].salt: accounts[0] names the same wallet"))
  })

  it("keeps to the fields of its custody", async () => {
    const account = { salt: "a", walletCustody: 5, legacyWallet: true }
    expect(problems(await create(account))).toEqual(
      invalidRequest("accounts[0].passkeyPubKey: is required for custody 5")
    )
  })
})

describe.each(["/predict", "/check"])("%s", (path) => {
  const ask = (account: object) =>
    service.refused(400, path, { accounts: [account], settings: service.info.settings })

  it("takes no custody 0", async () => {
    expect(problems(await ask({ salt: "a", walletCustody: 0 }))).toEqual({
      code: "invalid_wallet_custody_type",
      error: "invalid wallet custody type",
      details: ["accounts[0].walletCustody: expected an integer from 1 to 5, got 0"]
    })
  })

  it.each([...fields, "legacyWallet"] as const)("knows no field %s", async (field) => {
    const value = { ...given, legacyWallet: true }[field]
    const refusal = await ask({ salt: "a", walletCustody: 4, [field]: value })
    expect(refusal.code).toBe("unknown_field")
    expect(refusal.details.map(({ path }) => path)).toEqual([`accounts[0].${field}`])
  })
})

it.each([-1, 6, 255, 1.5])(
  "custody %d is refused by predict, and an element's error in check",
  async (walletCustody) => {
    const { settings } = service.info
    const accounts = [{ salt: "a", walletCustody }]
    expect(problems(await service.refused(400, "/predict", { accounts, settings }))).toEqual({
      code: "invalid_wallet_custody_type",
      error: "invalid wallet custody type",
      details: [`accounts[0].walletCustody: expected an integer from 1 to 5, got ${walletCustody}`]
    })
    expect(await service.ok("/check", { accounts, settings })).toEqual([
      { exists: false, wallet: "", salt: "a", error: "invalid wallet custody type" }
    ])
  }
)

it("predict and check know a wallet of every custody", async () => {
  const accounts = [1, 2, 3, 4, 5].map((walletCustody) => ({ salt: "known", walletCustody }))
  const { settings } = service.info
  const predicted = await service.ok<ReadonlyArray<{ wallet: string }>>("/predict", { accounts, settings })
  expect(new Set(predicted.map(({ wallet }) => wallet)).size).toBe(5)
  expect(await service.ok("/check", { accounts, settings })).toEqual(
    predicted.map(({ wallet }) => ({ exists: false, wallet, salt: "known", error: null }))
  )
})
