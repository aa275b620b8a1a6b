import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { FunctionSignature as Signature } from "../abi/FunctionSignature.js"
import * as FunctionSignature from "../abi/FunctionSignature.js"
import * as Parameters from "../abi/Parameters.js"
import * as Values from "../abi/Values.js"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import { Lru } from "../primitives/Lru.js"
import * as Uint from "../primitives/Uint.js"
import { type Document, kinds, type Movement } from "./Movements.js"

/**
 * Spending rules of a subject: which movements are allowed, and how much in all.
 *
 * Rules apply in their order: the first rule that matches decides a movement, and a movement without a match is refused.
 * Limits count every movement, whichever rule has matched it.
 */

export const maxRules = 100
export const maxLimits = 50
export const maxAddresses = 1_000
/** Values of one member of a match. */
const maxValues = 100

/** Endpoints whose requests are judged; a signed op of `/estimateGas` and `/passkeyHash` comes back by one of them. */
export const endpoints = [
  "/execute",
  "/executeEncoded",
  "/executePasskey",
  "/transactSigner",
  "/create",
  "/sign",
  "/signMessage",
  "/topUp"
] as const

const Name = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/u, {
    message: "expected a name of 1 to 64 letters, digits, dots, hyphens and underscores"
  })
)

const ChainId = Schema.String.check(
  Schema.isPattern(/^[1-9][0-9]{0,19}$/u, { message: "expected a chain id, a decimal string" })
)

const someOf = <S extends Schema.Top>(schema: S, most = maxValues) =>
  Schema.Array(schema).check(Schema.isMinLength(1), Schema.isMaxLength(most))

const listName = /^list:[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/u
const listPrefix = "list:"

/** An address, or the name of a list of addresses. */
const Recipient = Schema.Union([
  Address.schema,
  Schema.String.check(
    Schema.isPattern(listName, { message: "expected an address, or list: and the list's name" })
  )
]).annotate({
  message: "expected an address, of mixed case with its EIP-55 checksum, or list: and the list's name"
})

/** The time of day, `24:00` at its end. */
const minutesOf = (text: string): number => {
  const [hours = "", minutes = ""] = text.split(":")
  return Number(hours) * 60 + Number(minutes)
}

const TimeOfDay = Schema.String.check(
  Schema.isPattern(/^(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00)$/u, { message: "expected HH:MM, UTC" })
)

const Hours = Schema.Struct({
  from: TimeOfDay,
  to: TimeOfDay,
  /** Days of the week, 1 (Monday) to 7. */
  days: Schema.optionalKey(someOf(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 7 }))))
}).check(Schema.makeFilter(({ from, to }) => minutesOf(from) < minutesOf(to) || "expected from before to"))

/** Members that a document's domain has. */
const Domain = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  chainId: Schema.optionalKey(ChainId),
  verifyingContract: Schema.optionalKey(Address.schema)
}).check(
  Schema.makeFilter((each) => Object.keys(each).length > 0 || "expected name, chainId or verifyingContract")
)

/** A static parameter of a function: one of these values, or an unsigned integer of at most `max`. */
const Argument = Schema.Struct({
  index: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 63 })),
  in: Schema.optionalKey(someOf(Schema.String)),
  max: Schema.optionalKey(Uint.schema)
}).check(
  Schema.makeFilter(
    (each) => (each.in === undefined) !== (each.max === undefined) || "expected either in or max"
  )
)
export type Argument = typeof Argument.Type

/** Place of a static parameter's word in calldata, and its type; null: the function has no such parameter. */
const placeOf = ({ inputs }: Signature, index: number) => {
  const input = inputs[index]
  if (input === undefined || input.base.dynamic || input.base.words !== 1 || input.base.depth > 0) return null
  const before = inputs.slice(0, index).reduce((sum, { base }) => sum + base.words, 0)
  return { input, at: 4 + 32 * before }
}

/** The word of a value of that parameter; null: it is no such value. */
const wordOf = (signature: Signature, index: number, text: string): Hex.Hex | null => {
  const place = placeOf(signature, index)
  return place === null ? null : Result.getOrNull(Parameters.encode([place.input], [text]))
}

