import { createHmac } from "node:crypto"
import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Webhook } from "standardwebhooks"
import * as StandardWebhook from "../../../src/domain/crypto/StandardWebhook.js"
import { forAll } from "../generators.js"

const secretOf = (bytes: Uint8Array): string => `whsec_${Buffer.from(bytes).toString("base64")}`
const secret = fc.uint8Array({ minLength: 24, maxLength: 64 }).map(secretOf)

it("signatures are those of the library of Standard Webhooks, for any secret and any text", () => {
  forAll([secret, fc.string({ unit: "grapheme" }), fc.nat(2 ** 31)], (key, body, timestamp) => {
    const own = StandardWebhook.sign(key, { id: "r1_1", timestamp, body })
    expect(own).toBe(new Webhook(key).sign("r1_1", new Date(timestamp * 1_000), body))
  })
})

it("a message has one signature for each secret", () => {
  const [one, two] = [secretOf(new Uint8Array(24).fill(1)), secretOf(new Uint8Array(24).fill(2))]
  const message = { id: "r1_1", timestamp: 7, body: "{}" }
  expect(StandardWebhook.headers([one, two], message)).toEqual({
    "webhook-id": "r1_1",
    "webhook-timestamp": "7",
    "webhook-signature": `${StandardWebhook.sign(one, message)} ${StandardWebhook.sign(two, message)}`
  })
})

it("a malformed secret signs with an empty key", () => {
  const message = { id: "r1_1", timestamp: 7, body: "{}" }
  const empty = createHmac("sha256", "").update("r1_1.7.{}").digest("base64")
  for (const secret of ["whsec_", "whsec_*", "whsec_AAA", ""])
    expect(StandardWebhook.sign(secret, message)).toBe(`v1,${empty}`)
})
