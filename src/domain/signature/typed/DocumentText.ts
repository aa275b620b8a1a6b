import * as Result from "effect/Result"
import * as Breakage from "../../json/Breakage.js"
import * as Json from "../../json/Json.js"

/**
 * Recognises text that means to be EIP-712 typed data. A damaged or embedded document must not be signed as plain text:
 * its verifier would expect another signature.
 */

const names = ["types", "primaryType"]

/** Byte order marks, as such and as Latin-1 shows them, and white space, visible or not. */
const blank = "(?:\\u00ef\\u00bb\\u00bf|[\\s\\ufeff\\u200b-\\u200d\\u2060])*"

/** An object or an array, perhaps within quotes, escaped or not. */
const opening = new RegExp(`^${blank}(?:["'\`(\\\\]+${blank})?[{[]`)

/** A member's name in any quotes, or as the last name before the text is cut off. */
const quoted = /["'`\u201c\u2018\\](?:types|primaryType)(?:["'`\u201d\u2019\\]+\s*(?:[:={[]|$)|$)/

/** A name without quotes, as in JavaScript. */
const bare = /(?:[{,(\n]|\*\/)[ \t]*(?:types|primaryType)[ \t]*:/

const isNamed = (text: string): boolean => quoted.test(text) || bare.test(text)

/** A value of parsed JSON, and the way to it. */
interface Place {
  readonly value: unknown
  readonly step: string | number
  readonly above: Place | null
}

/** Longest reported path, in steps. */
const mostSteps = 32

const pathOf = (place: Place): string => {
  const steps: Array<string | number> = []
  for (let at = place; at.above !== null; at = at.above) steps.push(at.step)
  return steps
    .reverse()
    .slice(0, mostSteps)
    .reduce<string>(
      (path, step) => (typeof step === "number" ? `${path}[${step}]` : Json.member(path, step)),
      ""
    )
}

/** Most strings inside each other. */
const mostTexts = 3

const parsed = (text: string): Result.Result<unknown, unknown> =>
  Result.try(() => JSON.parse(text) as unknown)

/** Whether a string inside JSON means to be a document. */
const isInText = (text: string, texts: number): boolean => {
  if (texts >= mostTexts || !opening.test(text) || !isNamed(text)) return false
  return Result.match(parsed(text), {
    onFailure: () => true,
    onSuccess: (value) => find(value, texts + 1) !== null
  })
}

/** The first object with a member of such a name, or text of one. */
const find = (root: unknown, texts: number): Place | null => {
  const open: Array<Place> = [{ value: root, step: "", above: null }]
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const { value } = place
    if (typeof value === "string" && isInText(value, texts)) return place
    if (typeof value !== "object" || value === null) continue
    if (Array.isArray(value)) {
      for (let index = value.length - 1; index >= 0; index--)
        open.push({ value: value[index], step: index, above: place })
    } else {
      if (names.some((name) => Object.hasOwn(value, name))) return place
      for (const [step, inside] of Object.entries(value).reverse())
        open.push({ value: inside, step, above: place })
    }
  }
  return null
}

const at = (path: string, message: string): string => (path === "" ? message : `${path}: ${message}`)

/** A refusal of strict JSON, in one line. */
export const refusal = ({ message, path }: Json.Refusal): string => at(path, message)

/** The meaning of a text. Null: not a document; otherwise a document, and its first problem, if any. */
export const of = (text: string, maxLength: number): { readonly problem: string | null } | null => {
  if (!opening.test(text)) return null
  if (text.length > maxLength)
    return isNamed(text) ? { problem: `the typed data is longer than ${maxLength} characters` } : null
  const json = parsed(text)
  if (Result.isFailure(json))
    return isNamed(text) ? { problem: `the typed data is not JSON${Breakage.describeIn(text)}` } : null
  const place = find(json.success, 0)
  if (place === null) return null
  if (place.above === null && typeof place.value !== "string") return { problem: null }
  const problem =
    typeof place.value === "string"
      ? "the typed data is encoded twice, as text inside of JSON: sign the document itself"
      : "the typed data is inside of another value: sign the document itself"
  return { problem: at(pathOf(place), problem) }
}
