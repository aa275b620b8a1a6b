import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Eip712 from "../../evm/Eip712.js"
import * as Json from "../../json/Json.js"
import type * as Address from "../../primitives/Address.js"
import type * as Hex from "../../primitives/Hex.js"
import * as Steps from "../../primitives/Steps.js"
import * as StructHash from "./StructHash.js"
import * as TypeTable from "./TypeTable.js"

/** EIP-712 typed data as wallets take it: a JSON document of `types`, `primaryType`, `domain` and `message`. */

/** What a caller says of the domain beside the document. */
export interface Given {
  readonly chainId?: bigint
  readonly verifyingContract?: Address.Address
}

export type Document = Readonly<Record<string, unknown>>

/** Longest document, in UTF-16 units. */
export const maxLength = 131_072

/** The members of a domain that declares no type of its own, in the order of EIP-712. */
const standard = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
  { name: "salt", type: "bytes32" }
]

const domainType = "EIP712Domain"
const members = new Set(["types", "primaryType", "domain", "message"])

/** How many members all objects inside a value have together. */
const membersOf = (value: unknown): number => {
  let count = 0
  const open: Array<unknown> = [value]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue
    const inside = Object.values(next)
    if (!Array.isArray(next)) count += inside.length
    for (const each of inside) open.push(each)
  }
  return count
}

/** How many members are written: JSON.parse keeps one of two that have the same name. */
const writtenMembers = (text: string): number => text.replace(/"(?:[^"\\]|\\.)*"/g, "").split(":").length - 1

/**
 * The document that a text is; null when it is any other text. An object with `types` and one of `primaryType`,
 * `domain` and `message` is a document, and then has to be a good one.
 */
export const read = (text: string): Either.Either<Document, string> | null => {
  if (!/^\s*\{/.test(text)) return null
  const parsed = Either.getOrNull(Either.try(() => JSON.parse(text) as unknown))
  if (!Predicate.isRecord(parsed) || !Object.hasOwn(parsed, "types")) return null
  if (!["primaryType", "domain", "message"].some((name) => Object.hasOwn(parsed, name))) return null
  if (text.length > maxLength) return Either.left(`the typed data is longer than ${maxLength} characters`)
  if (writtenMembers(text) !== membersOf(parsed))
    return Either.left("two members of the typed data have one name")
  const lost = Json.inexactNumber(text)
  return lost === null ? Either.right(parsed) : Either.left(`${lost.path}: ${lost.message}`)
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

function* domainSeparator(
  { domain = {}, types }: Document,
  { chainId, verifyingContract }: Given
): Steps.Steps<Either.Either<Hex.Bytes32, string>> {
  if (!Predicate.isRecord(domain)) return Either.left("domain: expected an object")
  const values = new Map(Object.entries(domain))
  const problem =
    agreed(values, "chainId", chainId?.toString(), (text) => StructHash.integerOf(text) === chainId) ??
    agreed(
      values,
      "verifyingContract",
      verifyingContract,
      (text) => typeof text === "string" && text.toLowerCase() === verifyingContract?.toLowerCase()
    )
  if (problem !== null) return Either.left(problem)
  const declared = Predicate.isRecord(types) && Object.hasOwn(types, domainType)
  const own = { [domainType]: standard.filter(({ name }) => values.has(name)) }
  const table = TypeTable.from(declared ? types : own)
  if (Either.isLeft(table)) return Either.left(table.left)
  return yield* StructHash.hashStruct(table.right, domainType, Object.fromEntries(values), "domain")
}

/**
 * What is signed of a document whose domain the caller completes; `Left` says what is wrong, and where. Stops now and
 * then: a document may hold tens of thousands of values.
 */
export function* digestSteps(
  document: Document,
  given: Given
): Steps.Steps<Either.Either<Hex.Bytes32, string>> {
  const { message, primaryType, types } = document
  if (Object.keys(document).some((name) => !members.has(name)))
    return Either.left("expected types, primaryType, domain and message, and nothing else")
  const table = TypeTable.from(types)
  if (Either.isLeft(table)) return Either.left(table.left)
  if (typeof primaryType !== "string" || primaryType === domainType || !table.right.has(primaryType))
    return Either.left("primaryType: expected one of types")
  yield
  const separator = yield* domainSeparator(document, given)
  if (Either.isLeft(separator)) return separator
  const struct = yield* StructHash.hashStruct(table.right, primaryType, message, "message")
  return Either.map(struct, (hash) => Eip712.digest(separator.right, hash))
}

/** `digestSteps` in one go. */
export const digest = (document: Document, given: Given): Either.Either<Hex.Bytes32, string> =>
  Steps.finish(digestSteps(document, given))

/** The document that any other text is wrapped in, so that its signature means nothing to a contract but this. */
export const wrapped = (contents: string): Document => ({
  types: { Message: [{ name: "contents", type: "string" }] },
  primaryType: "Message",
  domain: { name: "castellan", version: "1" },
  message: { contents }
})
