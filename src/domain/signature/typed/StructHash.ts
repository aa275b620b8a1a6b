import * as Result from "effect/Result"
import * as Eip712 from "../../evm/Eip712.js"
import * as Json from "../../json/Json.js"
import * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import { kindOf, quoteInteger } from "../../primitives/InvalidValue.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Words from "../../primitives/Words.js"
import type { Type, TypeTable } from "./TypeTable.js"

/**
 * `hashStruct` of EIP-712 over JSON values. Every value must fit its member's type exactly, so that the signed values are
 * the written ones: none missing, none left over, none rounded or converted.
 */

type Word = Result.Result<string, string>

const loneSurrogate = /\p{Surrogate}/u
const integerText = /^(?:-?(?:0|[1-9][0-9]{0,77})|0x[0-9a-fA-F]{1,64})$/

/** An integer of JSON: a number, exact up to 2^53, or a decimal or 0x-hex string. */
export const integerOf = (value: unknown): bigint | null => {
  if (typeof value === "number")
    return Number.isSafeInteger(value) && !Object.is(value, -0) ? BigInt(value) : null
  return typeof value === "string" && integerText.test(value) ? BigInt(value) : null
}

const misfit = (path: string, why: string): Word => Result.fail(`${path}: ${why}`)

/** A value may be a misplaced secret: shows only the length of a text, and whether it is hex. */
const shapeOf = (value: unknown): string => {
  if (typeof value !== "string") return kindOf(value)
  return /^0x[0-9a-fA-F]*$/.test(value)
    ? `0x and ${value.length - 2} hex digits`
    : `a text of ${value.length} characters`
}

const unlike = (path: string, expected: string, value: unknown): Word =>
  misfit(path, `${expected}, got ${shapeOf(value)}`)

const hashed = (bytes: Hex.Hex): Word => Result.succeed(Words.bytes32(Keccak.hash(bytes)))

const bytesOf = (value: unknown): Hex.Hex | null =>
  typeof value === "string" && Hex.is(value) ? Hex.unsafe(value) : null

/** The words of all, one after the other; the first that is wrong. */
const all = <A>(items: ReadonlyArray<A>, word: (item: A, index: number) => Word): Word => {
  const words: Array<string> = []
  for (const [index, item] of items.entries()) {
    const one = word(item, index)
    if (Result.isFailure(one)) return one
    words.push(one.success)
  }
  return Result.succeed(words.join(""))
}

/** The 32 bytes that stand for a value inside a struct. */
const encode = (table: TypeTable, type: Type, value: unknown, path: string): Word => {
  switch (type.kind) {
    case "bool":
      return typeof value === "boolean"
        ? Result.succeed(Words.bool(value))
        : unlike(path, "expected true or false", value)
    case "address":
      return typeof value === "string"
        ? Result.mapBoth(Address.from(value), {
            onFailure: ({ message }) => `${path}: ${message}, got ${shapeOf(value)}`,
            onSuccess: Words.address
          })
        : unlike(path, "expected an address: 0x and 40 hex digits", value)
    case "string":
      return typeof value === "string" && !loneSurrogate.test(value)
        ? Result.succeed(Words.bytes32(Keccak.hashText(value)))
        : unlike(path, "expected well-formed text", value)
    case "bytes": {
      const bytes = bytesOf(value)
      return bytes === null
        ? unlike(path, "expected 0x and an even number of hex digits", value)
        : hashed(bytes)
    }
    case "fixedBytes": {
      const bytes = bytesOf(value)
      return bytes !== null && Hex.size(bytes) === type.size
        ? Result.succeed(bytes.slice(2).padEnd(64, "0"))
        : unlike(path, `expected ${type.size} bytes: 0x and ${2 * type.size} hex digits`, value)
    }
    case "integer": {
      const integer = integerOf(value)
      const bits = BigInt(type.bits)
      const [least, most] = type.signed
        ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
        : [0n, (1n << bits) - 1n]
      return integer !== null && integer >= least && integer <= most
        ? Result.succeed(Words.uint(integer))
        : misfit(
            path,
            `expected ${type.signed ? "an" : "a non-negative"} integer of ${type.bits} bits, as text when it is above 2^53, got ${quoteInteger(value)}`
          )
    }
    case "array":
      return array(table, type, value, path)
    case "struct":
      return Result.map(hashStruct(table, type.name, value, path), Words.bytes32)
  }
}

const array = (
  table: TypeTable,
  type: Extract<Type, { readonly kind: "array" }>,
  value: unknown,
  path: string
): Word => {
  if (!Array.isArray(value)) return unlike(path, "expected an array", value)
  if (type.length !== null && value.length !== type.length)
    return misfit(path, `expected ${type.length} elements, got ${value.length}`)
  const words = all(value, (each, index) => encode(table, type.of, each, `${path}[${index}]`))
  return Result.isFailure(words) ? words : hashed(Hex.unsafe(`0x${words.success}`))
}

/** The hash of a value of one of the table's structs; `path` names it in what is wrong. */
export const hashStruct = (
  table: TypeTable,
  name: string,
  value: unknown,
  path: string
): Result.Result<Hex.Bytes32, string> => {
  const struct = table.get(name)
  if (struct === undefined) return Result.fail(`${path}: there is no type ${name}`)
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return Result.fail(`${path}: expected an object, got ${shapeOf(value)}`)
  const given = new Map<string, unknown>(Object.entries(value))
  const words = all(struct.members, (member) => {
    const at = `${path}.${member.name}`
    return given.has(member.name)
      ? encode(table, member.type, given.get(member.name), at)
      : misfit(at, "is missing")
  })
  if (Result.isFailure(words)) return Result.fail(words.failure)
  if (given.size !== struct.members.length) {
    const known = new Set(struct.members.map((member) => member.name))
    const extra = [...given.keys()].find((key) => !known.has(key)) ?? ""
    return Result.fail(`${Json.member(path, extra)}: type ${name} has no such member`)
  }
  return Result.succeed(Eip712.hashStruct(struct.typeHash, [words.success]))
}
