import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { id, MaxUint256, TypedDataEncoder, type TypedDataField } from "ethers"
import * as fc from "fast-check"
import * as Documents from "../../../src/domain/policy/Documents.js"
import type * as Movements from "../../../src/domain/policy/Movements.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as TypedData from "../../../src/domain/signature/typed/TypedData.js"
import { address, bytes32, forAll, uint } from "../generators.js"

type Types = Record<string, Array<TypedDataField>>
type Effect = Pick<Movements.Movement, "kind" | "asset" | "to" | "amount">

const fields = (text: string): Array<TypedDataField> =>
  text.split(",").map((each) => {
    const [type = "", name = ""] = each.split(" ")
    return { type, name }
  })

const token = Address.unsafe(`0x${"70".repeat(20)}`)
const domain = { name: "USD Coin", version: "2", chainId: 8453, verifyingContract: token }

const documentOf = (types: Types, primaryType: string, message: object, own: object = domain) => ({
  types,
  primaryType,
  domain: own,
  message: { ...message }
})

const read = (document: TypedData.Document, given: TypedData.Given = {}) =>
  Documents.of(Result.getOrThrow(TypedData.parts(document, given)))

const effectsOf = (movements: ReadonlyArray<Movements.Movement>): ReadonlyArray<Effect> =>
  movements.flatMap(({ amount, asset, kind, to }) =>
    kind === "sign.typedData" ? [] : [{ kind, asset, to, amount }]
  )

interface Sample {
  readonly types: Types
  readonly message: Record<string, unknown>
  readonly effects: ReadonlyArray<Effect>
}

type Message = ReturnType<typeof JSON.parse>

const approve = (asset: Address.Address, { spender }: Message, amount: bigint): Effect => ({
  kind: "erc20.approve",
  asset,
  to: spender,
  amount
})
const authorised = ({ to, value }: Message): ReadonlyArray<Effect> => [
  { kind: "erc20.transfer", asset: token, to, amount: value }
]
const granted =
  (member: string) =>
  (message: Message): ReadonlyArray<Effect> =>
    [message[member]].flat().map((each) => approve(each.token, message, each.amount))

const authorization =
  "(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
const details = "PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
const permissions = "TokenPermissions(address token,uint256 amount)"
const order = "address spender,uint256 nonce,uint256 deadline,Order witness)Order(address maker)"

/** Each standard's struct, with what it allows, and the hash of its type that its contracts have; null: of any witness. */
const standards: Readonly<
  Record<string, readonly [string, (message: Message) => ReadonlyArray<Effect>, string | null]>
> = {
  "EIP-2612": [
    "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)",
    (message) => [approve(token, message, message.value)],
    "0x6e71edae12b1b97f4d1f60370fef10105fa2faae0126114a169c64845d6126c9"
  ],
  DAI: [
    "Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)",
    (message) => [approve(token, message, message.allowed ? MaxUint256 : 0n)],
    "0xea2aa0a1be11a07ed86d755c93467f4f82362b452371d1ba94d1715123511acb"
  ],
  TransferWithAuthorization: [
    `TransferWithAuthorization${authorization}`,
    authorised,
    "0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267"
  ],
  ReceiveWithAuthorization: [
    `ReceiveWithAuthorization${authorization}`,
    authorised,
    "0xd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de8"
  ],
  PermitSingle: [
    `PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)${details}`,
    granted("details"),
    "0xf3841cd1ff0085026a6327b620b67997ce40f282c88a8e905a7a5626e310f3d0"
  ],
  PermitBatch: [
    `PermitBatch(PermitDetails[] details,address spender,uint256 sigDeadline)${details}`,
    granted("details"),
    "0xaf1b0d30d2cab0380e68f0689007e3254993c596f2fdd0aaa7f4d04f79440863"
  ],
  PermitTransferFrom: [
    `PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)${permissions}`,
    granted("permitted"),
    "0x939c21a48a8dbe3a9a2404a1d46691e4d39f6583d6ec6b35714604c986d80106"
  ],
  PermitBatchTransferFrom: [
    `PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline)${permissions}`,
    granted("permitted"),
    "0xfcf35f5ac6a2c28868dc44c302166470266239195f02b0ee408334829333b766"
  ],
  PermitWitnessTransferFrom: [
    `PermitWitnessTransferFrom(TokenPermissions permitted,${order}${permissions}`,
    granted("permitted"),
    null
  ],
  PermitBatchWitnessTransferFrom: [
    `PermitBatchWitnessTransferFrom(TokenPermissions[] permitted,${order}${permissions}`,
    granted("permitted"),
    null
  ]
}

/** The structs of a type that is written out, the primary first. */
const typesOf = (type: string): Types =>
  Object.fromEntries([...type.matchAll(/(\w+)\(([^)]*)\)/g)].map(([, name, all = ""]) => [name, fields(all)]))

const valueOf = (types: Types, type: string): fc.Arbitrary<unknown> => {
  const members = types[type]
  if (type.endsWith("[]")) return fc.array(valueOf(types, type.slice(0, -2)), { minLength: 1, maxLength: 3 })
  if (members !== undefined)
    return fc.record(Object.fromEntries(members.map((each) => [each.name, valueOf(types, each.type)])))
  if (type.startsWith("uint")) return uint(Number(type.slice(4)))
  return type === "address" ? address : type === "bool" ? fc.boolean() : bytes32
}

