import * as Schema from "effect/Schema"
import { says } from "../fields/FileFields.js"

/** A key in its provider's own terms: label, ARN, resource name. */
export const KeyName = Schema.Trimmed.check(Schema.isNonEmpty(), Schema.isMaxLength(512)).annotate(
  says("expected 1 to 512 characters without outer white space")
)

const loopback = new Set(["localhost", "127.0.0.1", "[::1]"])

/** Credentials travel to it: in the clear within the machine only. */
export const Url = Schema.String.check(
  Schema.makeFilter((text) => {
    if (!URL.canParse(text)) return false
    const { hostname, password, protocol, username } = new URL(text)
    return (
      username + password === "" &&
      (protocol === "https:" || (protocol === "http:" && loopback.has(hostname)))
    )
  })
).annotate(says("expected an https URL without credentials; http to a loopback address only"))
