import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { integer, Name, optional, Secret, Text } from "../fields/FileFields.js"
import { type KeyProviderKind, loaded, type Named } from "./KeyProviderKind.js"

const kind = "pkcs11"
const packages = ["pkcs11js"]

const schema = Schema.Struct({
  kind: Schema.Literal(kind),
  name: Name,
  module: Text,
  token: Name,
  pin: Secret,
  sessions: optional(integer(1, 64))
})

export interface Options extends Named<typeof kind> {
  readonly module: string
  readonly token: string
  readonly pin: Redacted.Redacted<string>
  readonly sessions?: number
}

/** An HSM, or any other token with a PKCS #11 library. */
export const pkcs11: KeyProviderKind<typeof schema.Type, typeof schema.Encoded, Options> = {
  schema,
  read: ({ module, name, pin, sessions, token }, path, reader) => ({
    kind,
    name,
    module: reader.path(module),
    token,
    pin: reader.secret(`${path}.pin`, pin),
    ...(sessions !== undefined && { sessions })
  }),
  open: (options) =>
    loaded(
      kind,
      packages,
      () => import("../../adapters/pkcs11/KeyProvider.js"),
      ({ make }) => make(options)
    ),
  keyType: "HSM",
  create: (options, label) =>
    loaded(
      kind,
      packages,
      () => import("../../adapters/pkcs11/KeyCreation.js"),
      ({ create }) => create(options, label)
    ),
  help: {
    about: "an HSM, or any other token with a PKCS #11 library",
    key: "the key's label, or `id:` and its id in hex",
    page: "docs/signers/pkcs11.md"
  }
}
