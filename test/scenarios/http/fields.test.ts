import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type DevService, type Envelope, start } from "../../support/http/DevService.js"

type Body = { readonly [name: string]: unknown }
type Step = string | number

let service: DevService
let wallet: string
// More requests than an account has in a minute; every stack has the same addresses.
let stacks: ReadonlyArray<DevService> = []
let turn = 0
beforeAll(async () => {
  service = await start()
  stacks = [service, await start(), await start()]
  for (const stack of stacks) wallet = String((await stack.create("fields"))[0])
})
afterAll(async () => {
  for (const stack of stacks) await stack.stop()
})

const hash = `0x${"11".repeat(32)}`
const account = { salt: "fields", walletCustody: 1 }
const operation = () => ({
  ...account,
  wallet,
  to: service.info.token,
  funcSignature: "mint(address,uint256)",
  funcParams: [service.info.token, "1"],
  value: "0",
  validAfter: 0,
  validUnitl: 0
})
const settings = () => ({
  ...service.info.settings,
  percentUserOpGasOvershoot: 50,
  percentTxGasOvershoot: 50,
  percentTxGasPriceOvershoot: "20",
  useABI: ["event E(uint256 x)"]
})

/** A request that names every field of its endpoint that may be named now. */
const requests: Readonly<Record<string, () => Body>> = {
  "/predict": () => ({ accounts: [account], settings: settings() }),
  "/check": () => ({ accounts: [{ ...account, wallet }], settings: settings() }),
  "/create": () => ({ accounts: [{ ...account, wallet }], settings: settings() }),
  "/execute": () => ({ operations: [operation()], settings: settings() }),
  "/estimateGas": () => ({ operations: [operation()], settings: settings() }),
  "/executeEncoded": () => ({
    operations: [
      {
        encodedUserOp: "0x",
        userOpHash: hash,
        walletCustody: 1,
        validAfter: 0,
        validUnitl: 0,
        signature: `0x${"11".repeat(65)}`
      }
    ],
    settings: settings()
  }),
  "/receipt": () => ({ txHashes: [hash], rpc: service.info.rpc, useABI: ["event E(uint256 x)"] }),
  "/getSigner": () => ({ signer: service.info.settings.signer })
}

const isBody = (value: unknown): value is Body =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const change = (value: unknown, steps: ReadonlyArray<Step>, by: (old: unknown) => unknown): unknown => {
  const [step, ...rest] = steps
  if (step === undefined) return by(value)
  if (Array.isArray(value)) return value.map((each, n) => (n === step ? change(each, rest, by) : each))
  return isBody(value) ? { ...value, [step]: change(value[step], rest, by) } : value
}

const pathOf = (steps: ReadonlyArray<Step>): string =>
  steps.map((step, n) => (typeof step === "number" ? `[${step}]` : `${n === 0 ? "" : "."}${step}`)).join("")

/** A body that was written for the first stack. */
const here = (body: unknown, stack: DevService): string =>
  (typeof body === "string" ? body : JSON.stringify(body)).replaceAll(service.info.rpc, stack.info.rpc)

const send = async (endpoint: string, body: unknown) => {
  turn += 1
  const stack = stacks[turn % stacks.length] ?? service
  const answer = await stack.ask<Envelope>(endpoint, here(body, stack))
  expect(answer.text.length, answer.text.slice(0, 400)).toBeLessThan(3_000)
  expect(answer.text).not.toMatch(/\n\s+at |node_modules|\.ts:|\.js:|Error:/)
  return answer
}

/** The request is a 400 that names the path, or a place inside it. */
const refuses = async (endpoint: string, steps: ReadonlyArray<Step>, value: unknown) => {
  const body = change(requests[endpoint]?.(), steps, () => value)
  const { status, text, body: envelope } = await send(endpoint, body)
  const shown = `${endpoint} ${pathOf(steps)} = ${JSON.stringify(value)?.slice(0, 60)}: ${status} ${text.slice(0, 300)}`
  expect(status, shown).toBe(400)
  const path = envelope.details[0]?.path ?? ""
  expect(path.startsWith(pathOf(steps)), shown).toBe(true)
  return envelope
}

const text = [null, 7, true, ["x"], { x: 1 }]
const address = [
  ...text,
  "0x",
  "0x12",
  "no",
  `${"0x"}${"zz".repeat(20)}`,
  "0x000000000000000000000000000000000000dEAD"
]
const integer = [null, "x", "1", 1.5, true, [1], { x: 1 }, 2 ** 53, -(2 ** 53)]
const percent = [
  null,
  true,
  [],
  {},
  "",
  "x",
  "-1",
  -1,
  1000.0001,
  "1000.0001",
  0.12345,
  "1e2",
  "0x10",
  " 1",
  "NaN",
  1e300
]
const list = [null, 7, "x", true, { x: 1 }]
const object = [null, 7, "x", true, []]
const hex = [...text, "", "0xz", "0x1", "11", "x".repeat(50_000)]

