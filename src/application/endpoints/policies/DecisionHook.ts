import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { invalidAt } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import { Stored, settingName, terms } from "../../policies/DecisionHook.js"
import { type Setting, Settings } from "../../ports/operator/Settings.js"
import { WebhookSender } from "../../ports/Webhooks.js"
import { authorOf, type Caller } from "../../request/Caller.js"
import * as Fields from "../../request/Fields.js"

/** The endpoints of an account's decision hook. The operator's hook is not shown to accounts. */

export const Request = Schema.Struct({
  url: Schema.String.check(
    Schema.isMaxLength(2_048, { message: "expected a URL of at most 2048 characters" })
  ).annotate({ description: "http or https, under the operator's rules for URLs of callers, as webhooks." }),
  timeoutMillis: Fields.optional(terms.timeoutMillis, 2_000),
  on: Fields.optional(terms.on, "all"),
  onFailure: Fields.optional(terms.onFailure, "refuse")
}).annotate({ identifier: "SetDecisionHookRequest" })

const Hook = Schema.Struct({
  origin: Schema.String.annotate({
    description: "Scheme and host of its URL; the full URL is never shown."
  }),
  ...terms,
  at: Schema.Int.annotate({ description: "Unix seconds of the setting." }),
  by: Schema.String.annotate({ description: "key: and the id of the key that set it." })
}).annotate({ identifier: "DecisionHook" })

export const Shown = Schema.Struct({ decisionHook: Schema.NullOr(Hook) }).annotate({
  identifier: "DecisionHookState"
})

export const WithSecret = Schema.Struct({
  decisionHook: Hook,
  secret: Schema.String.annotate({
    description: "whsec_ and base64, as Standard Webhooks defines it. Shown only in this answer."
  })
}).annotate({ identifier: "SetDecisionHook" })

/** A stored hook without its secret. */
const shown = ({ at, by, content }: Setting) =>
  Effect.map(Schema.decodeEffect(Stored)(content ?? ""), ({ secret: _, url, ...terms }) => ({
    origin: new URL(url).origin,
    ...terms,
    at,
    by
  }))

/** Stores a version. A store that fails is a defect. */
const put = ({ principal, requestId }: Caller, content: string | null) =>
  Effect.gen(function* () {
    const at = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
    const { accountId } = principal
    const setting: Setting = { accountId, name: settingName, content, at, by: authorOf(principal), requestId }
    yield* Effect.flatMap(Settings, (store) => Effect.orDie(store.put(setting)))
    return setting
  })

/** Sets the account's hook under a new secret, and returns the secret. */
export const set = (
  caller: Caller,
  { on = "all", onFailure = "refuse", timeoutMillis = 2_000, url }: typeof Request.Type
) =>
  Effect.gen(function* () {
    const refusal = (yield* WebhookSender).refusal(caller.principal.accountId, url)
    if (refusal !== null) return yield* invalidAt("url", refusal)
    const secret = yield* Effect.flatMap(Settings, ({ newSecret }) => newSecret)
    const content = Schema.encodeSync(Stored)({ on, onFailure, timeoutMillis, url, secret })
    return { decisionHook: yield* Effect.orDie(shown(yield* put(caller, content))), secret }
  }).pipe(Span.named("SetDecisionHook"))

/** The account's hook in force, without its secret. */
export const get = ({ principal: { accountId } }: Caller) =>
  Effect.gen(function* () {
    const setting = yield* (yield* Settings).find(accountId, settingName)
    return { decisionHook: setting === null ? null : yield* shown(setting) }
  }).pipe(Effect.orDie, Span.named("GetDecisionHook"))

/** Removes the account's hook. */
export const remove = (caller: Caller) =>
  put(caller, null).pipe(Effect.as({ decisionHook: null }), Span.named("RemoveDecisionHook"))
