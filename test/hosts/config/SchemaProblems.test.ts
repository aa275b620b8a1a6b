import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Address from "../../../src/domain/primitives/Address.js"
import { integer, Name, optional, says, saysInteger, Text } from "../../../src/hosts/config/FileFields.js"
import * as SchemaProblems from "../../../src/hosts/config/SchemaProblems.js"

/** The problems of a value, one per line. */
const told = (schema: Schema.Codec<unknown, unknown>, value: unknown): ReadonlyArray<string> =>
  Result.match(SchemaProblems.decoder(schema)(value), {
    onFailure: SchemaProblems.lines,
    onSuccess: () => []
  })

const Item = Schema.Struct({ name: Name, count: optional(integer(1, 9)) })
const Key = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("file"), path: Text }),
  Schema.Struct({ kind: Schema.Literal("token"), label: Text, slot: optional(integer(0, 3)) })
])

describe("the problems of a value", () => {
  it("problems use the words of the schema, whichever check fails", () => {
    for (const name of [7, "", " a", "a".repeat(129)])
      expect(told(Item, { name })).toEqual(["name: expected 1 to 128 characters without outer white space"])
    const Pair = Schema.Struct({ items: Schema.Array(Item) }).annotate(says('expected {"items": [item]}'))
    for (const value of [{ items: [{ name: "a", count: 0 }] }, { items: [{}] }, { items: [], more: 1 }, 7])
      expect(told(Schema.Struct({ pair: optional(Pair) }), { pair: value })).toEqual([
        'pair: expected {"items": [item]}'
      ])
  })

  it("problems quote a value only where an integer is expected", () => {
    const Wei = Schema.Union([Schema.BigInt, integer(0, 9)]).annotate(saysInteger("wei"))
    const said = (count: unknown) =>
      told(Schema.Struct({ count: integer(1, 9), wei: Wei }), { count, wei: count })
    expect(said(0.5)).toEqual([
      "count: expected an integer from 1 to 9, got 0.5",
      "wei: expected wei, got 0.5"
    ])
    expect(said("5")[0]).toBe('count: expected an integer from 1 to 9, got "5"')
    expect(said({ secret: 1 })[0]).toBe("count: expected an integer from 1 to 9, got an object")
    const secret = "s3cr3t"
    for (const schema of [
      Schema.Boolean,
      Schema.Array(Text),
      Item,
      Key,
      Address.schema,
      Schema.Literals(["a"])
    ])
      for (const value of [secret, { [secret]: secret }, [secret]])
        expect(told(schema, value).join().replaceAll(`${secret}: is not a known field`, "")).not.toContain(
          secret
        )
  })

  it("every problem is named with its place", () => {
    expect(
      told(Schema.Array(Item), [{ name: "a" }, { nam: "b", count: 10 }, 5, { name: "c", colour: 1 }])
    ).toEqual([
      "[1].nam: is not a known field; did you mean name?",
      "[1].name: is missing",
      "[1].count: expected an integer from 1 to 9, got 10",
      "[2]: expected an object",
      "[3].colour: is not a known field"
    ])
    expect(
      told(Schema.Struct({ to: Address.schema, keys: Schema.NonEmptyArray(Text) }), { to: "0x1", keys: [] })
    ).toEqual(["to: expected an address: 0x and 40 hex digits", "keys[0]: is missing"])
    expect(told(Schema.Struct({ to: Address.schema }), { to: 1 })).toEqual(["to: expected string"])
    expect(told(Text, "")).toEqual(["expected a non empty string"])
  })

  it("problems of a union concern its discriminator or the intended member", () => {
    expect(told(Key, {})).toEqual(["kind: is missing"])
    expect(told(Key, { kind: "card" })).toEqual(['kind: expected "file" | "token"'])
    expect(told(Key, "file")).toEqual(["expected an object"])
    expect(told(Key, { kind: "token", label: "", slot: 4 })).toEqual([
      "label: expected a non empty string",
      "slot: expected an integer from 0 to 3, got 4"
    ])
    expect(told(Schema.Literals(["read", "write"]), {})).toEqual(['expected "read" | "write"'])
  })

  it("a field of another union member is not taken for a typo", () => {
    expect(told(Key, { kind: "file", path: "a", label: "b" })).toEqual(["label: is not a known field"])
    expect(told(Key, { kind: "file", path: "a", labl: "b" })).toEqual([
      "labl: is not a known field; did you mean label?"
    ])
  })
})