type Field = readonly [steps: ReadonlyArray<Step>, values: ReadonlyArray<unknown>]

const signerFields = (at: ReadonlyArray<Step>): ReadonlyArray<Field> => [
  [at, object],
  [
    [...at, "clientId"],
    [...text, undefined]
  ],
  [[...at, "versionId"], text]
]
const settingsFields: ReadonlyArray<Field> = [
  [["settings"], [...object, undefined]],
  [
    ["settings", "rpc"],
    [
      ...text,
      "",
      "x",
      "ftp://127.0.0.1/",
      "file:///etc/passwd",
      "http://",
      "//127.0.0.1",
      "http://a:b@127.0.0.1/"
    ]
  ],
  [
    ["settings", "chainId"],
    [...integer, 0, -1]
  ],
  [
    ["settings", "entryPoint"],
    [...address, ""]
  ],
  ...signerFields(["settings", "signer"]),
  [
    ["settings", "factory"],
    [...address, ""]
  ],
  [
    ["settings", "validator"],
    [...address, ""]
  ],
  [
    ["settings", "beaconAdminAddress"],
    [...address, ""]
  ],
  [["settings", "beaconAdminCreationCode"], text],
  [["settings", "percentUserOpGasOvershoot"], percent],
  [["settings", "percentTxGasOvershoot"], percent],
  [["settings", "percentTxGasPriceOvershoot"], percent],
  [["settings", "useABI"], list],
  [
    ["settings", "useABI", 0],
    [null, 7, true, "x", "event", "event (", { type: "event" }]
  ]
]
const selectorFields = (at: string): ReadonlyArray<Field> => [
  [[at], [...list, undefined]],
  [
    [at, 0],
    [null, 7, "x", true, []]
  ],
  [[at, 0, "salt"], text],
  [[at, 0, "wallet"], text]
]
const operationFields: ReadonlyArray<Field> = [
  ...selectorFields("operations"),
  [["operations"], [[]]],
  [
    ["operations", 0, "salt"],
    ["a ", "e\u0301", "s".repeat(257)]
  ],
  [
    ["operations", 0, "wallet"],
    ["0x12", "0x000000000000000000000000000000000000dEAD"]
  ],
  [
    ["operations", 0, "walletCustody"],
    [...integer, undefined, -1, 6]
  ],
  [
    ["operations", 0, "to"],
    [...address, undefined, ""]
  ],
  [
    ["operations", 0, "funcSignature"],
    [...text, undefined, ""]
  ],
  [["operations", 0, "funcParams"], list],
  [
    ["operations", 0, "value"],
    [...text, "1.5", "-1", "", "x", "1e18", " 1", "0x", `0x1${"0".repeat(64)}`, "9".repeat(10_000)]
  ],
  [
    ["operations", 0, "validAfter"],
    [...integer, -1]
  ],
  [
    ["operations", 0, "validUnitl"],
    [...integer, -1]
  ],
  [["operations", 0, "dependsOn"], [...integer]]
]

const fields: Readonly<Record<string, ReadonlyArray<Field>>> = {
  "/predict": [
    ...selectorFields("accounts").filter(([steps]) => steps[2] !== "wallet"),
    [
      ["accounts", 0, "salt"],
      [undefined, ""]
    ],
    [
      ["accounts", 0, "walletCustody"],
      [...integer, undefined]
    ],
    ...settingsFields.filter(([steps]) => steps[1] !== "rpc"),
    [["settings", "factory"], [undefined]],
    [["settings", "beaconAdminAddress"], [undefined]],
    [["settings", "beaconAdminCreationCode"], [undefined]]
  ],
  "/check": [
    ...selectorFields("accounts"),
    [
      ["accounts", 0, "walletCustody"],
      [null, "1", true, [1], {}]
    ],
    ...settingsFields
  ],
  "/create": [
    ...selectorFields("accounts"),
    [["accounts"], [[]]],
    [["accounts", 0, "salt"], [" a"]],
    [
      ["accounts", 0, "wallet"],
      ["0x12", "0x000000000000000000000000000000000000dEAD"]
    ],
    [
      ["accounts", 0, "walletCustody"],
      [...integer, undefined]
    ],
    [
      ["accounts", 0, "passkeyPubKey"],
      [...list, [7], ["!"]]
    ],
    [
      ["accounts", 0, "signers"],
      [...list, [7], ["0x12"]]
    ],
    [
      ["accounts", 0, "threshold"],
      [...text, "1"]
    ],
    [
      ["accounts", 0, "legacyWallet"],
      [null, 7, "true", [], {}]
    ],
    ...settingsFields,
    ...["entryPoint", "signer"].map((name): Field => [["settings", name], [undefined]])
  ],
  "/execute": [
    ...operationFields,
    ...settingsFields,
    ...["entryPoint", "signer"].map((name): Field => [["settings", name], [undefined]])
  ],
  "/estimateGas": [...operationFields, ...settingsFields, [["settings", "entryPoint"], [undefined]]],
  "/executeEncoded": [
    [["operations"], [...list, undefined, []]],
    [
      ["operations", 0],
      [null, 7, "x", true, []]
    ],
    [
      ["operations", 0, "encodedUserOp"],
      [...hex, undefined]
    ],
    [
      ["operations", 0, "userOpHash"],
      [...hex, undefined, "0x", `${hash}00`]
    ],
    [
      ["operations", 0, "walletCustody"],
      [...integer, undefined, -1, 6]
    ],
    [
      ["operations", 0, "validAfter"],
      [...integer, -1]
    ],
    [
      ["operations", 0, "validUnitl"],
      [...integer, -1]
    ],
    [["operations", 0, "signature"], hex],
    ...settingsFields,
    [["settings", "entryPoint"], [undefined]]
  ],
  "/receipt": [
    [["txHashes"], [...list, undefined]],
    [
      ["txHashes", 0],
      [...hex, "0x", `${hash}00`]
    ],
    [["rpc"], [...text, "", "x", "ftp://127.0.0.1/"]],
    [["chainId"], [...integer, 0, -1, 5]],
    [["useABI"], list]
  ],
  "/getSigner": [...signerFields(["signer"]), [["signer"], [undefined]]]
}

