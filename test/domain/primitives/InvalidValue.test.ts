import { expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { InvalidValue, toText } from "../../../src/domain/primitives/InvalidValue.js"

it("what is no value is refused with the message alone, and what is one stays as it is", () => {
  const refused = new InvalidValue({ type: "Hex", message: "expected another one" })
  expect(toText(Either.left(refused))).toEqual(Either.left("expected another one"))
  expect(toText(Either.right(7))).toEqual(Either.right(7))
})
