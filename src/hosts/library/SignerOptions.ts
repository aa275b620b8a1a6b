import type * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { KeySource, Provider, Registry, SystemRole } from "../../application/keys/KeyRingRegistry.js"
import type { KeyProvider } from "../../application/ports/KeyProvider.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import type { Address } from "../../domain/primitives/Address.js"

type PrivateKey = string | Redacted.Redacted<string>

/** A key: a private key, 32 bytes in hex, or a provider's key by its name there. */
export type Key =
  | { readonly privateKey: PrivateKey }
  | { readonly provider: string; readonly key: string; readonly address?: Address }

/** A key that requests name by `clientId` together with exactly one of `versionId` and `assetId`. */
export type Signer = Key & {
  readonly clientId: string
  readonly versionId?: string
  readonly assetId?: string
  /** Accounts whose requests may name the key. Default: the account of `caller()`. */
  readonly accounts?: ReadonlyArray<string>
  /** Lets several accounts use this key's EOA. For development. */
  readonly shared?: boolean
}

export interface Options {
  readonly signers: ReadonlyArray<Signer>
  readonly systemKeys?: { readonly [role in SystemRole]?: Key }
  readonly providers?: Readonly<Record<string, Provider>>
}

/** Account of a single-account program. */
export const defaultAccount = "default" as AccountId

/** Provider of the options' private keys; no provider's name is empty. */
const given = ""

/** The key ring's registry for the options. `open` creates the provider of their private keys. */
export const registry = (
  { providers, signers, systemKeys = {} }: Options,
  open: (keys: Readonly<Record<string, Redacted.Redacted<string>>>) => Effect.Effect<KeyProvider>
): Registry => {
  const keys: Record<string, Redacted.Redacted<string>> = {}
  const sourceOf = (path: string, key: Key): KeySource => {
    if (!("privateKey" in key)) {
      const { address, key: name, provider } = key
      return { provider, key: name, ...(address !== undefined && { address }) }
    }
    const { privateKey } = key
    keys[path] = Redacted.isRedacted(privateKey) ? privateKey : Redacted.make(privateKey)
    return { provider: given, key: path }
  }
  const records = signers.map((signer, index) => ({
    accountIds: (signer.accounts ?? [defaultAccount]) as ReadonlyArray<AccountId>,
    clientId: signer.clientId,
    versionId: signer.versionId,
    assetId: signer.assetId,
    shared: signer.shared,
    source: sourceOf(`signers[${index}].privateKey`, signer)
  }))
  const system = Object.fromEntries(
    Object.entries(systemKeys).map(([role, key]) => [role, sourceOf(`systemKeys.${role}.privateKey`, key)])
  )
  return {
    providers: { ...providers, [given]: { open: open(keys) } },
    signers: records,
    system
  }
}
