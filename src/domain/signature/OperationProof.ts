import * as Predicate from "effect/Predicate"
import * as Hex from "../primitives/Hex.js"
import type { Document } from "./typed/TypedData.js"

/**
 * Messages whose signature could be the proof of an operation, a deployment, a sponsorship or an approval.
 *
 * Gotchas: a caller who asks for a signature of "a message" may not know its meaning; the author of the message may.
 */

/**
 * Domains of typed data that moves money: the wallets', factory's and paymaster's own, the approvals', and that of
 * EntryPoint v0.8, whose userOpHash is the digest of a document.
 */
const domains: ReadonlySet<unknown> = new Set(["castellan", "castellan approvals", "ERC4337"])

/** Whether typed data is of a domain that moves money, whatever its struct. */
export const isOfDomain = ({ domain }: Document): boolean =>
  Predicate.isObject(domain) && domains.has(domain.name)

/** Whether wallets could take the EIP-191 signature of these bytes: they take it of the 32 of a hash. */
export const isMessage = (bytes: Hex.Hex): boolean => Hex.size(bytes) === 32

/** The one struct in the domain `castellan` without meaning to any contract: `TypedData.ofMessage`. */
const isWrapper = ({ primaryType, types }: Document): boolean => {
  const members = primaryType === "Message" && Predicate.isObject(types) ? types.Message : null
  if (!Array.isArray(members) || members.length !== 1) return false
  const [{ name, type }] = members
  return name === "contents" && type === "string"
}

/** Whether a contract could take the signature of typed data that has a digest. */
export const isDocument = (document: Document): boolean => {
  const { domain } = document
  if (!isOfDomain(document) || !Predicate.isObject(domain)) return false
  return domain.name !== "castellan" || !isWrapper(document)
}
