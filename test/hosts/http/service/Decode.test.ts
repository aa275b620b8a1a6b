import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as EstimateGas from "../../../../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../../src/application/endpoints/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as ExecutePasskey from "../../../../src/application/endpoints/operations/ExecutePasskey.js"
import * as PasskeyHash from "../../../../src/application/endpoints/operations/PasskeyHash.js"
import * as CreateWallets from "../../../../src/application/endpoints/wallets/CreateWallets.js"
import * as PredictWallets from "../../../../src/application/endpoints/wallets/PredictWallets.js"
import { closest } from "../../../../src/domain/primitives/Suggestion.js"
import * as Decode from "../../../../src/hosts/http/service/Decode.js"

const problemOf = <A, I>(schema: Schema.Codec<A, I>, value: unknown) =>
  Result.match(Decode.decoder(schema)(value), {
    onSuccess: () => null,
    onFailure: ({ code, details, message }) => ({
      code,
      message,
      details: details.map(({ message, path }) => `${path}: ${message}`)
    })
  })

const address = `0x${"ab".repeat(20)}`
const settings = { rpc: "http://x", entryPoint: address, signer: { clientId: "c", versionId: "1" } }
const operation = { wallet: address, walletCustody: 1, to: address, funcSignature: "f()" }
const execute = (change: object, change2: object = {}) =>
  problemOf(ExecuteOperations.Request, {
    operations: [{ ...operation, ...change }],
    settings: { ...settings, ...change2 }
  })

const signed = { encodedUserOp: "0x", userOpHash: `0x${"ab".repeat(32)}`, walletCustody: 0 }
const assertion = { signature: "", authenticatorData: "", clientDataJSON: "" }
const sent = (endpoint: keyof typeof requests, op: object) => {
  const { walletCustody: _, ...passkey } = op as { walletCustody?: number }
  const element = endpoint === "executePasskey" ? passkey : op
  return problemOf(requests[endpoint] as Schema.Codec<unknown, unknown>, { operations: [element], settings })
    ?.details
}
const requests = {
  estimateGas: EstimateGas.Request,
  executeEncoded: ExecuteEncoded.Request,
  executePasskey: ExecutePasskey.Request,
  passkeyHash: PasskeyHash.Request
}

