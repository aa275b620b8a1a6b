import { expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { InvalidValue, toText } from "../../../src/domain/primitives/InvalidValue.js"

it("toText keeps only the message of an invalid value, and a valid value unchanged", () => {
  const refused = new InvalidValue({ type: "Hex", message: "expected another one" })
  expect(toText(Result.fail(refused))).toEqual(Result.fail("expected another one"))
  expect(toText(Result.succeed(7))).toEqual(Result.succeed(7))
})
