import { Agent, type AgentOptions } from "node:https"
import type { KeyClientOptions } from "@azure/keyvault-keys"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

type Policy = NonNullable<KeyClientOptions["additionalPolicies"]>[number]["policy"]

/**
 * What every client of the SDKs is made with: connections that end with the scope, one time limit for a call from its
 * start to the last byte (the SDKs' own ends with the headers), no attempt after the first.
 */
export const make = (
  timeoutMillis: number,
  agentOptions: AgentOptions
): Effect.Effect<Pick<KeyClientOptions, "additionalPolicies" | "retryOptions">, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Agent({ ...agentOptions, keepAlive: true })),
      (agent) => Effect.sync(() => agent.destroy())
    ),
    (agent) => {
      const policy: Policy = {
        name: "castellanConnections",
        sendRequest: (request, next) => {
          const limit = AbortSignal.timeout(timeoutMillis)
          request.abortSignal =
            request.abortSignal instanceof AbortSignal ? AbortSignal.any([request.abortSignal, limit]) : limit
          // The metadata server of a managed identity is asked over http.
          if (request.url.startsWith("https:")) request.agent = agent
          return next(request)
        }
      }
      return { additionalPolicies: [{ policy, position: "perCall" }], retryOptions: { maxRetries: 0 } }
    }
  )
