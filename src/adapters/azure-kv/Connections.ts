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
        sendRequest: async (request, next) => {
          // Signals of AbortSignal.any may be collected before they fire.
          const ending = new AbortController()
          const end = () => ending.abort()
          const limit = setTimeout(end, timeoutMillis)
          const given = request.abortSignal
          given?.addEventListener("abort", end)
          if (given?.aborted === true) end()
          request.abortSignal = ending.signal
          // The metadata server of a managed identity is asked over http.
          if (request.url.startsWith("https:")) request.agent = agent
          try {
            return await next(request)
          } finally {
            clearTimeout(limit)
            given?.removeEventListener("abort", end)
          }
        }
      }
      return { additionalPolicies: [{ policy, position: "perCall" }], retryOptions: { maxRetries: 0 } }
    }
  )