describe.each(Object.keys(fields))("%s", (endpoint) => {
  it.each((fields[endpoint] ?? []).map(([steps, values]) => [pathOf(steps), steps, values] as const))(
    "refuses what %s can not be, by its path",
    async (_, steps, values) => {
      for (const value of values) await refuses(endpoint, steps, value)
    }
  )

  it("refuses a name that it does not know at every level, and names the known one that is meant", async () => {
    const body = requests[endpoint]?.() ?? {}
    const objects: Array<ReadonlyArray<Step>> = [[]]
    const find = (value: unknown, at: ReadonlyArray<Step>): void => {
      if (Array.isArray(value)) for (const [n, each] of value.entries()) find(each, [...at, n])
      else if (isBody(value)) {
        if (at.length > 0) objects.push(at)
        for (const [name, each] of Object.entries(value)) if (name !== "useABI") find(each, [...at, name])
      }
    }
    find(body, [])
    for (const at of objects)
      for (const name of ["unheardOf", "__proto__", "constructor", "toString", "x".repeat(5_000)]) {
        const text = JSON.stringify(change(body, at, (old) => ({ ...(isBody(old) ? old : {}), "@@": 1 })))
        const { body: envelope, status } = await send(endpoint, text.replace('"@@"', JSON.stringify(name)))
        expect(status, `${pathOf(at)} ${name.slice(0, 20)}`).toBe(400)
        expect(["unknown_field", "invalid_json"]).toContain(envelope.code)
        if (name === "unheardOf")
          expect(envelope.details[0]?.path).toBe([pathOf(at), name].filter((part) => part !== "").join("."))
      }
  })

  it("refuses everything that is no object", async () => {
    for (const body of ["[]", "null", "7", '"x"', "true", "[{}]"]) {
      const { body: envelope, status } = await send(endpoint, body)
      expect({ body, status }).toEqual({ body, status: 400 })
      expect(envelope.error).not.toBe("")
    }
  })

  it("refuses what is no JSON", async () => {
    const hostile = [
      "",
      " ",
      "{",
      "{}{}",
      "nul",
      "{'a':1}",
      '{"a":NaN}',
      '{"a":1,}',
      "[".repeat(30_000),
      '{"a":"\u0001"}',
      "\ufeff{}x"
    ]
    for (const body of hostile) {
      const { body: envelope, status } = await send(endpoint, body)
      expect({ code: envelope.code, status }, body.slice(0, 20)).toEqual({
        code: "invalid_json",
        status: 400
      })
    }
  })
})

describe("names that are nearly right", () => {
  it.each([
    ["/execute", ["operations", 0], "validUntil", "validUnitl"],
    ["/execute", ["operations", 0], "funcParam", "funcParams"],
    ["/executeEncoded", ["operations", 0], "validUntil", "validUnitl"],
    ["/create", ["accounts", 0], "passkeyPubkey", "passkeyPubKey"],
    ["/check", ["settings"], "beaconAdminAdress", "beaconAdminAddress"],
    ["/predict", ["settings"], "Factory", "factory"],
    ["/receipt", [], "txHash", "txHashes"],
    ["/getSigner", ["signer"], "clientID", "clientId"]
  ] as const)("%s %j.%s: did you mean %s?", async (endpoint, at, name, meant) => {
    const body = change(requests[endpoint]?.(), at, (old) => ({ ...(isBody(old) ? old : {}), [name]: "1" }))
    const { body: envelope, status } = await send(endpoint, body)
    expect({ code: envelope.code, error: envelope.error, status }).toEqual({
      code: "unknown_field",
      error: "unknown field",
      status: 400
    })
    expect(envelope.details).toHaveLength(1)
    expect(envelope.details[0]?.path).toBe(pathOf([...at, name]))
    expect(envelope.details[0]?.message).toContain(meant)
  })
})

