import { globSync } from "node:fs"
import { Result, Schema } from "effect"
import { expect, it } from "vitest"
import * as CheckWallets from "../../../src/application/endpoints/wallets/CheckWallets.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import { address } from "../../support/journal/Make.js"

const words = ["NaN", "Infinity", "-Infinity"]

/** The requests, queries and answers of all use cases. */
const schemas = await Promise.all(
  globSync("src/application/endpoints/**/*.ts").map(async (file) => {
    const members: Readonly<Record<string, unknown>> = await import(`../../../${file}`)
    return Object.entries(members).flatMap(([name, member]) =>
      Schema.isSchema(member) ? [[`${name} of ${file}`, member] as const] : []
    )
  })
).then((each) => each.flat())

it("use cases have schemas of their input and output", () => {
  expect(schemas.length).toBeGreaterThan(60)
})

it.each(schemas)("%s has no words instead of numbers", (_, schema) => {
  const shown = JSON.stringify(Schema.toJsonSchemaDocument(schema))
  for (const word of words) expect(shown).not.toContain(`"${word}"`)
})

it("no word is the number of a custody, nor a percentage", () => {
  const check = Schema.decodeUnknownResult(Schema.toCodecJson(CheckWallets.Request))
  const percent = Schema.decodeUnknownResult(Schema.toCodecJson(Percent.schema))
  const asked = (walletCustody: unknown) => ({
    accounts: [{ salt: "s", walletCustody }],
    settings: { factory: address(1) }
  })
  expect(Result.isSuccess(check(asked(1)))).toBe(true)
  expect(Result.isSuccess(percent(1))).toBe(true)
  for (const word of [...words, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(Result.isFailure(check(asked(word)))).toBe(true)
    expect(Result.isFailure(percent(word))).toBe(true)
  }
})
