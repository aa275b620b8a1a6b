import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { RingKeyLimits } from "../../application/keys/RingKeyLimits.js"
import { type KeyProvider, KeyProviderError, type ProviderKey } from "../../application/ports/KeyProvider.js"
import type { Secret } from "../fields/FileFields.js"
import * as Packages from "../Packages.js"

type Redact = Redacted.Redacted<string>

/** How a file's fields are read: problems are collected, so that all of them are told at once. */
export interface Reader {
  readonly say: (path: string, message: string) => void
  /** The secret; after a problem an empty one, of which nothing is made. */
  readonly secret: (path: string, reference: Secret) => Redact
  /** The same of a private key, which not every configuration may hold. */
  readonly privateKey: (path: string, reference: Secret) => Redact
  /** Relative to the file. */
  readonly path: (text: string) => string
}

/** What people are told of a kind. */
export interface Help {
  /** What it stands for. */
  readonly about: string
  /** What a key's name is in the provider's own terms. */
  readonly key: string
  /** The page of the documentation that tells how its keys are made. */
  readonly page: string
}

/** Which provider of the configuration it is. */
export interface Named<Kind extends string> {
  readonly kind: Kind
  readonly name: string
}

/** Everything by which one kind of key provider differs from the others. */
export interface KeyProviderKind<Entry, Encoded, Options> {
  /** A provider of this kind in the configuration file. */
  readonly schema: Schema.Codec<Entry, Encoded>
  /** Its options: secrets read, paths absolute. */
  readonly read: (entry: Entry, path: string, reader: Reader) => Options
  /** Loads the technology, whose packages are optional, and opens the provider. */
  readonly open: (options: Options) => Effect.Effect<KeyProvider, KeyProviderError, Scope.Scope>
  /** Where its keys need more time, or less traffic, than others. */
  readonly limits?: Partial<RingKeyLimits>
  /** What its keys are, known without asking. */
  readonly keyType: ProviderKey["type"]
  /** Makes a key that can not be extracted, under a label that is not taken: its public key. Absent: see `help.page`. */
  readonly create?: (options: Options, label: string) => Effect.Effect<string, KeyProviderError>
  readonly help: Help
}

/** Loads a technology when a provider of its kind is configured, and not before. `packages`: those of npm that it needs. */
export const loaded = <M, A, R>(
  kind: string,
  packages: ReadonlyArray<string>,
  load: () => Promise<M>,
  make: (module: M) => Effect.Effect<A, KeyProviderError, R>
): Effect.Effect<A, KeyProviderError, R> =>
  Effect.flatMap(
    Effect.tryPromise({
      try: load,
      catch: () =>
        new KeyProviderError({
          reason: "refused",
          message: `what kind ${kind} needs is not installed: ${Packages.installation(packages)}`
        })
    }),
    make
  )