describe("every fault of a request", () => {
  it("is named at once", async () => {
    const { details } = await service.refused(400, "/execute", {
      operations: [
        { ...operation(), to: "0x12", value: 1 },
        { ...operation(), walletCustody: "1" }
      ],
      settings: { ...settings(), entryPoint: 7 }
    })
    expect(details.map(({ path }) => path).sort()).toEqual([
      "operations[0].to",
      "operations[0].value",
      "operations[1].walletCustody",
      "settings.entryPoint"
    ])
  })

  it("that is missing says so by its name", async () => {
    const { details } = await service.refused(400, "/execute", { operations: [{}], settings: {} })
    expect(details.map(({ message }) => message)).toEqual(
      expect.arrayContaining([
        expect.stringContaining("settings.entryPoint is required"),
        expect.stringContaining("settings.signer is required"),
        expect.stringContaining("operations[0].to is required"),
        expect.stringContaining("operations[0].walletCustody is required")
      ])
    )
  })
})

describe("lists", () => {
  it.each([
    ["/predict", ["accounts"], account],
    ["/check", ["accounts"], account],
    ["/create", ["accounts"], account],
    ["/execute", ["operations"], null],
    ["/estimateGas", ["operations"], null],
    ["/executeEncoded", ["operations"], null],
    ["/receipt", ["txHashes"], hash],
    ["/execute", ["operations", 0, "funcParams"], "1"],
    ["/execute", ["settings", "useABI"], "event E()"]
  ] as const)("%s %j of 257 elements are refused", async (endpoint, steps, element) => {
    const body = change(requests[endpoint]?.(), steps, (old) =>
      Array.from({ length: 257 }, () => element ?? (Array.isArray(old) ? old[0] : old))
    )
    const { body: envelope, status } = await send(endpoint, body)
    expect(status).toBe(400)
    expect(envelope.details[0]?.path).toBe(pathOf(steps))
    expect(envelope.details[0]?.message).toContain("256")
  })
})

describe("what the endpoint does not need", () => {
  it("may stand in settings all the same", async () => {
    const { body, status } = await service.ask<ReadonlyArray<{ readonly error: string | null }>>(
      "/predict",
      requests["/predict"]?.()
    )
    expect(status).toBe(200)
    expect(body[0]?.error).toBeNull()
    expect((await service.ask("/check", requests["/check"]?.())).status).toBe(200)
  })
})

describe("what operations say of each other, of time and of keys", () => {
  it.each([
    ["dependsOn", 0, "an operation can not depend on itself"],
    ["dependsOn", 7, "there is no other operation on which it could depend"],
    ["dependsOn", -1, "there is no other operation on which it could depend"]
  ])("%s %d of execute and estimateGas is refused", async (name, value, message) => {
    for (const endpoint of ["/execute", "/estimateGas"]) {
      const { code, details } = await refuses(endpoint, ["operations", 0, name], value)
      expect(code).toBe("invalid_request")
      expect(details).toEqual([{ path: `operations[0].${name}`, message }])
    }
  })

  it.each([0.5, "0", null, [0]])("dependsOn %j is no index", async (value) => {
    const { code, details } = await refuses("/execute", ["operations", 0, "dependsOn"], value)
    expect(code).toBe("invalid_request")
    expect(details.map(({ path }) => path)).toEqual(["operations[0].dependsOn"])
  })

  it("a window that ended long ago is refused by execute and estimateGas", async () => {
    for (const endpoint of ["/execute", "/estimateGas"]) {
      const { code, details, error } = await refuses(endpoint, ["operations", 0, "validUnitl"], 1)
      expect({ code, error }).toEqual({ code: "window_over", error: "validity window over" })
      expect(details.map(({ path }) => path)).toEqual(["operations[0].validUnitl"])
    }
  })

  it.each([
    [{ clientId: "dev" }, "settings.cosigners"],
    [["dev"], "settings.cosigners[0]"],
    [[{ clientId: 1 }], "settings.cosigners[0].clientId"],
    [[{}], "settings.cosigners[0].clientId"]
  ])("cosigners %j are no signers", async (value, path) => {
    const { code, details } = await refuses("/execute", ["settings", "cosigners"], value)
    expect(code).toBe("invalid_request")
    expect(details[0]?.path).toBe(path)
  })
})
