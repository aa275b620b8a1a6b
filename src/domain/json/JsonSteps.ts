import * as Result from "effect/Result"
import type { Steps } from "../primitives/Steps.js"

/** `JSON.parse` that stops now and then: of many megabytes, it holds the event loop for tenths of a second. */

/** Texts up to here are parsed in one go: some milliseconds, whatever is in them. In UTF-16 units. */
const atOnce = 65_536

/** Arrays and objects inside each other, of a long text. */
const maxDepth = 256

/** Values between two stops. */
const stride = 1_024

/**
 * From this length on a slice keeps the text that it is of in memory, for as long as it is there itself (V8). A copy
 * does not; the one slice that is most of the text may as well.
 */
const shortestHolding = 13

const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const blank = /[ \t\n\r]+/y
const special = /[\\\p{Cc}]/u

/** Never leaves this module: `parse` turns it into a `Failure`. */
class Malformed {}

/** An array or object whose end is still to come. */
type Open =
  | { readonly kind: "array"; readonly value: Array<unknown> }
  | { readonly kind: "object"; readonly value: Record<string, unknown>; name: string }

class Reader {
  private at = 0

  /** `plain`: no string of the text has a backslash or a control character. */
  constructor(
    private readonly text: string,
    private readonly plain: boolean
  ) {}

  /** The next character that is not blank, not consumed; empty at the end. */
  peek(): string {
    const unit = this.text.charCodeAt(this.at)
    if (unit === 0x20 || (unit >= 0x09 && unit <= 0x0d)) {
      blank.lastIndex = this.at
      this.at += blank.exec(this.text)?.[0].length ?? 0
    }
    return this.text.charAt(this.at)
  }

  take(character: string): boolean {
    if (this.peek() !== character) return false
    this.at += 1
    return true
  }

  expect(character: string): void {
    if (!this.take(character)) throw new Malformed()
  }

  string(): string {
    this.expect('"')
    const from = this.at
    for (;;) {
      const end = this.text.indexOf('"', this.at)
      if (end < 0) throw new Malformed()
      let slashes = 0
      while (this.text.charCodeAt(end - 1 - slashes) === 0x5c) slashes += 1
      this.at = end + 1
      if (slashes % 2 === 1) continue
      const slice = this.text.slice(from, end)
      const holds = slice.length >= shortestHolding && slice.length < this.text.length / 2
      return holds || (!this.plain && special.test(slice)) ? JSON.parse(`"${slice}"`) : slice
    }
  }

  /** A string, number or literal. */
  scalar(): unknown {
    const first = this.peek()
    if (first === '"') return this.string()
    for (const [word, value] of literals)
      if (first === word.charAt(0) && this.text.startsWith(word, this.at)) {
        this.at += word.length
        return value
      }
    number.lastIndex = this.at
    const found = number.exec(this.text)
    if (found === null) throw new Malformed()
    this.at += found[0].length
    return Number(found[0])
  }
}

const literals: ReadonlyArray<readonly [string, unknown]> = [
  ["true", true],
  ["false", false],
  ["null", null]
]

const put = (open: Open, value: unknown): void => {
  if (open.kind === "array") open.value.push(value)
  // As JSON.parse does it: a member __proto__ is data like any other.
  else if (open.name === "__proto__")
    Object.defineProperty(open.value, open.name, {
      value,
      configurable: true,
      enumerable: true,
      writable: true
    })
  else open.value[open.name] = value
}

const nameOf = (reader: Reader): string => {
  const name = reader.string()
  reader.expect(":")
  return name
}

/** Every value is put where it belongs, and every end that follows it is taken, before the next one is read. */
function* document(reader: Reader): Steps<unknown> {
  const above: Array<Open> = []
  for (let count = 1; ; count++) {
    if (count % stride === 0) yield
    if (above.length > maxDepth) throw new Malformed()
    let value: unknown
    if (reader.take("[")) {
      const open: Open = { kind: "array", value: [] }
      if (!reader.take("]")) {
        above.push(open)
        continue
      }
      value = open.value
    } else if (reader.take("{")) {
      if (!reader.take("}")) {
        above.push({ kind: "object", value: {}, name: nameOf(reader) })
        continue
      }
      value = {}
    } else value = reader.scalar()
    for (let open = above.at(-1); ; open = above.at(-1)) {
      if (open === undefined) {
        if (reader.peek() !== "") throw new Malformed()
        return value
      }
      put(open, value)
      if (reader.take(",")) {
        if (open.kind === "object") open.name = nameOf(reader)
        break
      }
      reader.expect(open.kind === "array" ? "]" : "}")
      value = open.value
      above.pop()
    }
  }
}

/**
 * What `JSON.parse` makes of the text; `Failure` where it throws, or where arrays and objects are inside each other too
 * deeply. `plain`: it is known that no string of the text has a backslash or a control character.
 */
export function* parse(text: string, plain = false): Steps<Result.Result<unknown, string>> {
  try {
    return Result.succeed(text.length <= atOnce ? JSON.parse(text) : yield* document(new Reader(text, plain)))
  } catch {
    return Result.fail("it is not JSON")
  }
}
