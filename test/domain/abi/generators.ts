import { getAddress } from "ethers/address"
import * as fc from "fast-check"
import type { Json } from "../../../src/domain/abi/Values.js"

/** One value in the three forms that the tests compare. */
export interface Sample {
  /** As callers write it inside of JSON. */
  readonly given: Json
  /** As ethers takes it. */
  readonly oracle: unknown
  /** As answers show it. */
  readonly shown: Json
}

/** A canonical type, its other spelling, and values. */
export interface Typed {
  readonly canonical: string
  readonly written: string
  readonly value: fc.Arbitrary<Sample>
}

const elementary = (
  canonical: string,
  value: fc.Arbitrary<Sample>,
  ...aliases: ReadonlyArray<string>
): fc.Arbitrary<Typed> =>
  fc.constantFrom(canonical, ...aliases).map((written) => ({ canonical, written, value }))

const bits = fc.integer({ min: 1, max: 32 }).map((n) => 8 * n)

const hexOf = (size: { readonly min: number; readonly max: number }): fc.Arbitrary<string> =>
  fc
    .uint8Array({ minLength: size.min, maxLength: size.max })
    .map((bytes) => `0x${Buffer.from(bytes).toString("hex")}`)

const same = (text: fc.Arbitrary<string>): fc.Arbitrary<Sample> =>
  text.map((value) => ({ given: value, oracle: value, shown: value }))

const written = (value: bigint): fc.Arbitrary<string> =>
  value < 0n
    ? fc.constant(value.toString())
    : fc.constantFrom(value.toString(), `0x${value.toString(16)}`, `0x${value.toString(16).toUpperCase()}`)

const integerSample = (min: bigint, max: bigint): fc.Arbitrary<Sample> =>
  fc
    .oneof(fc.constantFrom(min, max, 0n), fc.bigInt({ min, max }))
    .chain((value) => written(value).map((given) => ({ given, oracle: value, shown: value.toString() })))

const uint = bits.chain((n) =>
  elementary(`uint${n}`, integerSample(0n, (1n << BigInt(n)) - 1n), ...(n === 256 ? ["uint"] : []))
)

const int = bits.chain((n) => {
  const limit = 1n << BigInt(n - 1)
  return elementary(`int${n}`, integerSample(-limit, limit - 1n), ...(n === 256 ? ["int"] : []))
})

const addressSample: fc.Arbitrary<Sample> = hexOf({ min: 20, max: 20 }).chain((lower) =>
  fc
    .constantFrom(lower, `0x${lower.slice(2).toUpperCase()}`, getAddress(lower))
    .map((given) => ({ given, oracle: getAddress(lower), shown: getAddress(lower) }))
)

const fixedBytes = fc
  .integer({ min: 1, max: 32 })
  .chain((size) =>
    elementary(`bytes${size}`, same(hexOf({ min: size, max: size })), ...(size === 1 ? ["byte"] : []))
  )

const boolSample: fc.Arbitrary<Sample> = fc
  .boolean()
  .chain((value) =>
    fc.constantFrom<Json>(value, String(value)).map((given) => ({ given, oracle: value, shown: value }))
  )

const leaf: fc.Arbitrary<Typed> = fc.oneof(
  uint,
  int,
  fixedBytes,
  elementary("address", addressSample, "address payable"),
  elementary("bool", boolSample),
  elementary("bytes", same(hexOf({ min: 0, max: 70 }))),
  elementary("string", same(fc.fullUnicodeString({ maxLength: 40 })))
)

const list = (samples: ReadonlyArray<Sample>): Sample => ({
  given: samples.map(({ given }) => given),
  oracle: samples.map(({ oracle }) => oracle),
  shown: samples.map(({ shown }) => shown)
})

const arrayOf = (element: fc.Arbitrary<Typed>): fc.Arbitrary<Typed> =>
  fc.tuple(element, fc.option(fc.integer({ min: 1, max: 4 }), { nil: null })).map(([type, length]) => ({
    canonical: `${type.canonical}[${length ?? ""}]`,
    written: `${type.written}[${length ?? ""}]`,
    value: fc
      .array(type.value, length === null ? { maxLength: 4 } : { minLength: length, maxLength: length })
      .map(list)
  }))

/** Names that are hostile to objects among ordinary ones. */
const names = ["__proto__", "constructor", "toString", "hasOwnProperty", "a", "$b", "_c"]

const record = (samples: ReadonlyArray<Sample>, objectGiven: boolean): Sample => {
  const keyed = (values: ReadonlyArray<Json>): Json =>
    Object.fromEntries(values.map((value, i) => [names[i] ?? "", value]))
  const plain = list(samples)
  const given = samples.map((sample) => sample.given)
  return {
    given: objectGiven ? keyed(given) : given,
    oracle: plain.oracle,
    shown: keyed(samples.map(({ shown }) => shown))
  }
}

const tupleOf = (component: fc.Arbitrary<Typed>): fc.Arbitrary<Typed> =>
  fc
    .tuple(
      fc.array(component, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      fc.boolean(),
      fc.constantFrom("", "tuple", "tuple ")
    )
    .map(([types, named, objectGiven, keyword]) => ({
      canonical: `(${types.map(({ canonical }) => canonical).join(",")})`,
      written: `${keyword}(${types.map((type, i) => (named ? `${type.written} ${names[i]}` : type.written)).join(" , ")})`,
      value: fc
        .tuple(...types.map(({ value }) => value))
        .map((samples) => (named ? record(samples, objectGiven) : list(samples)))
    }))

/** Any type, nested up to four levels. */
export const typed: fc.Arbitrary<Typed> = fc.letrec<{ type: Typed }>((tie) => ({
  type: fc.oneof({ maxDepth: 4, depthSize: "small" }, leaf, arrayOf(tie("type")), tupleOf(tie("type")))
})).type

/** Types for a list of parameters. */
export const types: fc.Arbitrary<ReadonlyArray<Typed>> = fc.array(typed, { maxLength: 5 })

/** Types and one value of each. */
export const call: fc.Arbitrary<{
  readonly types: ReadonlyArray<Typed>
  readonly values: ReadonlyArray<Sample>
}> = types.chain((list) =>
  fc.tuple(...list.map(({ value }) => value)).map((values) => ({ types: list, values }))
)

/** `(type,type)` */
export const canonicalList = (list: ReadonlyArray<Typed>): string =>
  `(${list.map(({ canonical }) => canonical).join(",")})`

/** White space and comments that may stand between tokens. */
export const noise = fc.constantFrom(
  " ",
  "\n",
  "\t \r\n",
  "/* a, (comment) */",
  "// to the end\n",
  "  /***/ "
)

/** Text made of the grammar's own words: nearly right more often than random text is. */
export const tokenSoup: fc.Arbitrary<string> = fc
  .array(
    fc.constantFrom(
      ...`( ) [ ] , ; 0 1 256 99999999999999999999 uint uint256 int8 bytes bytes32 bytes33 address payable string
        bool tuple function event error returns view memory calldata indexed anonymous receive f __proto__ //
        /* */ (uint256) f(`.split(/\s+/),
      ...["\n", " ", "\u00a0", "\ud800"]
    ),
    { maxLength: 30 }
  )
  .chain((tokens) => fc.constantFrom(tokens.join(" "), tokens.join("")))
