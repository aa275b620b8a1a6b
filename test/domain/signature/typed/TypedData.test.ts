import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { getAddress, TypedDataEncoder, type TypedDataField } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as TypedData from "../../../../src/domain/signature/typed/TypedData.js"
import * as TypeTable from "../../../../src/domain/signature/typed/TypeTable.js"
import * as Work from "../../../support/Work.js"
import { forAll } from "../../generators.js"

const digest = (document: unknown, given: TypedData.Given = {}) => {
  const read = TypedData.read(JSON.stringify(document))
  if (read === null) throw new Error("no document")
  return Result.flatMap(read, (json) => TypedData.digest(json, given))
}

const problem = (document: unknown, given: TypedData.Given = {}): string =>
  Result.match(digest(document, given), { onFailure: (why) => why, onSuccess: () => "it has a digest" })

const members = (text: string) =>
  text.split(", ").map((each) => ({ name: each.split(" ")[0] ?? "", type: each.split(" ")[1] ?? "" }))

/** The example of EIP-712, and the figures that its test contract asserts. */
const mail = {
  types: {
    EIP712Domain: members("name string, version string, chainId uint256, verifyingContract address"),
    Person: members("name string, wallet address"),
    Mail: members("from Person, to Person, contents string")
  },
  primaryType: "Mail",
  domain: {
    name: "Ether Mail",
    version: "1",
    chainId: 1,
    verifyingContract: "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC"
  },
  message: {
    from: { name: "Cow", wallet: "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826" },
    to: { name: "Bob", wallet: "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB" },
    contents: "Hello, Bob!"
  }
}
const mailDigest = "0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2"

const contract = Address.unsafe(`0x${"cc".repeat(20)}`)

/** One struct of one member, in its own domain. */
const single = (type: string, value: unknown) => ({
  types: { It: [{ name: "x", type }] },
  primaryType: "It",
  domain: { name: "d" },
  message: { x: value }
})

describe("typed data", () => {
  it("typed data of the EIP-712 example have its stated digest", () => {
    expect(digest(mail)).toEqual(Result.succeed(mailDigest))
    const { EIP712Domain, ...types } = mail.types
    expect(EIP712Domain).toHaveLength(4)
    expect(digest({ ...mail, types })).toEqual(Result.succeed(mailDigest))
  })

  it("typed data take missing domain fields from the caller", () => {
    const given = { chainId: 1n, verifyingContract: contract }
    const { EIP712Domain, ...types } = mail.types
    const { chainId, verifyingContract, ...named } = mail.domain
    for (const document of [
      mail,
      { ...mail, domain: named },
      { ...mail, types, domain: named },
      { ...mail, domain: { ...named, chainId: "0x1", verifyingContract: verifyingContract.toLowerCase() } },
      { ...mail, types, domain: { ...named, chainId: "1", verifyingContract } }
    ])
      expect(digest(document, given)).toEqual(Result.succeed(mailDigest))
    expect([EIP712Domain.length, chainId]).toEqual([4, 1])
    const { domain, ...without } = { ...mail, types }
    expect(digest(without, given)).toEqual(digest({ ...mail, types, domain: { chainId, verifyingContract } }))
    expect(domain).toBe(mail.domain)
  })

  it("contradicts the caller in no part of the domain", () => {
    expect(problem(mail, { chainId: 2n })).toBe("domain.chainId contradicts eip712")
    expect(problem(mail, { chainId: 1n, verifyingContract: Address.zero })).toBe(
      "domain.verifyingContract contradicts eip712"
    )
    const narrow = {
      ...mail,
      types: { ...mail.types, EIP712Domain: [{ name: "name", type: "string" }] },
      domain: { name: "Ether Mail" }
    }
    expect(Result.isSuccess(digest(narrow))).toBe(true)
    expect(problem(narrow, { chainId: 1n })).toBe("domain.chainId: type EIP712Domain has no such member")
  })

  it("a wrapped string is typed data Message(string contents) in the service's domain", () => {
    forAll(
      [
        fc.fullUnicodeString(),
        fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
        fc.hexaString({ minLength: 40, maxLength: 40 })
      ],
      (contents, chainId, digits) => {
        const verifyingContract = Address.unsafe(`0x${digits}`)
        expect(TypedData.digest(TypedData.ofMessage(contents), { chainId, verifyingContract })).toEqual(
          Result.succeed(
            TypedDataEncoder.hash(
              { name: "castellan", version: "1", chainId, verifyingContract },
              { Message: [{ name: "contents", type: "string" }] },
              { contents }
            )
          )
        )
      },
      { numRuns: 50 }
    )
  })
})

