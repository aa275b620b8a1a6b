import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** A problem and its path in the file, for example `accounts[0].tier`. */
export interface Problem {
  readonly path: string
  readonly message: string
}

/** An optional field; null is not accepted. */
export const optional = <A, I>(schema: Schema.Codec<A, I>) => Schema.optionalKey(schema)

/** Message for the whole field, replacing its parts' messages. */
export const says = (message: string) => ({ message })

/** Annotation of schemas whose message quotes the value found instead of an integer. */
export const quoting = "castellan/quoting"

/** Message for an integer field, quoting the value found. */
export const saysInteger = (expected: string) => ({ message: `expected ${expected}`, [quoting]: true })

export const Name = Schema.Trimmed.check(Schema.isNonEmpty(), Schema.isMaxLength(128)).annotate(
  says("expected 1 to 128 characters without outer white space")
)

export const isHttpUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { password, protocol, username } = new URL(text)
  return (protocol === "http:" || protocol === "https:") && username + password === ""
}

export const notHttpUrl = "expected an http or https URL without user information"

/** Resolves a reference to its secret. */
export type ReadSecret = (path: string, reference: Secret) => Redacted.Redacted<string>

/** Reads a secret URL. An unreadable secret is already a problem, so no second one is reported. */
export const urlReader =
  (secret: ReadSecret, say: (path: string, message: string) => void): ReadSecret =>
  (path, reference) => {
    const url = secret(path, reference)
    const text = Redacted.value(url)
    if (text !== "" && !isHttpUrl(text)) say(path, notHttpUrl)
    return url
  }

export const integer = (from: number, to: number) =>
  Schema.Int.check(Schema.isBetween({ minimum: from, maximum: to })).annotate(
    saysInteger(`an integer from ${from} to ${to}`)
  )

export const Text = Schema.String.check(Schema.isNonEmpty({ expected: "a non empty string" }))

/** Reference to a secret; only the development profile allows the secret itself. */
export const Secret = Schema.Union([
  Schema.Struct({ env: Name }),
  Schema.Struct({ file: Name }),
  Text
]).annotate({
  identifier: "Secret",
  ...says('expected {"env": "NAME"} or {"file": "path"}; a text only in the development profile')
})
export type Secret = typeof Secret.Type
