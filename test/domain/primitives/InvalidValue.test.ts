import { expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { InvalidValue, toText } from "../../../src/domain/primitives/InvalidValue.js"

it("what is no value is refused with the message alone, and what is one stays as it is", () => {
  const refused = new InvalidValue({ type: "Hex", message: "expected another one" })
  expect(toText(Result.fail(refused))).toEqual(Result.fail("expected another one"))
  expect(toText(Result.succeed(7))).toEqual(Result.succeed(7))
})
