import * as Result from "effect/Result"
import * as Breakage from "./Breakage.js"

/**
 * Strict JSON. JSON.parse keeps only the last of two members of one name, so two readers of a document may see
 * different requests, and rounds numbers that a double does not hold. Here such a document is refused, and so is a
 * document with a member `__proto__`, which no honest client sends.
 */

/** Bounds on the shape of a document. */
export interface Bounds {
  /** Most elements of one array. */
  readonly maxElements: number
  /** The one member of the value itself that is an array with another bound; none when left out. */
  readonly longest?: { readonly name: string; readonly maxElements: number }
  /** Most members of one object. Default: any number. */
  readonly maxMembers?: number
  /** Most arrays and objects inside each other. */
  readonly maxDepth: number
  /** Most values in all, members and elements of arrays and objects alike. Default: any number. */
  readonly maxValues?: number
  /**
   * Members whose own number may be written with a fraction or an exponent. Elsewhere an integer has to be written as
   * one: 1, not 1.0 or 1e0. Default: all may.
   */
  readonly decimals?: ReadonlySet<string>
}

/** For text of the operator's own. */
export const unbounded: Bounds = {
  maxElements: Number.POSITIVE_INFINITY,
  maxDepth: Number.POSITIVE_INFINITY
}

/**
 * A refusal of a text.
 *
 * - `malformed`: it is not JSON
 * - `name`: a member's name occurs twice in one object, or is not allowed
 * - `number`: a number loses digits once it is parsed, or is an integer and is not written as one
 * - `bounds`: it is larger than the bounds
 */
export interface Refusal {
  readonly kind: "malformed" | "name" | "number" | "bounds"
  readonly path: string
  readonly message: string
}

/** Longest text of a caller's own that an answer repeats, in UTF-16 units. */
const echo = 64

/** A member name as one step of a path: `.name`, or `["other text"]`. */
export const member = (path: string, name: string): string => {
  if (/^[A-Za-z_$][\w$]{0,63}$/.test(name)) return path === "" ? name : `${path}.${name}`
  return `${path}[${JSON.stringify(name.length > echo ? `${name.slice(0, echo)}...` : name)}]`
}

/** An enclosing array or object of the walk. */
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

/** Characters of a number: in JSON no other text follows a number directly. */
const numberUnits = /[-+.0-9eE]*/y

/** The index behind the number that starts at `start`. */
const numberEnd = (text: string, start: number): number => {
  numberUnits.lastIndex = start
  numberUnits.test(text)
  return numberUnits.lastIndex
}

const plain = /^[1-9][0-9]{0,14}$|^0$/
const shape = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/

/** Most digits of an exponent: beyond them a number is infinite, or zero. */
const exponentDigits = 8

/** One form for all spellings of a number: its significant digits and the power of ten of the last one. */
const normal = (text: string): string | null => {
  const [, sign, units, decimals = "", exponent = "0"] = shape.exec(text) ?? []
  if (sign === undefined || units === undefined || exponent.length > exponentDigits) return null
  const digits = (units + decimals).replace(/^0+/, "")
  let end = digits.length
  while (end > 0 && digits.charCodeAt(end - 1) === 0x30) end--
  if (end === 0) return `${sign}0`
  return `${sign}${digits.slice(0, end)}e${Number(exponent) - decimals.length + digits.length - end}`
}

/**
 * True when `JSON.parse` makes the written number of this text: its shortest decimal text (`String`) is the same
 * number. 50.10 and 1e3 are exact. 9007199254740993, 0.1000000000000000000001 and 1e400 are not, and neither is -0,
 * which readers do not distinguish from 0.
 */
const isExact = (text: string): boolean => {
  if (plain.test(text)) return true
  const written = normal(text)
  return written !== null && written !== "-0" && written === normal(String(Number(text)))
}

const quote = 0x22
const open = { object: 0x7b, array: 0x5b }
const close = { object: 0x7d, array: 0x5d }
const comma = 0x2c
const minus = 0x2d

