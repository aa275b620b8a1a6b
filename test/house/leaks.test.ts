import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Leaks from "../support/Leaks.js"

const key = `0x${"0123456789abcdef".repeat(4)}`
const pem = `-----BEGIN PRIVATE KEY-----\n${"QmFzZTY0".repeat(8)}\n-----END PRIVATE KEY-----\n`
const secrets = { key, pin: "pin-4711", pem }

const found = (what: unknown) => {
  const leaks = Leaks.make()
  leaks.keep("answer", what)
  return leaks.found(secrets)
}

describe("the search for leaks", () => {
  it("the search finds a key in every guise", () => {
    const bytes = Buffer.from(key.slice(2), "hex")
    for (const said of [
      key,
      key.slice(2),
      key.toUpperCase(),
      BigInt(key).toString(),
      `{"a": {"b": "x ${key} y"}}`,
      bytes.toString("base64"),
      bytes.toString("base64url"),
      { deep: { list: [{ key }] } },
      { number: BigInt(key) },
      new Error(`with ${key}`),
      new Error("outer", { cause: new Error(key) }),
      new Map([[key, 1]]),
      bytes.toJSON()
    ])
      expect(found(said), String(said)).toEqual(["key in answer"])
  })

  it("the search finds other secrets plain, escaped, encoded, and a long one by its lines", () => {
    for (const said of [
      "my pin-4711.",
      "PIN-4711",
      Buffer.from("pin-4711").toString("hex"),
      "url?pin=pin-4711"
    ])
      expect(found(said)).toEqual(["pin in answer"])
    for (const said of [JSON.stringify({ pem }), encodeURIComponent(pem), "QmFzZTY0".repeat(8)])
      expect(found(said)).toEqual(["pem in answer"])
  })

  it("the search finds no leak without a secret, and reports only a secret's name", () => {
    for (const said of [
      "",
      "pin-4712",
      Redacted.make(key),
      { pin: Redacted.make("pin-4711") },
      `0x${"ab".repeat(32)}`
    ])
      expect(found(said)).toEqual([])
  })

  it.effect("looks into messages, annotations and causes of the log, and into spans", () => {
    const leaks = Leaks.make()
    return Effect.gen(function* () {
      yield* Effect.logInfo("fine")
      yield* Effect.exit(Effect.withSpan(Effect.void, "fine"))
      expect(leaks.counts()).toEqual({ log: 1, trace: 1 })
      expect(leaks.found(secrets)).toEqual([])
      yield* Effect.annotateLogs(Effect.logDebug("message").pipe(Effect.andThen(Effect.logInfo("a"))), {
        pin: "pin-4711"
      })
      yield* Effect.logError("failed", new Error("boom", { cause: key }))
      yield* Effect.exit(Effect.withSpan(Effect.fail({ _tag: "E", pem }), "failing"))
      expect(leaks.found(secrets)).toEqual(["key in log", "pin in log", "pem in trace"])
    }).pipe(Effect.provide(leaks.layer))
  })

  it.effect("looks into attributes and events of spans", () => {
    const leaks = Leaks.make()
    return Effect.gen(function* () {
      yield* Effect.withSpan(Effect.void, "a", { attributes: { key } })
      yield* Effect.withSpan(Effect.annotateCurrentSpan("pin", "pin-4711"), "b")
      expect(leaks.found(secrets)).toEqual(["key in trace", "pin in trace"])
    }).pipe(Effect.provide(leaks.layer))
  })
})
