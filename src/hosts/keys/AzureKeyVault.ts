import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Name, optional, Secret } from "../fields/FileFields.js"
import { Url } from "./KeyFields.js"
import { type KeyProviderKind, loaded, type Named } from "./KeyProviderKind.js"

const kind = "azure-kv"

const schema = Schema.Struct({
  kind: Schema.Literal(kind),
  name: Name,
  vaultUrl: Url,
  credentials: optional(
    Schema.Struct({ tenantId: Name, clientId: Name, clientSecret: Secret, authorityHost: optional(Url) })
  )
})

export interface Options extends Named<typeof kind> {
  readonly vaultUrl: string
  readonly credentials?: {
    readonly tenantId: string
    readonly clientId: string
    readonly clientSecret: Redacted.Redacted<string>
    readonly authorityHost?: string
  }
}

/** Azure Key Vault and Managed HSM. */
export const azureKeyVault: KeyProviderKind<typeof schema.Type, typeof schema.Encoded, Options> = {
  schema,
  read: ({ credentials, name, vaultUrl }, path, { secret }) => {
    if (credentials === undefined) return { kind, name, vaultUrl }
    const clientSecret = secret(`${path}.credentials.clientSecret`, credentials.clientSecret)
    return { kind, name, vaultUrl, credentials: { ...credentials, clientSecret } }
  },
  open: (options) =>
    loaded(
      kind,
      ["@azure/keyvault-keys", "@azure/identity"],
      () => import("../../adapters/azure-kv/KeyProvider.js"),
      ({ make }) => make(options)
    ),
  keyType: "KMS",
  help: {
    about: "Azure Key Vault and Managed HSM",
    key: "`name/version`",
    page: "docs/signers/azure-kv.md"
  }
}