/** Signatures parsed lately: a movement is compared with those of many rules. */
const seen = new Lru<string, Signature | null>(1_024)

const signatureOf = (text: string): Signature | null => {
  const known = seen.get(text)
  if (known !== undefined) return known
  const parsed = Result.getOrNull(FunctionSignature.parse(text))
  const found = parsed?.selector == null ? null : parsed
  seen.set(text, found)
  return found
}

/** Problem of an argument of a function; null: none. */
const objection = (text: string, { in: values, index, max }: Argument): string | null => {
  const signature = signatureOf(text)
  if (signature === null) return null
  const place = placeOf(signature, index)
  if (place === null) return `args: parameter ${index} of ${text} is not a static value`
  if (max !== undefined && place.input.base.kind !== "uint")
    return `args: max of parameter ${index} of ${text}, which is not an unsigned integer`
  const wrong = values?.find((value) => wordOf(signature, index, value) === null)
  return wrong === undefined ? null : `args: ${wrong} is not of type ${place.input.type}`
}

const Match = Schema.Struct({
  kinds: someOf(Schema.Literals(kinds)),
  chains: Schema.optionalKey(someOf(ChainId)),
  endpoints: Schema.optionalKey(someOf(Schema.Literals(endpoints))),
  tokens: Schema.optionalKey(someOf(Address.schema)),
  to: Schema.optionalKey(someOf(Recipient)),
  maxAmount: Schema.optionalKey(Uint.schema),
  contracts: Schema.optionalKey(someOf(Address.schema)),
  /** Function signatures. */
  selectors: Schema.optionalKey(someOf(Schema.String)),
  args: Schema.optionalKey(someOf(Argument)),
  /** Of documents, as their primary types. */
  domains: Schema.optionalKey(someOf(Domain)),
  primaryTypes: Schema.optionalKey(someOf(Schema.String)),
  hours: Schema.optionalKey(Hours)
}).check(
  Schema.makeFilter(({ args = [], contracts, domains, kinds: some, primaryTypes, selectors }) => {
    if ((domains ?? primaryTypes) !== undefined && !some.includes("sign.typedData"))
      return "domains, primaryTypes: expected kind sign.typedData"
    if (some.includes("call") && (contracts === undefined || selectors === undefined))
      return "kind call: expected contracts and selectors"
    const unknown = selectors?.find((text) => signatureOf(text) === null)
    if (unknown !== undefined) return `selectors: ${unknown} is not a function signature`
    if (args.length > 0 && selectors === undefined) return "args: expected selectors"
    for (const text of selectors ?? [])
      for (const each of args) {
        const problem = objection(text, each)
        if (problem !== null) return problem
      }
    return true
  })
)
export type Match = typeof Match.Type

const Rule = Schema.Struct({
  name: Name,
  effect: Schema.Literals(["allow", "refuse"]),
  match: Match
})
export type Rule = typeof Rule.Type

const Limit = Schema.Struct({
  name: Name,
  chain: ChainId,
  asset: Schema.Union([Schema.Literals(["native", "fees", "ops", "calls"]), Address.schema]).annotate({
    message: "expected native, fees, ops, calls or the address of a token"
  }),
  per: Schema.Literals(["op", "request", "day", "24h", "30d"]),
  max: Uint.schema,
  /** Whether an allowance is spent when it is given; default: `count`. */
  approvals: Schema.optionalKey(Schema.Literals(["count", "ignore"]))
})
export type Limit = typeof Limit.Type

/** The first name that is used twice. */
const distinct = (
  path: "rules" | "limits",
  each: ReadonlyArray<{ readonly name: string }>
): { readonly path: ReadonlyArray<PropertyKey>; readonly issue: string } | null => {
  const seen = new Map<string, number>()
  for (const [at, { name }] of each.entries()) {
    const first = seen.get(name)
    if (first !== undefined) return { path: [path, at], issue: `name: ${path}[${first}] has it too` }
    seen.set(name, at)
  }
  return null
}

