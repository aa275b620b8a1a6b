import { describe, expect, it } from "@effect/vitest"
import * as Compact from "../../../src/adapters/sql/Compact.js"

const txHash = "0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f"
const receipt = JSON.stringify({
  txHash,
  eventName: "Transfer",
  operations: [{ salt: "a", walletCustody: 1 }],
  topics: Array.from(
    { length: 4 },
    () => "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
  )
})

// Written once, and kept: what is in databases does not change with the program.
describe.each([
  [
    "deflated",
    JSON.stringify({ hashes: Array.from({ length: 9 }, () => "0x".padEnd(66, "ab")) }),
    "z1:q1bKSCzOSC1WsopWMqhITKIMKumMGjJqCBGGxNYCAA=="
  ],
  ["deflated with the dictionary", receipt, "z2:Q9FOhSSEowBHG96BjugkYhnSAUcEtZudw8iQ2FoA"],
  [
    "deflated with the dictionary, short",
    JSON.stringify({ httpStatus: 200, status: 1, elements: [{ index: 0, success: true }] }),
    "z2:o4oPAQ=="
  ],
  [
    "deflated, with its hashes apart",
    JSON.stringify({ txHash, blockNumber: "117", confirmations: 1, elements: [0] }),
    "z3:AUlij9FHEAbBSC2ogCjpzk27CAuBXJsDRNOeWo5uwUGfQ9Gejqnf0BzWiSrKhY3PGKIbAgA="
  ]
])("a column that an earlier version wrote %s", (_, text, column) => {
  it("is read", () => {
    expect(Compact.read(column)).toBe(text)
  })

  it("is read where it is bytes, and goes over into a database of texts", () => {
    const bytes = Buffer.concat([Buffer.from(column.slice(0, 3)), Buffer.from(column.slice(3), "base64")])
    expect(Compact.read(bytes)).toBe(text)
    expect(Compact.asText(bytes)).toBe(column)
  })
})

it("a column of this version is read as it is", () => {
  expect(Compact.read(receipt)).toBe(receipt)
})
