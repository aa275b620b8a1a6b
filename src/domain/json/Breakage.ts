/** Finds the place where a text stops being JSON: messages of engines quote the text, or omit the place. */

const blank = /[ \t\n\r]*/y
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
/** Characters after a backslash. */
const short = new Set(Array.from('"\\/bfnrt', (sign) => sign.charCodeAt(0)))
const code = /u[0-9a-fA-F]{4}/y
const words = ["true", "false", "null"]

const endOf = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

/** A value, a name or a sign: the place behind it; `broken`: the place of the fault. */
type Token = { readonly next: number } | { readonly broken: number }

const string = (text: string, start: number): Token => {
  for (let at = start + 1; ; ) {
    const unit = text.charCodeAt(at)
    if (unit === 0x22) return { next: at + 1 }
    if (unit !== 0x5c) {
      if (!(unit >= 0x20)) return { broken: at }
      at += 1
    } else if (short.has(text.charCodeAt(at + 1))) at += 2
    else if (endOf(code, text, at + 1) > at + 1) at += 6
    else return { broken: at + 1 >= text.length ? text.length : at }
  }
}

const scalar = (text: string, at: number): Token => {
  if (text[at] === '"') return string(text, at)
  const word = words.find((each) => each[0] === text[at])
  if (word !== undefined) {
    let same = 0
    while (same < word.length && text[at + same] === word[same]) same += 1
    return same === word.length ? { next: at + same } : { broken: at + same }
  }
  const next = endOf(number, text, at)
  return next > at ? { next } : { broken: text[at] === "-" ? at + 1 : at }
}

/** Tokens that may come next. */
type Expected = "value" | "valueOrEnd" | "name" | "nameOrEnd" | "colon" | "more"

/** The tokens that may follow a comma or a colon; null: the sign is neither. */
const behind = (
  expected: "more" | "colon",
  sign: string | undefined,
  closes: "}" | "]" | undefined
): Expected | null => {
  if (expected === "colon") return sign === ":" ? "value" : null
  if (sign !== ",") return null
  return closes === "}" ? "name" : "value"
}

/** The index at which a text stops being JSON, its length when it ends too early; null when it is JSON. */
const indexOf = (text: string): number | null => {
  const open: Array<"}" | "]"> = []
  let expected: Expected = "value"
  for (let at = 0; ; ) {
    at = endOf(blank, text, at)
    const sign = text[at]
    const closes = open.at(-1)
    if (expected === "more" && closes === undefined) return at === text.length ? null : at
    const mayEnd = expected === "more" || expected === (closes === "]" ? "valueOrEnd" : "nameOrEnd")
    if (mayEnd && sign === closes) {
      open.pop()
      expected = "more"
      at += 1
    } else if (expected === "more" || expected === "colon") {
      const next = behind(expected, sign, closes)
      if (next === null) return at
      expected = next
      at += 1
    } else if (expected === "name" || expected === "nameOrEnd") {
      const name: Token = sign === '"' ? string(text, at) : { broken: at }
      if ("broken" in name) return name.broken
      expected = "colon"
      at = name.next
    } else if (sign === "{" || sign === "[") {
      open.push(sign === "{" ? "}" : "]")
      expected = sign === "{" ? "nameOrEnd" : "valueOrEnd"
      at += 1
    } else {
      const value = scalar(text, at)
      if ("broken" in value) return value.broken
      expected = "more"
      at = value.next
    }
  }
}

const describe = (text: string, index: number | null): string => {
  if (index === null) return ""
  if (text.startsWith("\ufeff")) return ": it begins with a byte order mark"
  const before = text.slice(0, index)
  const line = before.split("\n").length
  const column = index - (before.lastIndexOf("\n") + 1) + 1
  return `${index >= text.length ? ": it ends too early," : ":"} line ${line}, column ${column}`
}

/** `: line 3, column 7`, or another description of the place; never its text, which may be a secret. Empty for JSON. */
export const describeIn = (text: string): string => describe(text, indexOf(text))