/** A type with values of it, of structs that stand below it in the table. */
interface Typed {
  readonly type: string
  readonly values: fc.Arbitrary<unknown>
}

const hexOf = (constraints: { minLength: number; maxLength: number }) =>
  fc.uint8Array(constraints).map((bytes) => `0x${Buffer.from(bytes).toString("hex")}`)

const atoms: fc.Arbitrary<Typed> = fc.oneof(
  fc.constant({ type: "bool", values: fc.boolean() }),
  fc.constant({ type: "string", values: fc.fullUnicodeString() }),
  fc.constant({ type: "bytes", values: hexOf({ minLength: 0, maxLength: 70 }) }),
  fc.constant({
    type: "address",
    values: hexOf({ minLength: 20, maxLength: 20 }).map((hex) => getAddress(hex))
  }),
  fc
    .integer({ min: 1, max: 32 })
    .map((size) => ({ type: `bytes${size}`, values: hexOf({ minLength: size, maxLength: size }) })),
  fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 32 })).map(([signed, bytes]) => {
    const bits = BigInt(bytes * 8)
    const [min, max] = signed ? [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n] : [0n, 2n ** bits - 1n]
    return { type: `${signed ? "" : "u"}int${bits}`, values: fc.bigInt({ min, max }).map(String) }
  })
)

const arraysOf = ({ type, values }: Typed): fc.Arbitrary<Typed> =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant({ type, values }) },
    fc.constant({ type: `${type}[]`, values: fc.array(values, { maxLength: 3 }) }),
    fc
      .integer({ min: 1, max: 3 })
      .map((n) => ({ type: `${type}[${n}]`, values: fc.array(values, { minLength: n, maxLength: n }) })),
    fc.constant({
      type: `${type}[2][]`,
      values: fc.array(fc.array(values, { minLength: 2, maxLength: 2 }), { maxLength: 2 })
    })
  )

interface Structs {
  readonly types: Record<string, Array<TypedDataField>>
  readonly values: fc.Arbitrary<Record<string, unknown>>
}

/** Names of structs; colons are in no name of Solidity, and in names that people sign. */
const nameAt = (depth: number): string => ["S0", "My:Order", "S2:a:b", "$:3_"][depth] ?? `S${depth}`

/** Struct `nameAt(depth)`, whose last member is the struct below it. */
const structs = (depth: number): fc.Arbitrary<Structs> =>
  (depth === 0 ? fc.constant<Structs | null>(null) : structs(depth - 1)).chain((below) =>
    fc
      .tuple(
        fc.array(atoms.chain(arraysOf), { minLength: 1, maxLength: 4 }),
        below === null
          ? fc.constant<Typed | null>(null)
          : arraysOf({ type: nameAt(depth - 1), values: below.values })
      )
      .map(([plain, last]) => {
        const all = [...plain, ...(last === null ? [] : [last])]
        return {
          types: {
            ...below?.types,
            [nameAt(depth)]: all.map(({ type }, index) => ({ name: `m${index}`, type }))
          },
          values: fc.record(Object.fromEntries(all.map(({ values }, index) => [`m${index}`, values])))
        }
      })
  )

const domains = fc.record(
  {
    name: fc.fullUnicodeString(),
    version: fc.string(),
    chainId: fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }).map(String),
    verifyingContract: hexOf({ minLength: 20, maxLength: 20 }),
    salt: hexOf({ minLength: 32, maxLength: 32 })
  },
  { requiredKeys: [] }
)

