import type * as JsonSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import type { Endpoint } from "./Contract.js"

const hash = fc.constantFrom("ab", "00", "ff").map((byte) => `0x${byte.repeat(32)}`)
const percent = fc.constantFrom<unknown>(0, 50, "20", "0.0001", 1000, "1000.0", 12.5)
const words = fc.constantFrom("customer-1", "a", "é", "x".repeat(256), "😀", "0", "Transfer")

const text = fc.oneof(fc.string({ maxLength: 40 }), words, hash)

/** A value that fits no schema in particular. */
const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    null,
    "",
    "\ud800",
    "\u0000",
    "0x",
    "0xg",
    -0,
    -1,
    0.1,
    2 ** 53,
    2 ** 64,
    1e308,
    1e-7,
    true,
    [],
    {},
    [[]],
    "__proto__",
    "constructor",
    { constructor: { prototype: 1 } },
    { toString: 1, hasOwnProperty: 2, valueOf: null, length: -1 },
    { toJSON: "x" },
    `0x${"0".repeat(5_000)}`,
    "9".repeat(400),
    "NaN",
    "Infinity",
    "1e18",
    "../../etc/passwd",
    "http://169.254.169.254/",
    "'; drop table accounts; --",
    "$\u007b7*7}",
    "%00",
    "\u202e\ufeff"
  ),
  fc.constantFrom(3, 70, 300).map((depth) => {
    let nested: unknown = 1
    for (let at = 0; at < depth; at++) nested = at % 2 === 0 ? [nested] : { a: nested }
    return nested
  }),
  fc.constantFrom(257, 5_000).map((length) => Array.from({ length }, (_, index) => index)),
  fc.bigInt().map(String)
)

type Path = ReadonlyArray<string | number>

const pathsOf = (value: unknown, at: Path = []): ReadonlyArray<Path> => {
  if (typeof value !== "object" || value === null) return [at]
  const entries: ReadonlyArray<readonly [string | number, unknown]> = Array.isArray(value)
    ? value.map((item, index) => [index, item] as const)
    : Object.entries(value)
  return [at, ...entries.flatMap(([name, inner]) => pathsOf(inner, [...at, name]))]
}

const changed = (value: unknown, path: Path, change: (old: unknown) => unknown): unknown => {
  const [name, ...rest] = path
  if (name === undefined) return change(value)
  if (Array.isArray(value)) return value.map((item, at) => (at === name ? changed(item, rest, change) : item))
  return Object.fromEntries(
    Object.entries(Object(value)).map(([key, inner]) => [
      key,
      key === name ? changed(inner, rest, change) : inner
    ])
  )
}

const renamed = (value: unknown, path: Path, rename: (name: string) => string | null): unknown => {
  const last = path.at(-1)
  return changed(value, path.slice(0, -1), (parent) => {
    if (Array.isArray(parent)) return parent.filter((_, at) => at !== last)
    return Object.fromEntries(
      Object.entries(Object(parent)).flatMap(([key, inner]) => {
        const next = key === last ? rename(key) : key
        return next === null ? [] : [[next, inner]]
      })
    )
  })
}

type Mutation = (body: unknown, path: Path, junk: unknown) => unknown

const mutations: ReadonlyArray<Mutation> = [
  (body, path, other) => changed(body, path, () => other),
  (body, path) => renamed(body, path, () => null),
  (body, path) => renamed(body, path, (name) => `${name}x`),
  (body, path) => renamed(body, path, (name) => name.toUpperCase()),
  (body, path, other) =>
    changed(body, path, (old) =>
      typeof old === "object" && !Array.isArray(old) ? { ...old, extra: other } : [old]
    ),
  (body, path) => changed(body, path, (old) => (typeof old === "number" ? String(old) : Number(old))),
  (body, path) => changed(body, path, (old) => (typeof old === "string" ? `${old} ` : JSON.stringify(old))),
  (body, path) => changed(body, path, (old) => [old, old]),
  (body, path) => changed(body, path, () => null)
]

const bytes = (...parts: ReadonlyArray<string | ReadonlyArray<number>>): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))))

const odd = fc.constantFrom(
  bytes(""),
  bytes("null"),
  bytes("[]"),
  bytes("{}"),
  bytes('"'),
  bytes("[".repeat(100_000)),
  bytes('{"a":'.repeat(50_000)),
  bytes(`[${"0,".repeat(300_000)}0]`),
  bytes(`{"a":"${"x".repeat(1_100_000)}"}`),
  bytes("9".repeat(100_000)),
  bytes(`{${Array.from({ length: 2_000 }, (_, at) => `"k${at}":1`).join(",")}}`)
)

