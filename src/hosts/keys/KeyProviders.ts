import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Provider as RingProvider } from "../../application/keys/KeyRingRegistry.js"
import type { KeyProviderError } from "../../application/ports/KeyProvider.js"
import { awsKms } from "./AwsKms.js"
import { azureKeyVault } from "./AzureKeyVault.js"
import { fireblocks } from "./Fireblocks.js"
import { gcpKms } from "./GcpKms.js"
import type { KeyProviderKind, Named, Reader } from "./KeyProviderKind.js"
import { pkcs11 } from "./Pkcs11.js"
import { privateKeys } from "./PrivateKeys.js"

/** The kinds of key providers, by what the configuration calls them. One that is new is a file and a line here. */
const list = {
  "private-key": privateKeys,
  pkcs11,
  "aws-kms": awsKms,
  "gcp-kms": gcpKms,
  "azure-kv": azureKeyVault,
  fireblocks
}
type List = typeof list

export type Kind = keyof List

type Entries = { readonly [K in Kind]: List[K]["schema"]["Type"] }
type Options = { readonly [K in Kind]: Parameters<List[K]["open"]>[0] }

export const kinds: {
  readonly [K in Kind]: KeyProviderKind<Entries[K], List[K]["schema"]["Encoded"], Options[K]>
} = list

/** A provider in the configuration file. Which fields there are beside `name` goes by `kind`. */
export const Entry = Schema.Union(Object.values(list).map(({ schema }) => schema))
export type Entry<K extends Kind = Kind> = { readonly [P in K]: Named<P> & Entries[P] }[K]

/** A provider of the configuration with its options: secrets read, paths absolute. */
export type Configured<K extends Kind = Kind> = {
  readonly [P in K]: Named<P> & Options[P]
}[K]

/** Reads the options of a provider. */
export const read = <K extends Kind>(entry: Entry<K>, path: string, reader: Reader): Options[K] =>
  kinds[entry.kind].read(entry, path, reader)

/** What a configured provider is to the key ring. */
export const provider = <K extends Kind>(configured: Configured<K>): RingProvider => {
  const { limits, open } = kinds[configured.kind]
  return { open: open(configured), limits }
}

/** Makes a key at the provider, under a label that is not taken: its public key. Null: keys of its kind are made elsewhere. */
export const createKey = <K extends Kind>(
  configured: Configured<K>,
  label: string
): Effect.Effect<string, KeyProviderError> | null =>
  kinds[configured.kind].create?.(configured, label) ?? null
