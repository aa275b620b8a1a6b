import { describe, expect, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import * as Json from "../../../../src/domain/json/Json.js"
import * as Steps from "../../../../src/domain/primitives/Steps.js"
import * as Uint from "../../../../src/domain/primitives/Uint.js"
import * as Encode from "../../../../src/hosts/http/service/Encode.js"

const leaves = {
  text: Schema.String,
  maybe: Schema.NullOr(Schema.String),
  count: Schema.Number,
  flag: Schema.Boolean,
  kind: Schema.NullOr(Schema.Literals(["a", 1, true])),
  amount: Uint.schema.pipe(Schema.check(Schema.makeFilter((value) => value >= 0n))),
  left: Schema.optionalKey(Schema.String)
}
const schemas = {
  leaf: Schema.NullOr(Schema.String),
  object: Schema.Struct(leaves),
  list: Schema.Array(
    Schema.Struct({ ...leaves, inner: Schema.Struct(leaves), items: Schema.Array(Schema.String) })
  ),
  union: Schema.Union([
    Schema.Struct({ a: Schema.String }),
    Schema.Struct({ b: Schema.Array(Schema.Number) })
  ])
}

const written = (schema: Schema.Top, value: unknown) => Steps.finish(Encode.encoder(schema)(value))

describe("an answer", () => {
  it.each(Object.entries<Schema.Codec<unknown, unknown>>(schemas as never))(
    "is written as its schema encodes it (%s)",
    (_, schema) => {
      const encode = Schema.encodeSync(schema)
      fc.assert(
        fc.property(Arbitrary.make(schema), (value) => {
          expect(JSON.parse(Result.getOrThrow(written(schema, value)))).toEqual(
            JSON.parse(Json.print(encode(value)))
          )
        })
      )
    }
  )

  it("that does not fit is refused at its place, whatever stands there", () => {
    const good = { text: "x", maybe: null, count: 1, flag: true, kind: "a", amount: 5n }
    expect(written(schemas.object, good)).toEqual(
      Result.succeed('{"text":"x","maybe":null,"count":1,"flag":true,"kind":"a","amount":"5"}')
    )
    for (const [name, wrong] of [
      ["text", null],
      ["maybe", 1],
      ["count", "1"],
      ["flag", 0],
      ["kind", "b"],
      ["left", undefined]
    ] as const)
      expect(Result.getOrNull(Result.flip(written(schemas.object, { ...good, [name]: wrong })))).toMatch(
        new RegExp(`^${name}: expected `)
      )
    const { text, ...without } = good
    expect(written(schemas.object, without)).toEqual(Result.fail("text: is missing"))
    expect(Result.isFailure(written(schemas.object, []))).toBe(true)
    const inner = { ...good, inner: { ...good, flag: "no" }, items: [] }
    expect(written(schemas.list, [inner])).toEqual(
      Result.fail("[0].inner.flag: expected true or false, got a string")
    )
    expect(written(schemas.list, [{ ...good, inner: good, items: ["a", 1] }])).toEqual(
      Result.fail("[0].items[1]: expected a string, got a number")
    )
  })

  it("has no number that JSON has not: NaN and the infinities are null, as JSON.stringify has them", () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(written(Schema.Number, value)).toEqual(Result.succeed("null"))
  })
})