/** One request: method, target, headers and body. */
export interface Sent {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const types = fc.oneof(
  { weight: 30, arbitrary: fc.constant("application/json") },
  {
    weight: 1,
    arbitrary: fc.constantFrom("text/plain", "application/json; charset=utf-16", "", "application/xml")
  }
)

const idempotency = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom("a", "b", "c", "x".repeat(256), "ä", " ")
      .map((key) => ({ "idempotency-key": key }))
  }
)

/** Valid field values for the service under test. */
export interface Place {
  readonly rpc: string
  /** An http URL without a server. */
  readonly noRpc: string
  readonly signer: object
  /** A wallet of custody 1, and its salt. */
  readonly wallet: string
  readonly salt: string
  readonly factory: string
  readonly beacon: string
  readonly validator: string
  readonly creationCode: string
  readonly token: string
  /** A webhook of the account. */
  readonly webhookId: string
}

export interface Bodies {
  /** Requests that fit the schema, with meaningful values for this place. */
  readonly valid: (schema: Schema.Codec<unknown, unknown>) => fc.Arbitrary<unknown>
  /** Requests to these endpoints in equal shares: two of five valid, two of five almost valid, the rest hostile. */
  readonly requests: (endpoints: ReadonlyArray<Endpoint>, key: string) => fc.Arbitrary<Sent>
}

