import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as MemoryService from "../../support/http/MemoryService.js"
import { envelope, key } from "../../support/http/Service.js"

const scope = Effect.runSync(Scope.make())
let answer: ReturnType<typeof MemoryService.inProcess>
beforeAll(async () => {
  answer = MemoryService.inProcess(await Effect.runPromise(Scope.provide(MemoryService.make, scope)))
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const { beacon, creationCode, factory, rpc, signer, token, validator, wallet } = MemoryService.place
const hash = `0x${"11".repeat(32)}`
const account = { salt: "fields", walletCustody: 1 }
const operation = {
  wallet,
  walletCustody: 1,
  to: token,
  funcSignature: "mint(address,uint256)",
  funcParams: [token, "1"],
  value: "0",
  validAfter: 0,
  validUnitl: 0
}
const encoded = {
  encodedUserOp: "0x",
  userOpHash: hash,
  walletCustody: 1,
  validAfter: 0,
  validUnitl: 0,
  signature: `0x${"11".repeat(65)}`
}
const settings = {
  rpc,
  entryPoint: EntryPoint.canonical["v0.7"],
  signer,
  factory,
  validator,
  beaconAdminAddress: beacon,
  beaconAdminCreationCode: creationCode,
  percentUserOpGasOvershoot: 50,
  percentTxGasOvershoot: 50,
  percentTxGasPriceOvershoot: "20",
  useABI: ["event E(uint256 x)"]
}

/** A request of each endpoint with every field that may appear. */
const requests = {
  "/predict": { accounts: [account], settings },
  "/check": { accounts: [{ ...account, wallet }], settings },
  "/create": { accounts: [{ ...account, wallet }], settings },
  "/execute": { operations: [operation], settings },
  "/estimateGas": { operations: [operation], settings },
  "/executeEncoded": { operations: [encoded], settings },
  "/transactSigner": {
    to: token,
    funcSignature: "f(uint8)",
    funcParams: ["1"],
    value: "1",
    settings: { rpc, signer }
  },
  "/unstuck": { settings: { rpc, signer }, dryRun: true, fillUnknown: false },
  "/read": {
    reads: [{ to: token, funcSignature: "f()", funcParams: [], returnSignature: "bool", from: token }],
    rpc,
    useABI: ["event E(uint256 x)"]
  },
  "/receipt": { txHashes: [hash], rpc, useABI: ["event E(uint256 x)"] },
  "/sign": {
    messages: ["x"],
    format: "rsv",
    hashed: false,
    signer,
    eip712: { address: token, chainId: "137" }
  },
  "/signMessage": {
    wallet,
    walletCustody: 1,
    message: "x",
    proofs: [{ signature: `0x${"11".repeat(65)}` }],
    settings
  },
  "/getSigner": { signer }
} as const
type Path = keyof typeof requests

const change = (value: unknown, steps: ReadonlyArray<string>, by: (old: unknown) => unknown): unknown => {
  const [step, ...rest] = steps
  if (step === undefined) return by(value)
  if (Array.isArray(value))
    return value.map((each, n) => (String(n) === step ? change(each, rest, by) : each))
  return { ...Object(value), [step]: change(Object(value)[step], rest, by) }
}
/** A request with a replaced value at a path; `undefined` removes it. */
const changed = (path: Path, at: string, by: (old: unknown) => unknown): unknown =>
  change(requests[path], at === "" ? [] : at.split(/\[|\]?\.|\]/).filter((step) => step !== ""), by)

const send = async (path: Path, body: unknown) => {
  const given = await Effect.runPromise(
    answer({
      method: "POST",
      target: path,
      headers: { "content-type": "application/json", "x-api-key": key },
      body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body))
    })
  )
  expect(given.text.length, given.text.slice(0, 400)).toBeLessThan(3_000)
  expect(given.text).not.toMatch(/\n\s+at |node_modules|\.ts:|\.js:|Error:/)
  return given
}
const refused = async (path: Path, body: unknown) => {
  const given = await send(path, body)
  expect(given.status, `${path} ${JSON.stringify(body)?.slice(0, 300)}: ${given.text.slice(0, 300)}`).toBe(
    400
  )
  return envelope(given)
}

