import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Uint from "../../../domain/primitives/Uint.js"
import { invalidAt } from "../../failures/Failure.js"
import * as Keys from "../../keys/Keys.js"
import * as Span from "../../observe/Span.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"
import { Networks } from "../../ports/Networks.js"
import { type Setting, Settings } from "../../ports/operator/Settings.js"
import type { AccountId } from "../../ports/Tenants.js"
import * as Wallets from "../../prepare/wallets/Wallets.js"
import { authorOf, type Caller } from "../../request/Caller.js"
import * as Fields from "../../request/Fields.js"
import { SignerRef } from "../../request/Settings.js"

/** The endpoints of an account's top-ups: one of its signers keeps up balances of its other signers and of its wallets. */

const wei = (description: string) => Fields.shown(Uint.schema, { description })

const dailyCap = "Most wei that top-ups may cost, gas included, that begin in one UTC day."

const Target = Schema.Struct({
  to: Schema.Union([
    SignerRef,
    Schema.Struct({
      salt: Fields.SaltText,
      walletCustody: Fields.StoredCustody,
      legacyWallet: Fields.optional(Schema.Boolean, false)
    }).annotate({ identifier: "TopUpWallet" })
  ]).annotate({ description: "A signer of the account, or a wallet of its factory." }),
  below: wei("A lower balance is topped up; wei."),
  upTo: wei("The balance after it; wei."),
  dailyCap: wei(dailyCap)
}).check(Schema.makeFilter(({ below, upTo }) => upTo > below || "upTo: expected more than below"))

/** An account's terms for one chain. */
export const Terms = Schema.Struct({
  signer: SignerRef.annotate({ description: "The account's key that pays." }),
  keep: wei("The signer never plans to go below this sum, wei."),
  dailyCap: wei(dailyCap),
  targets: Schema.Array(Target)
    .check(Schema.isMaxLength(64))
    .annotate({ description: "At most 64; none: nothing is topped up." })
}).annotate({ identifier: "TopUp" })
export type Terms = typeof Terms.Type

export const Path = Schema.Struct({
  chainId: Schema.String.annotate({ description: "Id of the chain, decimal." })
}).annotate({ identifier: "TopUpPath" })
type Path = typeof Path.Type

export const Shown = Schema.Struct({
  topUp: Schema.NullOr(
    Schema.Struct({
      ...Terms.fields,
      at: Schema.Int.annotate({ description: "Unix seconds of the setting." }),
      by: Schema.String.annotate({ description: "key: and the id of the key that set it, or command line." })
    }).annotate({ identifier: "SetTopUp" })
  )
}).annotate({ identifier: "TopUpState" })

const stored = Schema.fromJsonString(Terms)

export const nameOf = (chainId: bigint): Setting["name"] => `topUp:${chainId}`

/** The targets by their addresses; fails for a key or a wallet that is not the account's. */
export const targetsOf = (caller: Caller, profile: NetworkProfile, { targets }: Terms) =>
  Effect.forEach(targets, ({ to, ...level }, index) =>
    Effect.gen(function* () {
      const path = `targets[${index}].to`
      if ("clientId" in to) return { ...level, to: (yield* Keys.resolve(caller, to, path)).address }
      const formula = yield* Effect.fromResult(Wallets.formula(profile, {}))
      return { ...level, to: yield* Effect.fromResult(Wallets.select(to, formula, profile, path)) }
    })
  )

export const put = Effect.fnUntraced(function* (
  setting: Pick<Setting, "accountId" | "by" | "requestId">,
  chainId: bigint,
  terms: Terms
) {
  const at = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
  const content = Schema.encodeSync(stored)(terms)
  yield* Effect.flatMap(Settings, (store) => store.put({ ...setting, name: nameOf(chainId), content, at }))
  return { ...terms, at, by: setting.by }
})

/** The account's terms in force; null: none. Fails while the store is away, and for a form that is not read. */
export const find = Effect.fnUntraced(function* (accountId: AccountId, chainId: bigint) {
  const setting = yield* Effect.flatMap(Settings, (store) => store.find(accountId, nameOf(chainId)))
  if (setting === null) return null
  const terms = yield* Schema.decodeEffect(stored)(setting.content ?? "")
  return { ...terms, at: setting.at, by: setting.by }
})

const chainOf = (text: string) =>
  /^[1-9][0-9]{0,14}$/.test(text)
    ? Effect.succeed(BigInt(text))
    : invalidAt("chainId", "expected a chain id, a decimal number")

/** Sets the account's top-ups on a chain, in force at the next round. A store that fails is a defect. */
export const set = (caller: Caller, { chainId: text, ...terms }: Terms & Path) =>
  Effect.gen(function* () {
    const chainId = yield* chainOf(text)
    const { accountId } = caller.principal
    const profile = yield* Effect.flatMap(Networks, (networks) => networks.profile(accountId, chainId))
    if (profile === null || profile.rpc === null)
      return yield* invalidAt("chainId", "the operator has no node of this chain")
    const { address } = yield* Keys.resolve(caller, terms.signer, "signer")
    const all = [address, ...(yield* targetsOf(caller, profile, terms)).map(({ to }) => to)]
    const twice = all.findIndex((each, at) => all.indexOf(each) < at)
    if (twice > 0)
      return yield* invalidAt(`targets[${twice - 1}].to`, "it is the paying signer, or listed before")
    const setting = { accountId, by: authorOf(caller.principal), requestId: caller.requestId }
    return { topUp: yield* Effect.orDie(put(setting, chainId, terms)) }
  }).pipe(Span.named("SetTopUp"))

/** The account's top-ups on a chain; null: none are set. */
export const get = ({ principal }: Caller, { chainId }: Path) =>
  Effect.gen(function* () {
    return { topUp: yield* Effect.orDie(find(principal.accountId, yield* chainOf(chainId))) }
  }).pipe(Span.named("GetTopUp"))
