/**
 * Text of a configuration file: JSON with comments. Edits keep everything else as an operator wrote it.
 */

/** The text as JSON: comments become spaces, so that offsets are unchanged. */
export const json = (text: string): string =>
  text.replace(
    /("(?:\\.|[^"\\\n])*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (all: string, quoted: string | undefined) => quoted ?? all.replace(/[^\n]/g, " ")
  )

type Key = string | number

interface Span {
  readonly start: number
  readonly end: number
  /** Members of an object or elements of an array, in their order; null: a scalar. */
  readonly parts: ReadonlyMap<Key, Span> | null
}

/** Places of the values in a valid JSON text. */
const spans = (text: string): Span => {
  let at = 0
  const token = (pattern: RegExp): string => {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0] ?? ""
    at += found.length
    return found
  }
  const space = () => token(/\s*/y)
  const members = (close: string, key: (index: number) => Key): ReadonlyMap<Key, Span> => {
    const parts = new Map<Key, Span>()
    at += 1
    space()
    while (text[at] !== close) {
      const name = key(parts.size)
      parts.set(name, value())
      space()
      if (text[at] === ",") at += 1
      space()
    }
    at += 1
    return parts
  }
  const name = (): Key => {
    const key: string = JSON.parse(token(/"(?:\\.|[^"\\])*"/y))
    token(/\s*:/y)
    return key
  }
  const value = (): Span => {
    space()
    const start = at
    const parts = text[at] === "{" ? members("}", name) : text[at] === "[" ? members("]", Number) : null
    if (parts === null) token(/"(?:\\.|[^"\\])*"|[^\s,\]}]+/y)
    return { start, end: at, parts }
  }
  return value()
}

const indentJson = (value: unknown, indent: string): string =>
  JSON.stringify(value, null, 2).replaceAll("\n", `\n${indent}`)

const lineIndent = (text: string, at: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", at - 1) + 1))?.[0] ?? ""

/** The text with this value at a path, whose last member may be new. The text must be valid. */
export const set = (text: string, path: ReadonlyArray<Key>, value: unknown): string => {
  const plain = json(text)
  let container = spans(plain)
  for (const key of path.slice(0, -1)) {
    const next = container.parts?.get(key)
    if (next === undefined) throw new Error(`the text has no ${path.join(".")}`)
    container = next
  }
  const last = path.at(-1) ?? ""
  const parts = container.parts ?? new Map<Key, Span>()
  const present = parts.get(last)
  if (present !== undefined)
    return (
      text.slice(0, present.start) +
      indentJson(value, lineIndent(text, present.start)) +
      text.slice(present.end)
    )
  const before = [...parts.values()].at(-1)
  const outer = lineIndent(text, container.start)
  const isOneLine = !text.slice(container.start, container.end).includes("\n")
  const indent = before === undefined || isOneLine ? `${outer}  ` : lineIndent(text, before.start)
  const member = `${typeof last === "string" ? `${JSON.stringify(last)}: ` : ""}${indentJson(value, isOneLine ? outer : indent)}`
  if (before === undefined)
    return `${text.slice(0, container.start + 1)}\n${indent}${member}\n${outer}${text.slice(container.end - 1)}`
  if (isOneLine) return `${text.slice(0, before.end)}, ${member}${text.slice(before.end)}`
  const line = text.indexOf("\n", before.end)
  return `${text.slice(0, before.end)},${text.slice(before.end, line)}\n${indent}${member}${text.slice(line)}`
}