const samplesOf = ([type, effectsOf]: (typeof standards)[string]): fc.Arbitrary<Sample> => {
  const types = typesOf(type)
  const [primary = ""] = Object.keys(types)
  return valueOf(types, primary).map((message: Message) => ({ types, message, effects: effectsOf(message) }))
}

const primaryOf = ({ types }: Sample): string => Object.keys(types)[0] ?? ""

/** JSON has no integers of 256 bits. */
const jsonOf = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? each.toString() : each)))

const ofSample = (sample: Sample, own: object = domain) =>
  documentOf(sample.types, primaryOf(sample), jsonOf(sample.message) as object, own)

const any = fc.oneof(...Object.values(standards).map(samplesOf))

describe("typed data", () => {
  it.each(Object.entries(standards))(
    "typed data of %s have its type, and are read as it means them",
    (_, standard) =>
      forAll([samplesOf(standard)], (sample) => {
        const [type, , hash] = standard
        const encoded = TypedDataEncoder.from(sample.types).encodeType(primaryOf(sample))
        expect([encoded, id(encoded)]).toEqual([type, hash ?? id(type)])
        const document = ofSample(sample)
        const movements = read(document)
        expect(movements[0]).toMatchObject({
          kind: "sign.typedData",
          contract: token,
          asset: null,
          document: {
            name: "USD Coin",
            chainId: 8453n,
            verifyingContract: token,
            primaryType: primaryOf(sample)
          }
        })
        expect(effectsOf(movements)).toEqual(sample.effects)
        // The movements are of the document whose digest is signed.
        expect(TypedData.digest(document, {})).toEqual(
          Result.succeed(TypedDataEncoder.hash(domain, sample.types, sample.message))
        )
      })
  )

  it("typed data of any other type permit nothing", () =>
    forAll([any, fc.nat(), fc.constantFrom("rename", "retype", "swap", "extra")], (sample, at, how) => {
      const primary = primaryOf(sample)
      const own = [...(sample.types[primary] ?? [])]
      const place = at % own.length
      const [field] = own.slice(place)
      if (field === undefined) return expect.fail("it has members")
      const message: Record<string, unknown> = { ...(jsonOf(sample.message) as object) }
      if (how === "rename") {
        own[place] = { ...field, name: `${field.name}_` }
        message[`${field.name}_`] = message[field.name]
        delete message[field.name]
      } else if (how === "retype") {
        own[place] = { ...field, type: "string" }
        message[field.name] = "1"
      } else if (how === "swap") own.push(...own.splice(place, 1), ...own.splice(0, 1))
      else {
        own.unshift({ name: "more", type: "bool" })
        message.more = true
      }
      const types = { ...sample.types, [primary]: own }
      // Fields behind those of Permit2 are the witness's.
      if (field.name === "witness" && (how === "rename" || how === "retype")) return true
      if (JSON.stringify(own) === JSON.stringify(sample.types[primary])) return true
      return expect(effectsOf(read(documentOf(types, primary, message)))).toEqual([])
    }))

  it("typed data with further types, or a declared domain, are read the same", () =>
    forAll([any], (sample) => {
      const types = {
        ...sample.types,
        EIP712Domain: fields("string name,string version,uint256 chainId,address verifyingContract"),
        Unused: fields("address a")
      }
      expect(effectsOf(read(documentOf(types, primaryOf(sample), jsonOf(sample.message) as object)))).toEqual(
        sample.effects
      )
    }))

  it("typed data nested for a wallet allow what is inside", () =>
    forAll([any, bytes32], (sample, salt) => {
      const inner = primaryOf(sample)
      const nested = (contents: string, value: unknown) =>
        documentOf(
          {
            TypedDataSign: fields(
              `${contents} contents,string name,string version,uint256 chainId,address verifyingContract,bytes32 salt`
            ),
            ...(contents === inner && sample.types)
          },
          "TypedDataSign",
          { contents: value, name: "castellan", version: "1", chainId: 1, verifyingContract: token, salt }
        )
      expect(effectsOf(read(nested(inner, jsonOf(sample.message))))).toEqual(sample.effects)
      expect(effectsOf(read(nested("bytes32", salt)))).toEqual([
        { kind: "sign.hash", asset: null, to: null, amount: 0n }
      ])
    }))

  it("typed data take from their domain what has its type there", () => {
    const mail = (own: object, types: Types = {}, given: TypedData.Given = {}) =>
      read(documentOf({ Mail: fields("string text"), ...types }, "Mail", { text: "a" }, own), given)[0]
        ?.document
    const none = { name: null, chainId: null, verifyingContract: null, primaryType: "Mail" }
    expect(mail({})).toEqual(none)
    expect(mail({}, {}, { chainId: 5n, verifyingContract: token })).toEqual({
      ...none,
      chainId: 5n,
      verifyingContract: token
    })
    expect(
      mail(
        { name: token, chainId: "1", verifyingContract: "b" },
        { EIP712Domain: fields("address name,string chainId,string verifyingContract") }
      )
    ).toEqual(none)
  })
})
