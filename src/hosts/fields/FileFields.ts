import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** One thing that is wrong, and where in the file: `accounts[0].tier`. */
export interface Problem {
  readonly path: string
  readonly message: string
}

/** A field that may be absent, and is not null then. */
export const optional = <A, I>(schema: Schema.Codec<A, I>) => Schema.optionalKey(schema)

/** Says what a field must be, in place of what its parts complain of. */
export const says = (message: string) => ({ message })

/** Annotation of schemas whose message goes on with what is there in the place of an integer. */
export const quoting = "castellan/quoting"

/** The same of an integer, and what is there in its place. */
export const saysInteger = (expected: string) => ({ message: `expected ${expected}`, [quoting]: true })

export const Name = Schema.Trimmed.check(Schema.isNonEmpty(), Schema.isMaxLength(128)).annotate(
  says("expected 1 to 128 characters without outer white space")
)

/** What a text is that requests can be sent to; where its secrets are, `Secret` says. */
export const isHttpUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { password, protocol, username } = new URL(text)
  return (protocol === "http:" || protocol === "https:") && username + password === ""
}

export const notHttpUrl = "expected an http or https URL without user information"

/** What stands behind a reference. */
export type ReadSecret = (path: string, reference: Secret) => Redacted.Redacted<string>

/** Reads a secret that has to be a URL. An unreadable secret is a problem already: nothing more is said of it. */
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

/** Where a secret is: never the secret itself, outside the development profile. */
export const Secret = Schema.Union([
  Schema.Struct({ env: Name }),
  Schema.Struct({ file: Name }),
  Text
]).annotate({
  identifier: "Secret",
  ...says('expected {"env": "NAME"} or {"file": "path"}; a text only in the development profile')
})
export type Secret = typeof Secret.Type
