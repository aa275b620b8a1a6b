import * as Result from "effect/Result"
import type { Hex } from "../primitives/Hex.js"
import * as P256 from "./P256.js"

/**
 * A COSE_Key (RFC 9052, section 7) of a P-256 key in CBOR (RFC 8949), as authenticators write it into their
 * attestations. Read is one map of definite length, of integers, byte strings and booleans, each in its shortest form,
 * no label twice; other members are passed over.
 */

const [unsigned, negative, byteString, map] = [0, 1, 2, 5] as const
const [falseByte, trueByte] = [0xf4, 0xf5] as const

const [keyType, algorithm, curve, xCoordinate, yCoordinate] = [1, 3, -1, -2, -3] as const
const [ec2, es256, p256] = [2, -7, 1] as const

/** A member's value: an integer, hex digits of bytes, or a boolean. */
type Value = number | string | boolean

interface Item<A> {
  readonly value: A
  /** The following digits. */
  readonly rest: string
}

interface Head {
  readonly major: number
  readonly argument: number
  readonly rest: string
}

/**
 * Following bytes of the argument, and the least value of that size, by the low five bits from 24 on: no key has integers
 * or lengths above 2^32.
 */
const following = new Map([
  [24, { bytes: 1, least: 24 }],
  [25, { bytes: 2, least: 0x100 }],
  [26, { bytes: 4, least: 0x1_0000 }]
])

/** The initial byte and its argument, in the shortest form. */
const head = (digits: string): Head | null => {
  if (digits === "") return null
  const initial = Number.parseInt(digits.slice(0, 2), 16)
  const [major, info] = [initial >> 5, initial & 31]
  if (info < 24) return { major, argument: info, rest: digits.slice(2) }
  const form = following.get(info)
  if (form === undefined) return null
  const end = 2 + 2 * form.bytes
  const argument = Number.parseInt(digits.slice(2, end), 16)
  return digits.length >= end && argument >= form.least ? { major, argument, rest: digits.slice(end) } : null
}

const integer = (digits: string): Item<number> | null => {
  const first = head(digits)
  if (first === null || (first.major !== unsigned && first.major !== negative)) return null
  return { value: first.major === unsigned ? first.argument : -1 - first.argument, rest: first.rest }
}

const value = (digits: string): Item<Value> | null => {
  const initial = Number.parseInt(digits.slice(0, 2), 16)
  if (initial === falseByte || initial === trueByte)
    return { value: initial === trueByte, rest: digits.slice(2) }
  const first = head(digits)
  if (first === null || first.major !== byteString) return integer(digits)
  const end = 2 * first.argument
  return end > first.rest.length ? null : { value: first.rest.slice(0, end), rest: first.rest.slice(end) }
}

/** Longest map that is read: a key needs five members, and others are few. */
const maxMembers = 16

/** The members, if the digits are exactly one map. */
const members = (digits: string): ReadonlyMap<number, Value> | null => {
  const first = head(digits)
  if (first === null || first.major !== map || first.argument > maxMembers) return null
  const found = new Map<number, Value>()
  let rest = first.rest
  for (let count = 0; count < first.argument; count++) {
    const label = integer(rest)
    if (label === null || found.has(label.value)) return null
    const member = value(label.rest)
    if (member === null) return null
    found.set(label.value, member.value)
    rest = member.rest
  }
  return rest === "" ? found : null
}

/**
 * - `malformed`: no COSE_Key of the EC2 kind, or no point of P-256
 * - `otherKind`: a key of another type, curve or algorithm
 */
export type PublicKeyProblem = "malformed" | "otherKind"

/** The key. `y` may be only its sign; the algorithm may be absent, which means ES256. */
export const p256PublicKey = (cbor: Hex): Result.Result<P256.PublicKey, PublicKeyProblem> => {
  const found = members(cbor.slice(2))
  if (found === null) return Result.fail("malformed")
  if (found.get(keyType) !== ec2 || found.get(curve) !== p256 || (found.get(algorithm) ?? es256) !== es256)
    return Result.fail("otherKind")
  const [x, y] = [found.get(xCoordinate), found.get(yCoordinate)]
  if (typeof x !== "string" || x.length !== 64 || (typeof y !== "string" && typeof y !== "boolean"))
    return Result.fail("malformed")
  const key = P256.fromPoint(typeof y === "string" ? `04${x}${y}` : `${y ? "03" : "02"}${x}`)
  return key === null ? Result.fail("malformed") : Result.succeed(key)
}