describe("decode failures", () => {
  it("decoding accepts a valid request", () => {
    expect(execute({})).toBeNull()
  })

  it("a paymaster's context has at most 4,096 bytes of UTF-8 and 4 levels", () => {
    const context = (paymasterContext: object) => execute({}, { paymasterContext })
    const refused = {
      code: "invalid_request",
      message: "invalid request",
      details: ["settings.paymasterContext: expected an object of at most 4096 bytes and 4 levels"]
    }
    const sized = (bytes: number) => ({ a: "é".repeat((bytes - 8) / 2) })
    expect(context({ a: [{ b: [1.5, null, true] }] })).toBeNull()
    expect(context({ a: [{ b: [[]] }] })).toEqual(refused)
    expect(context(sized(4_096))).toBeNull()
    expect(context(sized(4_098))).toEqual(refused)
    expect(context([])).toEqual(refused)
  })

  it("failures name each place and the expected value", () => {
    expect(execute({ to: 7, funcSignature: null, funcParams: {}, value: 1.5, dependsOn: 0.5 })).toEqual({
      code: "invalid_function_signature",
      message: "invalid function signature",
      details: [
        "operations[0].to: expected a string, got a number",
        "operations[0].funcSignature: expected a string, got null",
        "operations[0].funcParams: expected an array, got an object",
        "operations[0].value: expected a string, got a number",
        "operations[0].dependsOn: expected an integer, got 0.5"
      ]
    })
  })

  it("failures name a missing field", () => {
    expect(problemOf(ExecuteOperations.Request, { operations: [{}], settings: {} })?.details).toEqual([
      "operations[0].walletCustody: operations[0].walletCustody is required",
      "operations[0].to: operations[0].to is required",
      "operations[0].funcSignature: operations[0].funcSignature is required",
      "settings.entryPoint: settings.entryPoint is required",
      "settings.signer: settings.signer is required"
    ])
  })

  it("failures use the words of the domain where it has some", () => {
    expect(execute({ to: "0x12" })?.details).toEqual([
      "operations[0].to: expected an address: 0x and 40 hex digits"
    ])
    expect(execute({ value: "-1" })?.details).toEqual([
      'operations[0].value: expected a non-negative integer as a decimal or 0x-hex string, got "-1"'
    ])
    expect(execute({}, { percentTxGasOvershoot: "1e3" })?.details).toEqual([
      "settings.percentTxGasOvershoot: expected a percentage from 0 to 1000 with at most four decimals"
    ])
    expect(execute({ validUnitl: -1 })?.details).toEqual([
      "operations[0].validUnitl: expected Unix seconds and no milliseconds: an integer from 0 to 7289654399 (the end of the year 2200), got -1"
    ])
  })

  const outOfTime =
    "expected Unix seconds and no milliseconds: an integer from 0 to 7289654399 (the end of the year 2200)"
  it.each(["validAfter", "validUnitl"])("decoding rejects %s in milliseconds in every endpoint", (name) => {
    for (const time of [7_289_654_400, 1_790_000_000_000, 2 ** 48 - 1, 1e21]) {
      const told = (path: string) => [`operations[0].${path}${name}: ${outOfTime}, got ${time}`]
      expect(execute({ [name]: time })?.details).toEqual(told(""))
      expect(sent("executeEncoded", { ...signed, [name]: time })).toEqual(told(""))
      expect(sent("estimateGas", { ...operation, [name]: time })).toEqual(told(""))
      expect(sent("passkeyHash", { ...operation, [name]: time })).toEqual(told(""))
      const validationData = { ...assertion, [name]: time }
      expect(sent("executePasskey", { ...signed, validationData })).toEqual(told("validationData."))
    }
    for (const time of [0, 1_790_000_000, 7_289_654_399]) expect(execute({ [name]: time })).toBeNull()
  })

  it("an unknown field names the header that replaces it", () => {
    expect(execute({}, { metadata: {} })?.details).toEqual([
      "settings.metadata: unknown field; a write takes it as the header Request-Metadata"
    ])
    expect(execute({}, { constructor: 1 })?.details).toEqual(["settings.constructor: unknown field"])
  })

  it("an unknown field gets the nearest known name", () => {
    expect(execute({ validUntil: 1 })).toEqual({
      code: "unknown_field",
      message: "unknown field",
      details: ["operations[0].validUntil: unknown field; did you mean validUnitl?"]
    })
    expect(execute({}, { Factory: address })?.details).toEqual([
      "settings.Factory: unknown field; did you mean factory?"
    ])
    expect(execute({ somethingElse: 1 })?.details).toEqual(["operations[0].somethingElse: unknown field"])
  })

  it.each([
    [6, "6"],
    [-1, "-1"],
    [1.5, "1.5"],
    ["1", 'the text "1"'],
    [null, "null"],
    [{}, "an object"],
    [[], "an array"],
    [true, "true"],
    [2 ** 53, "9007199254740992"]
  ] as const)(
    "have the code of the value that failed, and say what it is: custody %j",
    (walletCustody, shown) => {
      const expected = { code: "invalid_wallet_custody_type", message: "invalid wallet custody type" }
      expect(execute({ walletCustody })).toMatchObject({
        ...expected,
        details: [`operations[0].walletCustody: expected an integer from 0 to 5, got ${shown}`]
      })
      expect(execute({ walletCustody, unknown: 1, to: 1 })).toMatchObject(expected)
    }
  )

  it("decoding rejects custody 0 where a request needs a wallet's real custody", () => {
    const problem = problemOf(PredictWallets.Request, {
      accounts: [{ salt: "a", walletCustody: 0 }],
      settings: { factory: address, beaconAdminAddress: address, beaconAdminCreationCode: "0x00" }
    })
    expect(problem?.message).toBe("invalid wallet custody type")
  })

  it("failures concern the union member closest to the value", () => {
    const create = (signers: unknown) =>
      problemOf(CreateWallets.Request, { accounts: [{ walletCustody: 3, signers }], settings })?.details
    expect(create([{ clientId: "a", versonId: "1" }])).toEqual([
      "accounts[0].signers[0].versonId: unknown field; did you mean versionId?"
    ])
    expect(create([5])).toEqual(["accounts[0].signers[0]: expected a string or an object, got a number"])
  })

  it("failures never repeat a value, and truncate names", () => {
    const secret = "correct horse battery staple"
    const long = "n".repeat(100_000)
    const problem = execute(
      { to: secret, value: secret, walletCustody: secret, [long]: secret },
      { entryPoint: secret, percentTxGasOvershoot: secret, signer: { clientId: "c", versionId: [secret] } }
    )
    expect(JSON.stringify(problem)).not.toContain(secret)
    expect(JSON.stringify(problem).length).toBeLessThan(2_000)
  })

  it("failures cover at most 32 places", () => {
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, index]))
    expect(execute(many)?.details).toHaveLength(32)
  })

  it("a body of the wrong type gets the expected type", () => {
    for (const [value, kind] of [
      [[], "an array"],
      ["x", "a string"],
      [null, "null"],
      [3, "a number"]
    ])
      expect(problemOf(ExecuteOperations.Request, value)?.details).toEqual([
        `: expected an object, got ${kind}`
      ])
  })
})

describe("suggestions", () => {
  it("suggestions allow two slips in a long name, one in a short one", () => {
    const names = ["walletCustody", "to", "value", "validUnitl", "validAfter"]
    expect(closest("walletcustody", names)).toBe("walletCustody")
    expect(closest("walletCustdy", names)).toBe("walletCustody")
    expect(closest("vaule", names)).toBe("value")
    expect(closest("tto", names)).toBe("to")
    expect(closest("from", names)).toBeNull()
    expect(closest("x".repeat(41), names)).toBeNull()
    expect(closest("value", [])).toBeNull()
  })
})
