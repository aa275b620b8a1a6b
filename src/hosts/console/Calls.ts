import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as FunctionSignature from "../../domain/abi/FunctionSignature.js"
import * as Address from "../../domain/primitives/Address.js"
import type { Data } from "./Data.js"
import { type Html, html, type Part } from "./Html.js"
import * as Page from "./Page.js"
import * as Tokens from "./Tokens.js"

/** Calls of requests as readable text: `transfer 250 USDC to 0x3C44…93BC`. */

const Text = Schema.optional(Schema.NullOr(Schema.String))

const Operation = Schema.Struct({
  salt: Text,
  wallet: Text,
  to: Text,
  funcSignature: Text,
  funcParams: Schema.optional(Schema.Array(Schema.Unknown)),
  value: Schema.optional(Schema.Unknown),
  userOpHash: Text
})
type Operation = typeof Operation.Type

const Body = Schema.fromJsonString(
  Schema.StructWithRest(
    Schema.Struct({
      operations: Schema.optional(Schema.Array(Schema.Unknown)),
      accounts: Schema.optional(Schema.Array(Schema.Unknown))
    }),
    [Schema.Record(Schema.String, Schema.Unknown)]
  )
)

const decode = Schema.decodeUnknownOption(Body)

const decodeOperation = Schema.decodeUnknownOption(Operation)

/** The first of them, by what is known of their form: a list may have 10,000. */
const firstOf = (list: ReadonlyArray<unknown>, most: number): ReadonlyArray<Operation> =>
  list.slice(0, most).map((each) => Option.getOrElse(decodeOperation(each), (): Operation => ({})))

/** The call of one element of a request. */
export interface Call {
  readonly text: Html
  /** Salt of the wallet; null: the caller names an address, or no wallet. */
  readonly salt: string | null
}

const integer = (value: unknown): bigint | null => {
  try {
    return typeof value === "string" || typeof value === "number" ? BigInt(value) : null
  } catch {
    return null
  }
}

/** How addresses and hashes are shown: with a button to copy them, or without. */
export type Show = (text: string) => Html

const named = (value: unknown, show: Show): Part => {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "")
  const address = Address.from(text)
  if (Result.isSuccess(address)) return show(address.success)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

/** Calls of tokens, by canonical signature: the words, with `amount` and the places of addresses. */
const ofTokens: ReadonlyMap<string, (amount: string, ...who: ReadonlyArray<Part>) => Html> = new Map<
  string,
  (amount: string, ...who: ReadonlyArray<Part>) => Html
>([
  ["transfer(address,uint256)", (amount, to = "") => html`transfer ${amount} to ${to}`],
  ["mint(address,uint256)", (amount, to = "") => html`mint ${amount} to ${to}`],
  ["approve(address,uint256)", (amount, who = "") => html`approve ${who} for ${amount}`],
  [
    "transferFrom(address,address,uint256)",
    (amount, from = "", to = "") => html`transfer ${amount} from ${from} to ${to}`
  ]
])

const textOf = (
  data: Pick<Data, "call">,
  chainId: bigint,
  show: Show,
  { funcParams = [], funcSignature, to, value }: Operation
): Effect.Effect<Html> =>
  Effect.gen(function* () {
    const wei = integer(value) ?? 0n
    const target = Result.getOrNull(Address.from(to ?? ""))
    const worth = wei > 0n ? html` with ${Page.coins(wei, chainId)}` : null
    if (funcSignature == null || funcSignature === "")
      return html`send ${Page.coins(wei, chainId)} to ${named(to ?? "nobody", show)}`
    const parsed = Result.getOrNull(FunctionSignature.parse(funcSignature))
    const words = ofTokens.get(parsed?.canonical ?? "")
    const amount = integer(funcParams.at(-1))
    const token =
      words !== undefined && target !== null && amount !== null
        ? yield* Tokens.of(data, chainId, target)
        : null
    if (words !== undefined && token !== null && amount !== null)
      return html`${words(
        Tokens.amount(amount, token),
        ...funcParams.slice(0, -1).map((each) => named(each, show))
      )}${worth}`
    const shown = funcParams.slice(0, 8).map((each, at) => [at === 0 ? "" : ", ", named(each, show)])
    return html`${parsed?.name ?? funcSignature}(${shown}${funcParams.length > 8 ? ", …" : ""}) on ${named(to ?? "", show)}${worth}`
  })

/** Calls that are described of a request; it may have 10,000. */
export const mostShown = 100

/** The calls of a request's body, the first `most` of them. A body that is sealed under another key has none. */
export const of = (
  data: Pick<Data, "call">,
  chainId: bigint,
  { body, endpoint }: { readonly body: string | null; readonly endpoint: string },
  most: number,
  show: Show
): Effect.Effect<ReadonlyArray<Call>> =>
  Effect.gen(function* () {
    const read = body === null ? null : Option.getOrNull(decode(body))
    if (read === null) return []
    if (read.accounts !== undefined)
      return firstOf(read.accounts, most).map(({ salt, wallet }) => ({
        text: html`create wallet ${salt ?? wallet ?? ""}`,
        salt: salt ?? null
      }))
    if (endpoint === "/unstuck") return [{ text: html`replace waiting transactions`, salt: null }]
    return yield* Effect.forEach(firstOf(read.operations ?? [read], most), (operation) =>
      Effect.map(
        operation.to == null
          ? Effect.succeed(
              html`run a signed operation${operation.userOpHash == null ? null : html` ${show(operation.userOpHash)}`}`
            )
          : textOf(data, chainId, show, operation),
        (text) => ({ text, salt: operation.salt ?? null })
      )
    )
  })