describe("the digest of typed data", () => {
  it("the digest of typed data is that of ethers, for any types, values and domain", () => {
    const documents = fc.integer({ min: 0, max: 3 }).chain((depth) =>
      structs(depth).chain(({ types, values }) =>
        fc.record({
          types: fc.constant(types),
          primaryType: fc.constant(nameAt(depth)),
          message: values,
          domain: domains
        })
      )
    )
    forAll(
      [documents],
      (document) => {
        const { domain, message, types } = document
        expect(digest(document)).toEqual(Result.succeed(TypedDataEncoder.hash(domain, types, message)))
      },
      { numRuns: 300 }
    )
  })

  it("the digest of typed data omits types without a reference", () => {
    const types = { ...mail.types, Unused: [{ name: "x", type: "uint256" }] }
    expect(digest({ ...mail, types })).toEqual(Result.succeed(mailDigest))
  })

  it("a digest is only of the exact document: no value equals another", () => {
    const refused: ReadonlyArray<readonly [why: string, type: string, ...values: ReadonlyArray<unknown>]> = [
      ["expected true or false", "bool", "false", 0, null],
      ["expected a non-negative integer of 8 bits", "uint8", 256, -1, 1.5, "", " 1", "1e1", [1]],
      ["expected a non-negative integer of 256 bits", "uint256", 2 ** 53, `1${"0".repeat(78)}`],
      ["expected an integer of 8 bits", "int8", "-129", 128],
      ["expected an address", "address", `0x${"cc".repeat(19)}`, "XE7338O073KYGTWWZN0F2WZ0R8PX5ZPPZS", 0],
      ["the address is of mixed case", "address", "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD82a"],
      ["expected 0x", "bytes", "0x0", "hello", [1, 2]],
      ["expected 4 bytes", "bytes4", "0x112233", "0x1122334455"],
      ["expected well-formed text", "string", 7, "\ud800"],
      ["expected an array", "string[]", "abc", { 0: "a", length: 1 }],
      ["expected 2 elements", "uint8[2]", [1]]
    ]
    for (const [why, type, ...values] of refused)
      for (const value of values)
        expect(problem(single(type, value)), `${type} ${JSON.stringify(value)}`).toContain(
          `message.x: ${why}`
        )
    expect(problem(single("uint8[2][]", [[1, 2], [3]]))).toContain("message.x[1]: expected 2 elements")
    expect(problem(single("uint8[]", [1, "a"]))).toContain("message.x[1]: expected a non-negative integer")
    expect(problem({ ...mail, message: { ...mail.message, to: null } })).toBe(
      "message.to: expected an object, got null"
    )
    const { contents, ...less } = mail.message
    expect(problem({ ...mail, message: less })).toBe("message.contents: is missing")
    expect(problem({ ...mail, message: { ...mail.message, more: contents } })).toBe(
      "message.more: type Mail has no such member"
    )
    const from = { ...mail.message.from, "e-mail": "cow@example.com", telephone: "1" }
    expect(problem({ ...mail, message: { ...mail.message, from } })).toBe(
      'message.from["e-mail"]: type Person has no such member'
    )
    expect(problem({ ...mail, domain: { ...mail.domain, salt: `0x${"00".repeat(32)}` } })).toBe(
      "domain.salt: type EIP712Domain has no such member"
    )
  })

  it.each([
    ["uint8", 256, "expected a non-negative integer of 8 bits, as text when it is above 2^53, got 256"],
    ["int8", "\u221218", 'got "\u221218", with the character U+2212 for "-"'],
    ["uint256", "1".repeat(80), 'got "11111111" (the first 8 of 80 characters)'],
    ["uint256", null, "got null"],
    ["bool", "false", "expected true or false, got a text of 5 characters"],
    ["address", "0x12", "got 0x and 2 hex digits"],
    ["address", 7, "expected an address: 0x and 40 hex digits, got a number"],
    ["bytes4", "0x112233", "expected 4 bytes: 0x and 8 hex digits, got 0x and 6 hex digits"],
    ["string", { a: "secret" }, "expected well-formed text, got an object"],
    ["string[]", "secret", "expected an array, got a text of 6 characters"],
    ["uint8[2]", [1], "expected 2 elements, got 1"]
  ])("the digest of typed data reports a wrong %s without possible secrets", (type, value, why) => {
    expect(problem(single(type, value))).toContain(why)
    expect(problem(single(type, value))).not.toContain("secret")
  })

  it("the digest of typed data is refused for ambiguous types", () => {
    const of = (types: unknown, primaryType: unknown = "A") => problem({ types, primaryType, message: {} })
    const member = (type: unknown) => ({ A: [{ name: "a", type }] })
    const aType = "types.A[0].type: expected a type"
    const cases: ReadonlyArray<readonly [why: string, ...types: ReadonlyArray<unknown>]> = [
      ["types: expected an object", null, [], "A"],
      ["types.A: expected an array", { A: {} }],
      ["types.A[0]: expected an object of name and type", { A: [7] }, { A: [{ name: "a" }] }],
      ["types.A[0].name", { A: [{ name: "a b", type: "bool" }] }, { A: [{ name: "", type: "bool" }] }],
      ["types.A[1].name", { A: [...member("bool").A, ...member("bool").A] }],
      ["types.A[0].type: expected uint256", member("uint")],
      [aType, ...["uint7", "uint264", "bytes33", "B", "bool[0]", "bool["].map(member)],
      ["types.A[0].type: expected at most 16 dimensions", member(`bool${"[]".repeat(17)}`)],
      ["types.A[0].type: the name is too long", member(`bool${"[]".repeat(5_000)}`)],
      ["types: expected names", { A: [], uint256: [] }, { A: [], uint: [] }, { A: [], "B C": [] }],
      ["types.A: the type contains itself", member("A"), member("A[]")],
      [
        "the type contains itself",
        { ...member("B"), B: [{ name: "c", type: "C" }], C: [{ name: "a", type: "A[2]" }] }
      ]
    ]
    for (const [why, ...all] of cases)
      for (const types of all) expect(of(types), JSON.stringify(types)).toContain(why)
    for (const primary of [undefined, null, 7, "B", "EIP712Domain", "constructor", "__proto__"])
      expect(problem({ types: { A: [], EIP712Domain: [] }, primaryType: primary, message: {} })).toBe(
        "primaryType: expected one of types"
      )
    expect(problem({ ...mail, note: "look here" })).toBe(
      "note: expected types, primaryType, domain and message, and nothing else"
    )
    const { types: dropped, ...without } = mail
    expect(problem(without)).toBe("types: is missing")
    expect(problem({ types: dropped })).toBe("primaryType: expected one of types")
  })

  it("the digest of typed data costs bounded work", () => {
    const chain = (depth: number) =>
      Object.fromEntries(
        Array.from({ length: depth }, (_, n) => [`T${n}`, n === 0 ? [] : [{ name: "x", type: `T${n - 1}` }]])
      )
    const last = (depth: number) => ({ types: chain(depth), primaryType: "T0", message: {} })
    expect(Result.isSuccess(digest(last(TypeTable.maxDepth + 1)))).toBe(true)
    expect(problem(last(TypeTable.maxDepth + 2))).toContain("types inside each other")
    expect(problem(last(TypeTable.maxTypes + 1))).toContain(`at most ${TypeTable.maxTypes}`)
    const wide = Array.from({ length: TypeTable.maxMembers + 1 }, (_, n) => ({ name: `m${n}`, type: "bool" }))
    expect(problem({ types: { A: wide }, primaryType: "A", message: {} })).toContain("members in all")
    const name = "a".repeat(TypeTable.maxNameLength + 1)
    expect(problem({ types: { A: [{ name, type: "bool" }] }, primaryType: "A", message: {} })).toContain(
      "name"
    )
    expect(problem(single("string", "x".repeat(TypedData.maxLength)))).toContain("longer than")
    const flags = (count: number) => {
      const { types, primaryType, message } = single(
        "bool[]",
        Array.from({ length: count }, () => true)
      )
      return TypedData.read(JSON.stringify({ types, primaryType, message }))
    }
    expect(flags(TypedData.maxValues - 100)).toMatchObject({ _tag: "Success" })
    expect(flags(TypedData.maxValues)).toMatchObject({
      failure: expect.stringContaining(`at most ${TypedData.maxValues} values in all`)
    })
    const deep = `{"types":{},"message":${"[".repeat(60_000)}${"]".repeat(60_000)}}`
    const work = Work.of(() => {
      const read = TypedData.read(deep)
      const refused =
        read === null || Result.isFailure(Result.flatMap(read, (json) => TypedData.digest(json, {})))
      expect(refused).toBe(true)
    })
    expect(work).toBeLessThan(5_000)
  })
})