export const at = (place: Place): Bodies => {
  const address = fc.constantFrom<string>(
    place.wallet,
    place.token,
    place.factory,
    place.beacon,
    `0x${"33".repeat(20)}`,
    `0x${"00".repeat(20)}`
  )
  /** A function and arguments that fit it. */
  const calls: ReadonlyArray<readonly [string, ReadonlyArray<unknown>]> = [
    ["transfer(address,uint256)", [place.wallet, "1"]],
    ["approve(address spender, uint amount)", [place.wallet, "0xff"]],
    ["f()", []],
    ["receive()", []],
    ["set((uint256,string)[],bool)", ['[["1","x"]]', "true"]],
    ["put(bytes,bytes32,int8[2])", ["0x00", `0x${"ab".repeat(32)}`, ["1", "-1"]]]
  ]

  /** Meaningful values by field name: without them, most requests fail the first checks. */
  const meaningful: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
    rpc: fc.oneof(
      { weight: 20, arbitrary: fc.constant(place.rpc) },
      { weight: 1, arbitrary: fc.constantFrom(place.noRpc, "ftp://node.test", "") }
    ),
    entryPoint: fc.constantFrom(...Object.values(EntryPoint.canonical)),
    signer: fc.constant(place.signer),
    cosigners: fc.constantFrom([], [], [], [place.signer]),
    factory: fc.constant(place.factory),
    beaconAdminAddress: fc.constant(place.beacon),
    beaconAdminCreationCode: fc.constantFrom(
      place.creationCode,
      place.creationCode,
      place.creationCode,
      "60806040",
      "0x",
      ""
    ),
    wallet: fc.oneof({ weight: 3, arbitrary: fc.constant(place.wallet) }, { weight: 1, arbitrary: address }),
    to: fc.oneof({ weight: 2, arbitrary: fc.constant(place.token) }, { weight: 1, arbitrary: address }),
    from: address,
    contracts: fc.array(address, { maxLength: 3 }),
    salt: fc.oneof({ weight: 2, arbitrary: fc.constant(place.salt) }, { weight: 1, arbitrary: words }),
    walletCustody: fc.constantFrom(0, 1, 1, 1, 2, 3, 4, 5),
    threshold: fc.constantFrom("1", "2", "0", "17"),
    funcSignature: fc.constantFrom(...calls.map(([signature]) => signature)),
    funcParams: fc.constantFrom(...calls.map(([, params]) => params)),
    returnSignature: fc.constantFrom("uint256", "(uint256,string)", "returns (bool a)", "((a,b))", "bytes[]"),
    value: fc.constantFrom("0", "1", "0x10", (2n ** 256n - 1n).toString()),
    txHashes: fc.array(hash, { maxLength: 3 }),
    webhookId: fc.constant(place.webhookId),
    confirmations: fc.constantFrom(1, 3, 64, 65),
    userOpHash: hash,
    eventName: fc.constantFrom("Transfer", "Approval", "Paid", "Nothing"),
    eventDef: fc.constantFrom("event Transfer(address indexed from, address indexed to, uint256 value)"),
    fromBlock: fc.constantFrom("0", "0x0", "latest", "earliest", "18446744073709551616", "-1"),
    toBlock: fc.constantFrom("latest", "0x10", "safe", "pending", "0"),
    fields: fc.constantFrom({}, { to: place.wallet }, { value: ["1", "2"] }, { nothing: "1" }),
    useABI: fc.constantFrom<ReadonlyArray<unknown>>(
      [],
      ["event Paid(address indexed payer, uint256 amount)"]
    ),
    messages: fc.array(fc.oneof(fc.string(), hash), { maxLength: 3 }),
    type: fc.constantFrom("uint256", "address[2][]", "tuple", "event", "error", "bytes33"),
    name: fc.constantFrom("Paid", "NotPaid", "a", ""),
    validAfter: fc.constantFrom(0, 1, 4_000_000_000),
    validUnitl: fc.constantFrom(0, 1, 4_000_000_000),
    dependsOn: fc.constantFrom(0, 1, -1),
    validator: fc.oneof(
      { weight: 9, arbitrary: fc.constant(place.validator) },
      { weight: 1, arbitrary: address }
    ),
    address,
    chainId: fc.oneof(
      { weight: 9, arbitrary: fc.constant(31_337) },
      { weight: 1, arbitrary: fc.constantFrom<unknown>(1, "1", "0x7a69") }
    ),
    paymaster: address,
    aggregator: address,
    percentUserOpGasOvershoot: percent,
    percentTxGasOvershoot: percent,
    percentTxGasPriceOvershoot: percent
  }

  /** Schemas cannot express contradictions between members; nine of ten bodies have none. */
  const sensible = (
    properties: object,
    body: Readonly<Record<string, unknown>>,
    [funcSignature, funcParams]: (typeof calls)[number]
  ): Readonly<Record<string, unknown>> => {
    const has = (name: string) => Object.hasOwn(properties, name)
    const { dependsOn: _, passkeyPubKey: __, signers: ___, threshold: ____, ...rest } = body
    const { aggregator: _a, paymaster: _p, cosigners: _c, ...settings } = body
    const { wallet: _w, ...bySalt } = rest
    return {
      ...(has("threshold")
        ? { ...bySalt, walletCustody: 1 }
        : has("dependsOn")
          ? { ...("salt" in body ? bySalt : rest), walletCustody: 1 }
          : has("aggregator")
            ? settings
            : body),
      ...(has("salt") && body.salt === undefined && body.wallet === undefined ? { salt: place.salt } : {}),
      ...("funcSignature" in body ? { funcSignature, funcParams } : {})
    }
  }

  /** Values that fit the JSON schema; `depth` bounds recursion. */
  const structural = (
    schema: JsonSchema.JsonSchema,
    definitions: JsonSchema.Definitions,
    depth: number
  ): fc.Arbitrary<unknown> => {
    const inner = (one: unknown) => structural(Object(one), definitions, depth)
    const { $ref, additionalProperties, allOf, anyOf, items, oneOf, ...own } = schema
    const properties: JsonSchema.Definitions = Object(own.properties ?? {})
    if (typeof $ref === "string") {
      const named = definitions[$ref.slice("#/$defs/".length)]
      if (named === undefined) throw new Error(`the generator of bodies does not find ${$ref}`)
      return depth > 12 ? fc.constant(null) : structural(named, definitions, depth + 1)
    }
    const choice = anyOf ?? oneOf
    if (Array.isArray(choice)) return fc.oneof(...choice.map(inner))
    if (Array.isArray(allOf)) return inner(Object.assign({}, schema, { allOf: undefined }, ...allOf))
    if (Array.isArray(own.enum)) return fc.constantFrom<unknown>(...own.enum)
    switch (own.type) {
      case "string":
        return typeof own.pattern === "string" ? fc.stringMatching(new RegExp(own.pattern)) : text
      case "integer":
        return fc.integer({
          min: Number(own.minimum ?? own.exclusiveMinimum ?? Number.MIN_SAFE_INTEGER),
          max: Number(own.maximum ?? Number.MAX_SAFE_INTEGER)
        })
      case "number":
        return fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
      case "null":
        return fc.constant(null)
      case "boolean":
        return fc.boolean()
      case "array":
        return fc.oneof(
          { weight: 9, arbitrary: fc.array(inner(items), { minLength: 1, maxLength: 3 }) },
          { weight: 1, arbitrary: fc.constant([]) }
        )
      case "object": {
        const required = Array.isArray(own.required) ? own.required : []
        const members = Object.entries(properties).map(([name, property]) => {
          const value = field(name, property, definitions, depth).map((given) => [[name, given]] as const)
          return required.includes(name)
            ? value
            : fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: value })
        })
        const known = fc
          .tuple(fc.tuple(...members), fc.constantFrom(...calls), fc.nat(9))
          .map(([given, call, chance]): Readonly<Record<string, unknown>> => {
            const body = Object.fromEntries<unknown>(given.flat())
            return chance === 0 ? body : sensible(properties, body, call)
          })
        if (members.length > 0 || additionalProperties === false) return known
        const more = fc.dictionary(fc.string({ maxLength: 8 }), inner(additionalProperties), { maxKeys: 3 })
        return fc.tuple(known, more).map(([fixed, rest]) => ({ ...rest, ...fixed }))
      }
      case undefined:
        return fc.jsonValue({ maxDepth: 3 })
      default:
        throw new Error(`the generator of bodies does not know ${own.type}`)
    }
  }

  const field = (
    name: string,
    schema: JsonSchema.JsonSchema,
    definitions: JsonSchema.Definitions,
    depth: number
  ): fc.Arbitrary<unknown> => {
    const values = meaningful[name]
    const any = structural(schema, definitions, depth)
    const isLiteral = Array.isArray(schema.enum) && schema.enum.length === 1
    return values === undefined || isLiteral
      ? any
      : fc.oneof({ weight: 40, arbitrary: values }, { weight: 1, arbitrary: any })
  }

  /** Requests that fit the endpoint's schema, with meaningful values for this service. */
  const valid = (schema: Schema.Codec<unknown, unknown>): fc.Arbitrary<unknown> => {
    const document = Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" })
    return structural(document.schema, document.definitions, 0)
  }

  /** Requests with at most one fault. */
  const nearlyValid = (schema: Schema.Codec<unknown, unknown>): fc.Arbitrary<unknown> =>
    fc
      .tuple(valid(schema), fc.nat(), fc.constantFrom(...mutations), junk)
      .map(([body, nth, mutate, other]) => {
        const paths = pathsOf(body)
        return mutate(body, paths[nth % paths.length] ?? [], other)
      })

  /** Bodies of invalid JSON, or of JSON that only an attacker sends. */
  const hostile = (schema: Schema.Codec<unknown, unknown>): fc.Arbitrary<Buffer> => {
    const good = valid(schema).map((body) => JSON.stringify(body))
    return fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((raw) => Buffer.from(raw)),
      fc.string().map((raw) => Buffer.from(raw)),
      fc.tuple(good, fc.nat(), fc.nat(255)).map(([json, at, byte]) => {
        const raw = Buffer.from(json)
        raw[at % raw.length] = byte
        return raw
      }),
      fc.tuple(good, fc.nat()).map(([json, at]) => Buffer.from(json).subarray(0, at % json.length)),
      fc.tuple(good, good).map(([one, other]) => bytes(one, other)),
      good.map((json) => bytes([0xef, 0xbb, 0xbf], json)),
      good.map((json) => Buffer.from(json, "utf16le")),
      good.map((json) => bytes(json.replace(/:(\d+)/g, ":1e400"))),
      good.map((json) => bytes(json.replace(/"/, '"\\ud800'))),
      good.map((json) => bytes(json.replace(/^\{/, '{"__proto__":{"admin":true},'))),
      good.map((json) => bytes(json.replace(/^\{("[^"]*":)/, "{$1null,$1"))),
      good.map((json) => bytes(json.replace(/"/, '"\\u0000'))),
      good.map((json) => bytes(json.replace(/:"/, ':"\xff'), [0xff])),
      odd,
      junk.map((value) => Buffer.from(JSON.stringify(value) ?? ""))
    )
  }

  /** Two of five bodies fit the schema, two of five almost fit, the rest are hostile. */
  const requestsTo = ({ idempotent, method, path, payload }: Endpoint, key: string): fc.Arbitrary<Sent> => {
    const body =
      payload === null
        ? fc.constant(Buffer.alloc(0))
        : fc.oneof(
            { weight: 2, arbitrary: valid(payload).map((value) => Buffer.from(JSON.stringify(value))) },
            {
              weight: 2,
              arbitrary: nearlyValid(payload).map((value) => Buffer.from(JSON.stringify(value) ?? ""))
            },
            { weight: 1, arbitrary: hostile(payload) }
          )
    const parameter = fc.oneof(
      fc.uuid(),
      fc.string({ maxLength: 20 }).map(encodeURIComponent),
      fc.constantFrom("%", "%ff", "..", "a/b", "", "%00", "%2e%2e%2f", "x".repeat(4_000))
    )
    const target = path.includes(":")
      ? parameter.map((value) => path.replace(/:[A-Za-z]+/, () => value))
      : fc.oneof(
          { weight: 30, arbitrary: fc.constant(path) },
          { weight: 1, arbitrary: fc.constant(`${path}?a=1`) }
        )
    return fc
      .record({ body, target, type: types, extra: idempotent ? idempotency : fc.constant({}) })
      .map(({ body, extra, target, type }) => ({
        method,
        target,
        headers: { "x-api-key": key, ...(payload === null ? {} : { "content-type": type }), ...extra },
        body
      }))
  }

  /** Requests to these endpoints in equal shares: two of five valid, two of five almost valid, the rest hostile. */
  const requests = (endpoints: ReadonlyArray<Endpoint>, key: string): fc.Arbitrary<Sent> =>
    fc.oneof(...endpoints.map((endpoint) => requestsTo(endpoint, key)))

  return { valid, requests }
}