const text = [null, 7, true, ["x"], { x: 1 }]
const address = [
  ...text,
  "0x",
  "0x12",
  "no",
  `0x${"zz".repeat(20)}`,
  "0x000000000000000000000000000000000000dEAD"
]
const integer = [null, "x", "1", 1.5, true, [1], { x: 1 }, 2 ** 53, -(2 ** 53)]
const malformed = ["", "x", "-1", -1, 1000.0001, "1000.0001", 0.12345, "1e2", "0x10", " 1", "NaN", 1e300]
const percent = [null, true, [], {}, ...malformed]
const list = [null, 7, "x", true, { x: 1 }]
const object = [null, 7, "x", true, []]
const hex = [...text, "", "0xz", "0x1", "11", "x".repeat(50_000)]
const value = [...text, "1.5", "-1", "", "x", "1e18", " 1", "0x", `0x1${"0".repeat(64)}`, "9".repeat(10_000)]
const url = [...text, "", "x", "ftp://127.0.0.1/", "file:///etc/passwd", "http://", "http://a:b@127.0.0.1/"]
const no = undefined

/** Invalid values by path. */
type Fields = Readonly<Record<string, ReadonlyArray<unknown>>>

const signerFields = (at: string): Fields => ({
  [at]: object,
  [`${at}.clientId`]: [...text, no],
  [`${at}.versionId`]: text
})
const settingsFields: Fields = {
  settings: [...object, no],
  "settings.rpc": url,
  "settings.chainId": [...integer, 0, -1],
  "settings.entryPoint": [...address, ""],
  ...signerFields("settings.signer"),
  "settings.factory": [...address, ""],
  "settings.validator": [...address, ""],
  "settings.beaconAdminAddress": [...address, ""],
  "settings.beaconAdminCreationCode": text,
  "settings.percentUserOpGasOvershoot": percent,
  "settings.percentTxGasOvershoot": percent,
  "settings.percentTxGasPriceOvershoot": percent,
  "settings.useABI": list,
  "settings.useABI[0]": [null, 7, true, "x", "event", "event (", { type: "event" }]
}
const selectorFields = (at: string): Fields => ({
  [at]: [...list, no],
  [`${at}[0]`]: object,
  [`${at}[0].salt`]: [...text, "a ", "e\u0301", "s".repeat(257)],
  [`${at}[0].wallet`]: [...text, "0x12", "0x000000000000000000000000000000000000dEAD"]
})
const operationFields: Fields = {
  ...selectorFields("operations"),
  operations: [...list, no, []],
  "operations[0].walletCustody": [...integer, no, -1, 6],
  "operations[0].to": [...address, no, ""],
  "operations[0].funcSignature": [...text, no, "", " ", "f(", "f(uint257)", "event E()", "a".repeat(100_000)],
  "operations[0].funcParams": [...list, [], ["1"]],
  "operations[0].value": value,
  "operations[0].validAfter": [...integer, -1],
  "operations[0].validUnitl": [...integer, -1, 1],
  "operations[0].dependsOn": [...integer, 0, 7, -1, 0.5, [0]],
  "settings.cosigners": [{ clientId: "test" }],
  "settings.cosigners[0]": []
}
const { "accounts[0].wallet": _w, ...bySalt } = selectorFields("accounts")
const { "accounts[0].salt": _s, ...unsalted } = selectorFields("accounts")

