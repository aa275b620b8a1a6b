import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Eip712 from "../../evm/Eip712.js"
import * as Json from "../../json/Json.js"
import type * as Address from "../../primitives/Address.js"
import type * as Hex from "../../primitives/Hex.js"
import * as DocumentText from "./DocumentText.js"
import * as StructHash from "./StructHash.js"
import * as TypeTable from "./TypeTable.js"

/** EIP-712 typed data as wallets take it: a JSON document of `types`, `primaryType`, `domain` and `message`. */

/** The caller's values of the domain, in addition to the document's. */
export interface Given {
  readonly chainId?: bigint
  readonly verifyingContract?: Address.Address
}

/** A document of EIP-712: types, primary type, domain and message. */
export type Document = Readonly<Record<string, unknown>>

/** Longest document, in UTF-16 units. */
export const maxLength = 131_072

/** The members of a domain without a declared type, in the order of EIP-712. */
const standard = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
  { name: "salt", type: "bytes32" }
]

const domainType = "EIP712Domain"
const members = new Set(["types", "primaryType", "domain", "message"])

/** JSON values of a document: each may need a separate hash. */
export const maxValues = 16_384

/** Deeper than any document whose types are within their bounds. */
const bounds: Json.Bounds = { ...Json.unbounded, maxDepth: 512, maxValues }

/**
 * The document that a text is; null when it is any other text. Text of an object or array that names `types` or
 * `primaryType` means to be a document, and must then be valid: `Failure` names the problem and its place.
 *
 * @example TypedData.read("hello")
 * // null
 */
export const read = (text: string): Result.Result<Document, string> | null => {
  const meaning = DocumentText.of(text, maxLength)
  if (meaning === null) return null
  if (meaning.problem !== null) return Result.fail(meaning.problem)
  return Result.flatMap(Result.mapError(Json.parse(text, bounds), DocumentText.refusal), (json) =>
    Predicate.isObject(json) ? Result.succeed(json) : Result.fail("expected an object")
  )
}

/** The value of one member of the domain: the document's and the caller's must not contradict each other. */
const agreed = (
  domain: Map<string, unknown>,
  name: "chainId" | "verifyingContract",
  given: string | undefined,
  equals: (written: unknown) => boolean
): string | null => {
  if (given === undefined) return null
  if (!domain.has(name)) domain.set(name, given)
  else if (!equals(domain.get(name))) return `domain.${name} contradicts eip712`
  return null
}

/** The domain as the caller completes it, and its hash. */
const domainOf = (
  { domain = {}, types }: Document,
  { chainId, verifyingContract }: Given
): Result.Result<Pick<Parts, "domain" | "separator">, string> => {
  if (!Predicate.isObject(domain)) return Result.fail("domain: expected an object")
  const values = new Map(Object.entries(domain))
  const problem =
    agreed(values, "chainId", chainId?.toString(), (text) => StructHash.integerOf(text) === chainId) ??
    agreed(
      values,
      "verifyingContract",
      verifyingContract,
      (text) => typeof text === "string" && text.toLowerCase() === verifyingContract?.toLowerCase()
    )
  if (problem !== null) return Result.fail(problem)
  const declared = Predicate.isObject(types) && Object.hasOwn(types, domainType)
  const own = { [domainType]: standard.filter(({ name }) => values.has(name)) }
  return Result.flatMap(TypeTable.from(declared ? types : own), (table) =>
    Result.map(
      StructHash.hashStruct(table, domainType, Object.fromEntries(values), "domain"),
      (separator) => ({ separator, domain: { types: table.get(domainType)?.members ?? [], values } })
    )
  )
}

/** The hashes of a document's domain and message, with what they are of. */
export interface Parts extends TypeTable.Struct {
  readonly separator: Hex.Bytes32
  readonly contents: Hex.Bytes32
  readonly primaryType: string
  readonly types: TypeTable.TypeTable
  /** Values that fit the types of their members. */
  readonly message: unknown
  readonly domain: {
    readonly types: ReadonlyArray<TypeTable.Member>
    readonly values: ReadonlyMap<string, unknown>
  }
}

/**
 * The parts of a document whose domain the caller completes; `Failure` names the problem and its place.
 *
 * @example Result.getOrThrow(TypedData.parts(TypedData.ofMessage("hello"), {})).primaryType
 * // "Message"
 */
export const parts = (document: Document, given: Given): Result.Result<Parts, string> => {
  const { message, primaryType, types } = document
  const extra = Object.keys(document).find((name) => !members.has(name))
  if (extra !== undefined)
    return Result.fail(
      `${Json.member("", extra)}: expected types, primaryType, domain and message, and nothing else`
    )
  if (!Object.hasOwn(document, "types")) return Result.fail("types: is missing")
  const table = TypeTable.from(types)
  if (Result.isFailure(table)) return Result.fail(table.failure)
  const named =
    typeof primaryType === "string" && primaryType !== domainType ? table.success.get(primaryType) : undefined
  if (typeof primaryType !== "string" || named === undefined)
    return Result.fail("primaryType: expected one of types")
  const domain = domainOf(document, given)
  if (Result.isFailure(domain)) return Result.fail(domain.failure)
  const struct = StructHash.hashStruct(table.success, primaryType, message, "message")
  return Result.map(struct, (contents) => ({
    ...named,
    ...domain.success,
    contents,
    primaryType,
    types: table.success,
    message
  }))
}

/**
 * The signing digest of a document, see `parts`.
 *
 * @example Result.getOrThrow(TypedData.digest(TypedData.ofMessage("hello"), {}))
 * // "0xc9223cb04a5306298ccc94337f8e6ff3a0ab80a42a21fc828913af16369f45b1"
 */
export const digest = (document: Document, given: Given): Result.Result<Hex.Bytes32, string> =>
  Result.map(parts(document, given), ({ contents, separator }) => Eip712.digest(separator, contents))

/**
 * The document that wraps any other text, so that to a contract its signature means only that text.
 *
 * @example TypedData.ofMessage("hello").message
 * // { contents: "hello" }
 */
export const ofMessage = (contents: string): Document => ({
  types: { Message: [{ name: "contents", type: "string" }] },
  primaryType: "Message",
  domain: { name: "castellan", version: "1" },
  message: { contents }
})
