import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Name, optional, Secret, Text } from "../fields/FileFields.js"
import { KeyName } from "./KeyFields.js"
import { type KeyProviderKind, loaded, type Named, type Reader } from "./KeyProviderKind.js"

const kind = "private-key"

const Entry = Schema.Struct({
  name: KeyName,
  privateKey: optional(Secret),
  keystore: optional(Text),
  password: optional(Secret)
})

const schema = Schema.Struct({
  kind: Schema.Literal(kind),
  name: Name,
  keys: Schema.NonEmptyArray(Entry)
})

type Redact = Redacted.Redacted<string>
type Key = Redact | { readonly json: Redact; readonly password: Redact }

export interface Options extends Named<typeof kind> {
  readonly keys: Readonly<Record<string, Key>>
}

const keyOf = (
  { keystore, password, privateKey }: typeof Entry.Type,
  path: string,
  reader: Reader
): Key | null => {
  if (privateKey !== undefined && keystore === undefined && password === undefined)
    return reader.privateKey(`${path}.privateKey`, privateKey)
  if (privateKey === undefined && keystore !== undefined && password !== undefined)
    return {
      json: reader.secret(`${path}.keystore`, { file: keystore }),
      password: reader.secret(`${path}.password`, password)
    }
  reader.say(path, "needs either privateKey, or keystore and password")
  return null
}

/** Encrypted keystore files, and raw private keys. */
export const privateKeys: KeyProviderKind<typeof schema.Type, typeof schema.Encoded, Options> = {
  schema,
  read: ({ keys: entries, name }, path, reader) => {
    const keys = new Map<string, Key>()
    entries.forEach((entry, index) => {
      const at = `${path}.keys[${index}]`
      const key = keyOf(entry, at, reader)
      if (keys.has(entry.name)) reader.say(`${at}.name`, `another key is called ${entry.name}`)
      if (key !== null) keys.set(entry.name, key)
    })
    return { kind, name, keys: Object.fromEntries(keys) }
  },
  open: (options) =>
    loaded(
      kind,
      [],
      () => import("../../adapters/private-key/KeyProvider.js"),
      ({ make }) => make(options)
    ),
  // Keystores take about a second of work each.
  limits: { attemptMillis: 60_000, resolveMillis: 60_000 },
  keyType: "PRIVATE_KEY",
  help: {
    about: "encrypted keystore files, and raw private keys",
    key: "its `name` there",
    page: "docs/signers.md"
  }
}