export const Policy = Schema.Struct({
  mode: Schema.Literals(["enforce", "observe"]),
  /** Unix second after which everything is refused; 0: never. */
  expiresAt: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 48 - 1 })),
  /** Paymasters that ops may name; default: the profile's. */
  paymasters: Schema.optionalKey(someOf(Address.schema)),
  rules: Schema.Array(Rule).check(Schema.isMaxLength(maxRules)),
  limits: Schema.optionalKey(Schema.Array(Limit).check(Schema.isMaxLength(maxLimits)))
}).check(
  Schema.makeFilter(
    ({ limits = [], rules }) => distinct("rules", rules) ?? distinct("limits", limits) ?? true
  )
)
export type Policy = typeof Policy.Type

/** The subject `list:NAME`. */
export const List = Schema.Struct({
  addresses: Schema.Array(Address.schema)
    .check(Schema.isMaxLength(maxAddresses))
    .annotate({ description: "Of list:NAME, in place of all other members." })
})
export type List = typeof List.Type

/** Addresses of lists by their names. */
export type Lists = ReadonlyMap<string, ReadonlySet<Address.Address>>

/** Circumstances of an element. */
export interface Circumstances {
  /** Null: a signature that no chain is named for. */
  readonly chainId: bigint | null
  readonly endpoint: string
  /** Unix milliseconds. */
  readonly at: number
}

const dayMillis = 86_400_000

const isWithin = ({ days, from, to }: NonNullable<Match["hours"]>, at: number): boolean => {
  const day = Math.floor(at / dayMillis)
  const minutes = Math.floor((at - day * dayMillis) / 60_000)
  // 1970 began on a Thursday.
  const weekday = ((day + 3) % 7) + 1
  return minutes >= minutesOf(from) && minutes < minutesOf(to) && (days?.includes(weekday) ?? true)
}

/** `unknown`: whether a list that does not exist holds the address. */
const isRecipient = (
  some: ReadonlyArray<string>,
  to: Address.Address | null,
  lists: Lists,
  unknown: boolean
): boolean =>
  to !== null &&
  some.some((each) =>
    each.startsWith(listPrefix) ? (lists.get(each.slice(listPrefix.length))?.has(to) ?? unknown) : each === to
  )

/** `unknown`: of calldata without a value of the parameter's type there. Old contracts read it with zeros or without its high bits. */
const hasArgument = (
  signature: Signature,
  data: Hex.Hex,
  { in: values, index, max }: Argument,
  unknown: boolean
): boolean => {
  const place = placeOf(signature, index)
  if (place === null) return false
  const word = Hex.size(data) < place.at + 32 ? Hex.empty : Hex.slice(data, place.at, place.at + 32)
  if (Result.isFailure(Values.decode([place.input], word))) return unknown
  return max === undefined
    ? (values?.some((value) => wordOf(signature, index, value) === word) ?? false)
    : BigInt(word) <= max
}

/** Whether a member of a match names a value. */
const names = <A>(some: ReadonlyArray<A> | undefined, value: A | null, unknown: boolean): boolean =>
  some === undefined || (value === null ? unknown : some.includes(value))

const isDocument = (
  { domains, primaryTypes }: Match,
  document: Document | undefined,
  unknown: boolean
): boolean =>
  document !== undefined &&
  primaryTypes?.includes(document.primaryType) !== false &&
  domains?.some(
    ({ chainId, name, verifyingContract }) =>
      (name === undefined || name === document.name) &&
      (chainId === undefined || names([chainId], document.chainId?.toString() ?? null, unknown)) &&
      (verifyingContract === undefined || names([verifyingContract], document.verifyingContract, unknown))
  ) !== false

/** Members of a match, in the order in which they are compared. */
const compared = [
  "kinds",
  "chains",
  "endpoints",
  "tokens",
  "to",
  "maxAmount",
  "contracts",
  "domains",
  "primaryTypes",
  "hours",
  "selectors",
  "args"
] as const satisfies ReadonlyArray<keyof Match>
type Member = (typeof compared)[number]

/**
 * The first member of a rule's match that does not fit the movement; absent members fit any. Null: the rule matches. Unknown
 * values fit rules that refuse, and not rules that allow: a token or chain that a document's domain does not name, an
 * argument in another encoding, a list that does not exist.
 */