const fields: Readonly<Record<Path, Fields>> = {
  "/predict": {
    ...bySalt,
    ...settingsFields,
    "accounts[0].salt": [...text, no, "", "a ", "e\u0301"],
    "accounts[0].walletCustody": [...integer, no, 0, 6],
    "settings.rpc": [],
    "settings.factory": [...address, "", no],
    "settings.beaconAdminAddress": [...address, "", no],
    "settings.beaconAdminCreationCode": [...text, no]
  },
  // Faults of single accounts are reported in their elements.
  "/check": {
    ...unsalted,
    ...settingsFields,
    "accounts[0].salt": text,
    "accounts[0].wallet": text,
    "accounts[0].walletCustody": [null, "1", true, [1], {}, 0]
  },
  "/create": {
    ...selectorFields("accounts"),
    ...settingsFields,
    accounts: [...list, no, []],
    "accounts[0].walletCustody": [...integer, no, -1, 6],
    "accounts[0].passkeyPubKey": [...list, [7], ["!"]],
    "accounts[0].signers": [...list, [7], ["0x12"]],
    "accounts[0].threshold": [...text, "1"],
    "accounts[0].legacyWallet": [null, 7, "true", [], {}],
    "settings.entryPoint": [...address, "", no],
    "settings.signer": [...object, no]
  },
  "/execute": {
    ...operationFields,
    ...settingsFields,
    "settings.entryPoint": [...address, "", no],
    "settings.signer": [...object, no]
  },
  "/estimateGas": { ...operationFields, ...settingsFields, "settings.entryPoint": [...address, "", no] },
  "/executeEncoded": {
    ...settingsFields,
    operations: [...list, no, []],
    "operations[0]": object,
    "operations[0].encodedUserOp": [...hex, no],
    "operations[0].userOpHash": [...hex, no, "0x", `${hash}00`],
    "operations[0].walletCustody": [...integer, no, -1, 6],
    "operations[0].validAfter": [...integer, -1],
    "operations[0].validUnitl": [...integer, -1],
    "operations[0].signature": hex,
    "settings.entryPoint": [...address, "", no]
  },
  "/transactSigner": {
    to: [...address, no, ""],
    value: [...value, String(2n ** 256n)],
    funcSignature: [...text, "f("],
    funcParams: [...list, no, [], ["256"]],
    "settings.signer": [...object, no],
    "settings.percentTxGasOvershoot": percent,
    "settings.percentTxGasPriceOvershoot": percent
  },
  "/unstuck": {
    dryRun: ["yes", 1],
    fillUnknown: ["yes", 1],
    ...signerFields("settings.signer"),
    "settings.signer": [...object, no],
    "settings.percentTxGasPriceOvershoot": percent
  },
  "/read": {
    reads: [...list, no],
    "reads[0]": object,
    "reads[0].to": [...text, no],
    "reads[0].funcSignature": [...text, no],
    "reads[0].funcParams": list,
    "reads[0].returnSignature": [...text, no],
    "reads[0].from": text,
    rpc: url,
    useABI: list,
    "useABI[0]": ["nonsense"]
  },
  "/receipt": {
    txHashes: [...list, no],
    "txHashes[0]": [...hex, "0x", `${hash}00`],
    rpc: url,
    chainId: [...integer, 0, -1, 5],
    useABI: list
  },
  "/sign": {
    messages: [...list, no],
    "messages[0]": [null, 7],
    format: ["RSV", null],
    hashed: ["true", true],
    ...signerFields("signer"),
    signer: [...object, no],
    eip712: [[]],
    "eip712.chainId": [137, "-1", `0x1${"0".repeat(64)}`],
    "eip712.address": ["0x44"]
  },
  "/signMessage": {
    ...settingsFields,
    ...signerFields("settings.signer"),
    wallet: [...text, "0x12"],
    salt: [...text, "a "],
    walletCustody: [...integer, no, -1, 6],
    account: object,
    message: [null, 7, {}, '{"types":'],
    typedData: [null, 7, "x", []],
    proofs: list,
    "proofs[0]": [...object, {}],
    "proofs[0].signature": hex.filter((value) => value !== ""),
    "proofs[0].validationData": object,
    settings: [...object, no]
  },
  "/getSigner": { ...signerFields("signer"), signer: [...object, no] }
}

describe.each(Object.keys(fields) as ReadonlyArray<Path>)("%s", (path) => {
  it("refuses impossible values at every place, and names the place", async () => {
    for (const [at, values] of Object.entries(fields[path]))
      for (const value of values) {
        const { details } = await refused(
          path,
          changed(path, at, () => value)
        )
        const shown = JSON.stringify(value)?.slice(0, 60)
        expect([at, shown, details[0]?.path.startsWith(at)]).toEqual([at, shown, true])
      }
  })

  it("refuses unknown fields at every level", async () => {
    const find = (value: unknown, at: string): ReadonlyArray<string> => {
      if (typeof value !== "object" || value === null) return []
      if (Array.isArray(value)) return value.flatMap((each, n) => find(each, `${at}[${n}]`))
      const inner = Object.entries(value).filter(([name]) => name !== "useABI")
      return [at, ...inner.flatMap(([name, each]) => find(each, at === "" ? name : `${at}.${name}`))]
    }
    for (const at of find(requests[path], ""))
      for (const name of ["unheardOf", "__proto__", "constructor", "toString", "x".repeat(5_000)]) {
        const marked = JSON.stringify(changed(path, at, (old) => ({ ...Object(old), "@@": 1 })))
        const { code, details } = await refused(path, marked.replace('"@@"', JSON.stringify(name)))
        expect(["unknown_field", "invalid_json"]).toContain(code)
        if (name === "unheardOf") expect(details[0]?.path).toBe(at === "" ? name : `${at}.${name}`)
      }
  })
})

