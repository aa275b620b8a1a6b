import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { DeliveryFailure, WebhookSender } from "../../../application/ports/Webhooks.js"
import { defaults } from "../node/ChainRpc.js"
import * as Egress from "../transport/Egress.js"
import * as Http from "../transport/Http.js"
import * as Retry from "../transport/Retry.js"

export interface Options {
  readonly egress?: Partial<Egress.Rules>
  readonly http?: Partial<Http.Limits>
}

/** Replies carry no content worth more time or bytes; as many requests wait for decisions at a time. */
export const limits = {
  connectMillis: 5_000,
  firstByteMillis: 10_000,
  totalMillis: 10_000,
  responseBytes: 65_536,
  connectionsPerHost: 64,
  callerResponseBytes: 65_536
} satisfies Partial<Http.Limits>

const reasons = {
  invalidUrl: "expected an http or https URL without user name and password",
  forbidden: "the address is not allowed"
}

/** Uses separate connections: webhooks share none with other accounts or with nodes. */
export const layer = (options: Options = {}): Layer.Layer<WebhookSender> =>
  Layer.effect(
    WebhookSender,
    Effect.gen(function* () {
      const rules = { ...defaults.egress, ...options.egress }
      const http = yield* Http.make(rules, { ...defaults.http, ...limits, ...options.http })
      return {
        refusal: (accountId, url) =>
          Result.match(Egress.target(url, "caller", rules, accountId), {
            onFailure: (reason) => reasons[reason],
            onSuccess: () => null
          }),
        send: (accountId, url, headers, body) =>
          Result.match(
            Egress.target(
              Redacted.value(url),
              accountId === null ? "operator" : "caller",
              rules,
              accountId ?? ""
            ),
            {
              onFailure: (reason) => Effect.fail(new DeliveryFailure({ message: reasons[reason] })),
              onSuccess: (target) =>
                http.post(target, body, false, headers).pipe(
                  Effect.mapError(({ message }) => new DeliveryFailure({ message })),
                  Effect.flatMap(({ body: answer, retryAfter, status }) =>
                    Effect.map(Clock.currentTimeMillis, (now) => ({
                      status,
                      body: answer,
                      retryAfterMillis: Retry.afterMillis(retryAfter, now)
                    }))
                  )
                )
            }
          )
      }
    })
  )