const misfit = (
  { effect, match }: Rule,
  movement: Movement,
  { at, chainId, endpoint }: Circumstances,
  lists: Lists
): Member | null => {
  const { amount, asset, contract, data, document, kind, selector, to } = movement
  if (!match.kinds.includes(kind)) return "kinds"
  const refuses = effect === "refuse"
  if (!names(match.chains, chainId?.toString() ?? null, refuses)) return "chains"
  if (!names<string>(match.endpoints, endpoint, false)) return "endpoints"
  const isHidden = refuses && kind.startsWith("erc20.")
  if (!names<string>(match.tokens, asset, isHidden)) return "tokens"
  if (match.to !== undefined && !isRecipient(match.to, to, lists, refuses)) return "to"
  if (match.maxAmount !== undefined && (amount === null || amount > match.maxAmount)) return "maxAmount"
  if (!names(match.contracts, contract, isHidden)) return "contracts"
  if ((match.domains ?? match.primaryTypes) !== undefined && !isDocument(match, document, refuses))
    return match.domains === undefined ? "primaryTypes" : "domains"
  if (match.hours !== undefined && !isWithin(match.hours, at)) return "hours"
  const { args = [], selectors } = match
  if (selectors === undefined) return null
  const called = selectors.map(signatureOf).filter((each) => each !== null && each.selector === selector)
  if (called.length === 0) return "selectors"
  return called.some((each) => each !== null && args.every((one) => hasArgument(each, data, one, refuses)))
    ? null
    : "args"
}

/** A movement that is not allowed, and the rule that refuses it; null: no rule matches. */
export interface Refusal {
  readonly movement: Movement
  readonly rule: string | null
  /** Without such a rule: the rule that allows the kind and fits best, with the first member that does not fit. */
  readonly nearest: { readonly rule: string; readonly member: Member } | null
}

const nearestOf = (
  rules: ReadonlyArray<Rule>,
  ...place: readonly [Movement, Circumstances, Lists]
): Refusal["nearest"] =>
  rules
    .flatMap((each) => {
      const member = each.effect === "allow" ? misfit(each, ...place) : null
      return member === null || member === "kinds" ? [] : [{ rule: each.name, member }]
    })
    .toSorted((one, other) => compared.indexOf(other.member) - compared.indexOf(one.member))[0] ?? null

/** Judges an element by its movements, without limits; null: it is allowed. An element that moves nothing is allowed. */
export const judge = (
  { expiresAt, rules }: Pick<Policy, "expiresAt" | "rules">,
  movements: ReadonlyArray<Movement>,
  circumstances: Circumstances,
  lists: Lists
): Refusal | "expired" | null => {
  if (expiresAt !== 0 && circumstances.at > expiresAt * 1_000) return "expired"
  for (const movement of movements) {
    const rule = rules.find((each) => misfit(each, movement, circumstances, lists) === null)
    if (rule?.effect === "allow") continue
    const nearest = rule === undefined ? nearestOf(rules, movement, circumstances, lists) : null
    return { movement, rule: rule?.name ?? null, nearest }
  }
  return null
}

/** An element as limits count it. */
export interface Spending {
  readonly movements: ReadonlyArray<Movement>
  readonly calls: number
  /** Highest cost, wei, for any payer. */
  readonly fees: bigint
}

/** Whether a limit counts what is spent on a chain; null: on any. */
export const isOn = ({ chain }: Limit, chainId: bigint | null): boolean =>
  chainId === null || chain === chainId.toString()

/** Amount by which an element counts against a limit, least units; null: no amount bounds it. */
export const amountOf = (
  { approvals = "count", asset }: Limit,
  { calls, fees, movements }: Spending
): bigint | null => {
  if (asset === "ops") return movements.some(({ kind }) => kind.startsWith("sign.")) ? 0n : 1n
  if (asset === "calls") return BigInt(calls)
  if (asset === "fees") return fees
  let sum = 0n
  for (const { amount, asset: moved, kind } of movements) {
    if (kind === "erc20.approve" && approvals === "ignore") continue
    // A document's token without a name could be this one.
    if (moved === null && kind.startsWith("erc20.") && asset !== "native") return null
    if (moved !== asset) continue
    if (amount === null) return null
    sum += amount
  }
  return sum
}