describe("a text", () => {
  const good = JSON.stringify(mail)

  it("a text is a document when it is an object of types and a value of them", () => {
    const others = ["", "hello", "{", "[]", '"types"', "null", "7", "{}", '{"message":{},"domain":{}}']
    for (const text of [
      ...others,
      '["types","primaryType"]',
      '{"note":"types: all","of":["primaryType"]}',
      "[Terms] I accept all types of cookies",
      "[note]\nprimaryType = none",
      "{name} agrees to these types: none",
      `I sign ${JSON.stringify(mail)}`
    ])
      expect(TypedData.read(text)).toBeNull()
    for (const text of [
      JSON.stringify(mail),
      `\n\t ${JSON.stringify(mail, null, 2)}\n`,
      '{"types":7,"message":7}',
      '{"types":{}}',
      '{"primaryType":"Mail"}'
    ])
      expect(TypedData.read(text)).not.toBeNull()
  })

  it("a document with two members of one name is refused", () => {
    const text = JSON.stringify(mail)
    for (const twice of [
      text.replace('"contents":"Hello, Bob!"', '"contents":"Hello, Bob!","contents":"All of it"'),
      text.replace('"primaryType"', '"primaryType":"Mail","primaryType"'),
      text.replace('"chainId":1', '"chainId":1,"cha\\u0069nId":5')
    ]) {
      const read = TypedData.read(twice)
      expect(read).toMatchObject({
        failure: expect.stringMatching(/^[a-zA-Z.]+: the name occurs twice in one object$/)
      })
    }
    const colons = { ...mail, message: { ...mail.message, contents: 'a:b\\":"' } }
    expect(Result.isSuccess(digest(colons))).toBe(true)
  })

  it.each(["9007199254740991.4", "4503599627370497.2", "9007199254740993", "-0", "1e400"])(
    "a document with the number %s, which JSON.parse rounds, is refused",
    (written) => {
      const text = JSON.stringify({
        types: { A: [{ name: "a", type: "uint256[][]" }] },
        primaryType: "A",
        domain: {},
        message: { a: [["1", "HERE"]] }
      })
      expect(TypedData.read(text.replace('"HERE"', written))).toEqual(
        Result.fail("message.a[0][1]: the JSON number would lose digits: write it as a string")
      )
      const inText = TypedData.read(text.replace("HERE", "9007199254740993"))
      expect(inText !== null && Result.isSuccess(inText)).toBe(true)
    }
  )

  const none = "the typed data is not JSON:"
  const column = `${none} line 1, column`
  const quoted = JSON.stringify(good)
  it.each<readonly [string, string, string]>([
    ["with a comma too many", good.replace('Hello, Bob!"', 'Hello, Bob!",'), column],
    ["cut off", good.slice(0, -1), `${none} it ends too early, line 1, column`],
    ["with more behind it", `${good} and more`, column],
    ["twice in a row", `${good}\n${good}`, `${none} line 2, column 1`],
    ["behind a byte order mark", `\ufeff${good}`, `${none} it begins with a byte order mark`],
    ["behind a Latin-1 one", `ï»¿${good}`, `${column} 1`],
    ["in single quotes", good.replaceAll('"', "'"), `${column} 2`],
    ["with names without quotes", good.replace(/"(\w+)":/g, "$1:"), `${column} 2`],
    ["encoded twice", quoted, "the typed data is encoded twice"],
    ["encoded twice and cut off", quoted.slice(0, -9), `${none} it ends too early`],
    ["damaged and encoded", JSON.stringify(good.slice(0, -1)), "the typed data is encoded twice"],
    ["with only its quotes escaped", good.replaceAll('"', '\\"'), `${column} 2`],
    ["in quotes of a shell", `'${good}'`, `${column} 1`],
    ["in an array", ` [${good}]`, "[0]: the typed data is inside of another value"],
    ["as parameters of a node", `["0x00",${quoted}]`, "[1]: the typed data is encoded twice"],
    ["deep inside", `{"a":[{"b":${good}}]}`, "a[0].b: the typed data is inside of another value"],
    ["as text inside", `{"data":${quoted}}`, "data: the typed data is encoded twice"]
  ])("a broken document %s is refused with the place", (_, text, problem) => {
    expect(TypedData.read(text)).toMatchObject({ failure: expect.stringContaining(problem) })
  })

  it("a document with one character removed or added is read, or refused with the place", () => {
    const other = fc.constantFrom(..."{}[],:\"'0n \ufeff/")
    forAll(
      [fc.nat(good.length - 1), fc.option(other)],
      (at, put) => {
        const text = `${good.slice(0, at)}${put ?? ""}${good.slice(put === null ? at + 1 : at)}`
        // Before and without its first brace, the text is not an object.
        fc.pre(/^[\s\ufeff]*[{[("']/.test(text) && !text.startsWith('"'))
        const read = TypedData.read(text)
        expect(read).not.toBeNull()
        const isJson = Result.isSuccess(Result.try(() => JSON.parse(text)))
        expect(read !== null && Result.isSuccess(read) && !isJson).toBe(false)
      },
      { numRuns: 500 }
    )
  })

  it("reading any text as typed data never throws", () => {
    const words = fc.constantFrom(
      ..."types primaryType domain message A __proto__ EIP712Domain name".split(" ")
    )
    const types = fc.constantFrom("A", "A[]", "uint256", "bool[2]", "string")
    const json = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        ...[fc.string(), fc.integer(), fc.double(), fc.boolean(), fc.constant(null), words, types],
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(words, tie("value"), { maxKeys: 5 })
      )
    })).value
    const hostile = fc.record(
      { types: json, primaryType: json, domain: json, message: json },
      { requiredKeys: ["types", "message"] }
    )
    forAll(
      [hostile],
      (document) => {
        expect(problem(document).length).toBeGreaterThan(0)
      },
      { numRuns: 500 }
    )
    forAll(
      [fc.fullUnicodeString()],
      (text) => {
        TypedData.read(text)
        TypedData.read(`{"types":${text}`)
      },
      { numRuns: 300 }
    )
  })
})