/** Walks valid JSON text, and yields each break of the rules, in order. */
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: a walk over bytes; calls in its loop cost as much as the work.
function* refusals(
  text: string,
  { decimals, longest, maxDepth, maxElements, maxMembers = Number.POSITIVE_INFINITY }: Bounds
): Generator<Refusal, void> {
  const frames: Array<Frame> = []
  let top: Frame | undefined
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) {
      const end = closing(text, at)
      if (top?.names && top.atName) {
        const raw = text.slice(at, end + 1)
        const name: string = raw.includes("\\") ? JSON.parse(raw) : raw.slice(1, -1)
        top.name = name
        top.atName = false
        if (top.names.has(name)) yield refuse("name", frames, "the name occurs twice in one object")
        if (name === "__proto__") yield refuse("name", frames, "the name is not allowed")
        top.names.add(name)
        if (top.names.size > maxMembers) yield beyond(frames, `expected at most ${maxMembers} members`)
      }
      at = end
    } else if (unit === open.object || unit === open.array) {
      top = { names: unit === open.object ? new Set() : null, name: "", index: 0, atName: true }
      frames.push(top)
      if (frames.length > maxDepth) yield beyond(frames, `nested more than ${maxDepth} levels deep`)
    } else if (unit === close.object || unit === close.array) {
      frames.pop()
      top = frames.at(-1)
    } else if (unit === comma) {
      if (top?.names) top.atName = true
      else if (top && ++top.index >= Math.min(maxElements, longest?.maxElements ?? maxElements)) {
        const isLongest = longest !== undefined && frames.length === 2 && frames[0]?.name === longest.name
        const most = isLongest ? longest.maxElements : maxElements
        if (top.index >= most) yield beyond(frames, `expected at most ${most} elements`)
      }
    } else if (unit === minus || (unit >= 0x30 && unit <= 0x39)) {
      const end = numberEnd(text, at)
      if (!isExact(text.slice(at, end)))
        yield refuse("number", frames, "the JSON number would lose digits: write it as a string")
      const mayBeDecimal = decimals === undefined || (top?.names != null && decimals.has(top.name))
      if (!mayBeDecimal && isDisguised(text.slice(at, end)))
        yield refuse("number", frames, "the JSON number must be written as an integer")
      at = end - 1
    }
  }
}

/** An integer that is written with a fraction or an exponent. */
const isDisguised = (number: string): boolean => /[.eE]/.test(number) && Number.isInteger(Number(number))

const refuse = (kind: Refusal["kind"], frames: ReadonlyArray<Frame>, message: string): Refusal => ({
  kind,
  path: pathOf(frames),
  message
})

/** The bound was passed by the innermost frame. */
const beyond = (frames: ReadonlyArray<Frame>, message: string): Refusal =>
  refuse("bounds", frames.slice(0, -1), message)

/** Parses a text with `JSON.parse`, bounded by `maxValues`; `refusal` checks the other bounds and rules. */
export const read = (text: string, { maxValues }: Bounds): Result.Result<unknown, Refusal> => {
  if (maxValues !== undefined && holdsMore(text, maxValues))
    return Result.fail({ kind: "bounds", path: "", message: `expected at most ${maxValues} values in all` })
  try {
    return Result.succeed(JSON.parse(text))
  } catch {
    const message =
      text.trim() === ""
        ? "the body is empty"
        : `the body is not one JSON document${Breakage.describeIn(text)}`
    return Result.fail({ kind: "malformed", path: "", message })
  }
}

/** The first break of the rules or the bounds in JSON text; otherwise null. */
export const refusal = (text: string, bounds: Bounds): Refusal | null => {
  for (const first of refusals(text, bounds)) return first
  return null
}

/** The one document that a text is, within the bounds. */
export const parse = (text: string, bounds: Bounds): Result.Result<unknown, Refusal> =>
  Result.flatMap(read(text, bounds), (value) => {
    const refused = refusal(text, bounds)
    return refused === null ? Result.succeed(value) : Result.fail(refused)
  })

/** JSON text; bigints as decimal strings. */
export const print = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === "bigint" ? part.toString() : part))

/** Whether text, JSON or not, holds more values than that: commas and openings of arrays and objects precede values. */
export const holdsMore = (text: string, most: number): boolean => {
  let count = 1
  for (let at = 0; at < text.length && count <= most; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) {
      for (at++; at < text.length && text.charCodeAt(at) !== quote; at++)
        if (text.charCodeAt(at) === 0x5c) at++
    } else if (unit === comma || unit === open.array || unit === open.object) count += 1
  }
  return count > most
}
