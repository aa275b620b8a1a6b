import type { KeyClient, KeyClientOptions } from "@azure/keyvault-keys"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { KeyProviderError } from "../../application/ports/KeyProvider.js"
import * as Failure from "./Failure.js"

/** Gives out tokens for the vault. */
export type TokenCredential = ConstructorParameters<typeof KeyClient>[1]

/** An application of Microsoft Entra. */
export interface Credentials {
  readonly tenantId: string
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted<string>
  /** Absent: the public cloud's, https://login.microsoftonline.com. */
  readonly authorityHost?: string | undefined
}

/**
 * The application's tokens, or those of the places where the SDK looks by default (environment, workload and managed
 * identity, the tools of a developer). Only the application's own authority is asked for them.
 */
export const make = (
  credentials: Credentials | undefined,
  connections: Pick<KeyClientOptions, "additionalPolicies" | "retryOptions">
): Effect.Effect<TokenCredential, KeyProviderError> =>
  Effect.tryPromise({
    try: async () => {
      const { ClientSecretCredential, DefaultAzureCredential } = await import("@azure/identity")
      if (credentials === undefined) return new DefaultAzureCredential(connections)
      const { authorityHost, clientId, clientSecret, tenantId } = credentials
      return new ClientSecretCredential(tenantId, clientId, Redacted.value(clientSecret), {
        ...connections,
        disableInstanceDiscovery: true,
        ...(authorityHost === undefined ? {} : { authorityHost })
      })
    },
    catch: () => Failure.make("refused", "the credentials can not be used")
  })
