import * as Either from "effect/Either"

/** Bounds on the shape of a document. */
export interface Bounds {
  /** Most elements of one array. */
  readonly maxElements: number
  /** Most arrays and objects inside each other. */
  readonly maxDepth: number
}

/** Why a text is refused: not JSON at all, or JSON beyond the rules of this module. */
export interface Refusal {
  readonly code: "invalid_json" | "invalid_request"
  readonly path: string
  readonly message: string
}

/** Longest text of a caller's own that is repeated to him, in UTF-16 units. */
const echo = 64

/** A member name as one step of a path: `.name`, or `["other text"]`. */
export const member = (path: string, name: string): string => {
  if (/^[A-Za-z_$][\w$]{0,63}$/.test(name)) return path === "" ? name : `${path}.${name}`
  return `${path}[${JSON.stringify(name.length > echo ? `${name.slice(0, echo)}...` : name)}]`
}

/** An array or object that the walk is inside of. */
interface Frame {
  /** Members seen so far; null: an array. */
  readonly names: Set<string> | null
  name: string
  index: number
  atName: boolean
}

const pathOf = (frames: ReadonlyArray<Frame>): string =>
  frames.reduce(
    (path, frame) => (frame.names === null ? `${path}[${frame.index}]` : member(path, frame.name)),
    ""
  )

/** The index of the quote that closes the string opened at `start`. */
const closing = (text: string, start: number): number => {
  for (let at = start + 1; ; at++) {
    const unit = text.charCodeAt(at)
    if (unit === 0x5c) at++
    else if (unit === 0x22) return at
  }
}

/**
 * Walks text that is known to be JSON. JSON.parse keeps only the last of two members of one name, so that two
 * readers of a document may see different requests; here such a document is none. So is one that has a member
 * `__proto__`, which nobody sends in good faith.
 */
const check = (text: string, bounds: Bounds): Refusal | null => {
  const frames: Array<Frame> = []
  for (let at = 0; at < text.length; at++) {
    const top = frames.at(-1)
    switch (text[at]) {
      case '"': {
        const end = closing(text, at)
        if (top?.names && top.atName) {
          const raw = text.slice(at, end + 1)
          const name: string = raw.includes("\\") ? JSON.parse(raw) : raw.slice(1, -1)
          top.name = name
          top.atName = false
          if (top.names.has(name)) return invalid(frames, "the name occurs twice in one object")
          if (name === "__proto__") return invalid(frames, "the name is not allowed")
          top.names.add(name)
        }
        at = end
        break
      }
      case "{":
        frames.push({ names: new Set(), name: "", index: 0, atName: true })
        if (frames.length > bounds.maxDepth)
          return beyond(frames, `nested more than ${bounds.maxDepth} levels deep`)
        break
      case "[":
        frames.push({ names: null, name: "", index: 0, atName: false })
        if (frames.length > bounds.maxDepth)
          return beyond(frames, `nested more than ${bounds.maxDepth} levels deep`)
        break
      case "}":
      case "]":
        frames.pop()
        break
      case ",":
        if (top?.names) top.atName = true
        else if (top && ++top.index >= bounds.maxElements)
          return beyond(frames, `expected at most ${bounds.maxElements} elements`)
        break
    }
  }
  return null
}

const invalid = (frames: ReadonlyArray<Frame>, message: string): Refusal => ({
  code: "invalid_json",
  path: pathOf(frames),
  message
})

/** The bound was passed by the innermost frame. */
const beyond = (frames: ReadonlyArray<Frame>, message: string): Refusal => ({
  code: "invalid_request",
  path: pathOf(frames.slice(0, -1)),
  message
})

/** Strict JSON: one document, no member twice, within the bounds. */
export const parse = (text: string, bounds: Bounds): Either.Either<unknown, Refusal> => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The engine's own message quotes the text.
    const message = text.trim() === "" ? "the body is empty" : "the body is not one JSON document"
    return Either.left({ code: "invalid_json", path: "", message })
  }
  const refusal = check(text, bounds)
  return refusal === null ? Either.right(value) : Either.left(refusal)
}

/** JSON text; bigints as decimal strings. */
export const print = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === "bigint" ? part.toString() : part))