it.each<readonly [Path, string, string, string]>([
  ["/execute", "operations[0]", "validUntil", "validUnitl"],
  ["/execute", "operations[0]", "funcParam", "funcParams"],
  ["/create", "accounts[0]", "passkeyPubkey", "passkeyPubKey"],
  ["/check", "settings", "beaconAdminAdress", "beaconAdminAddress"],
  ["/receipt", "", "txHash", "txHashes"],
  ["/getSigner", "signer", "clientID", "clientId"]
])("%s %s.%s: did you mean %s?", async (path, at, name, meant) => {
  const refusal = await refused(
    path,
    changed(path, at, (old) => ({ ...Object(old), [name]: "1" }))
  )
  expect(refusal).toMatchObject({
    code: "unknown_field",
    error: "unknown field",
    details: [{ path: at === "" ? name : `${at}.${name}`, message: expect.stringContaining(meant) }]
  })
  expect(refusal.details).toHaveLength(1)
})

describe("every fault of a request", () => {
  it("all faults are named in one response", async () => {
    const { details } = await refused("/execute", {
      operations: [
        { ...operation, to: "0x12", value: 1 },
        { ...operation, walletCustody: "1" }
      ],
      settings: { ...settings, entryPoint: 7 }
    })
    expect(details.map(({ path }) => path).sort()).toEqual([
      "operations[0].to",
      "operations[0].value",
      "operations[1].walletCustody",
      "settings.entryPoint"
    ])
  })

  it("a missing field is named", async () => {
    const { details } = await refused("/execute", { operations: [{}], settings: {} })
    const required = [
      "settings.entryPoint",
      "settings.signer",
      "operations[0].to",
      "operations[0].walletCustody"
    ]
    expect(details.map(({ message }) => message)).toEqual(
      expect.arrayContaining(required.map((name) => expect.stringContaining(`${name} is required`)))
    )
  })
})

it.each<readonly [Path, string, unknown]>([
  ["/predict", "accounts", account],
  ["/check", "accounts", account],
  ["/create", "accounts", account],
  ["/execute", "operations", operation],
  ["/estimateGas", "operations", operation],
  ["/executeEncoded", "operations", encoded],
  ["/receipt", "txHashes", hash],
  ["/sign", "messages", "x"],
  ["/execute", "operations[0].funcParams", "1"],
  ["/execute", "settings.useABI", "event E()"]
])("%s %s of 257 elements are refused", async (path, at, element) => {
  const { details } = await refused(
    path,
    changed(path, at, () => Array(257).fill(element))
  )
  expect(details[0]).toMatchObject({ path: at, message: expect.stringContaining("256") })
})

it.each<readonly [Path, string, unknown, object]>([
  ["/execute", "operations[0].dependsOn", 0, { message: "an operation cannot depend on itself" }],
  [
    "/estimateGas",
    "operations[0].dependsOn",
    7,
    { message: "there is no other operation on which it could depend" }
  ],
  ["/execute", "settings.cosigners", ["test"], { path: "settings.cosigners[0]" }],
  ["/execute", "settings.cosigners", [{}], { path: "settings.cosigners[0].clientId" }]
])("%s %s of %j is refused in words", async (path, at, value, detail) => {
  const refusal = await refused(
    path,
    changed(path, at, () => value)
  )
  expect(refusal).toMatchObject({ code: "invalid_request", details: [{ path: at, ...detail }] })
})

it.each<Path>(["/execute", "/estimateGas"])(
  "%s refuses a window that ended long ago by its code",
  async (path) => {
    const refusal = await refused(
      path,
      changed(path, "operations[0].validUnitl", () => 1)
    )
    expect(refusal).toMatchObject({ code: "window_over", error: "validity window over" })
  }
)
