import * as Result from "effect/Result"
import * as EntryPointReason from "../erc4337/EntryPointReason.js"
import * as Hex from "../primitives/Hex.js"
import * as ErrorDefinition from "./ErrorDefinition.js"
import { canonicalList, type Parameter } from "./Parameter.js"
import * as Values from "./Values.js"

/** Decoded revert data. */
export interface Revert {
  readonly kind: "error" | "panic" | "failedOp" | "custom" | "unknown" | "empty"
  /** The error's name; null for `unknown` and `empty`. */
  readonly name: string | null
  /** By name, or an array when an argument has none; null for `unknown` and `empty`. */
  readonly args: Values.Json
  /** One line of at most `maxMessage` characters without control characters, for the API's callers. */
  readonly message: string
  /** `AA24`, from the EntryPoint. */
  readonly code: string | null
}

/** Characters of a message. */
export const maxMessage = 1_024

const maxText = 256
const maxShownBytes = 68
const maxShownElements = 8

/** Inner reverts (`FailedOpWithRevert`, `PostOpReverted`) decoded per revert, at all levels. */
const maxInner = 8

/** Errors of one selector that are tried: four bytes collide, by chance or by design. */
const maxCandidates = 8

const panics: ReadonlyMap<string, string> = new Map([
  ["0", "generic compiler panic"],
  ["1", "assertion failed"],
  ["17", "arithmetic overflow or underflow"],
  ["18", "division or modulo by zero"],
  ["33", "value is not a member of the enum"],
  ["34", "storage byte array is badly encoded"],
  ["49", "pop of an empty array"],
  ["50", "array index out of bounds"],
  ["65", "too much memory allocated"],
  ["81", "call of an uninitialised internal function"]
])

/** Errors known without any definition. */
const standard: ReadonlyArray<ErrorDefinition.ErrorDefinition> = [
  "error Error(string reason)",
  "error Panic(uint256 code)",
  "error FailedOp(uint256 opIndex, string reason)",
  "error FailedOpWithRevert(uint256 opIndex, string reason, bytes inner)"
].flatMap((text) =>
  Result.match(ErrorDefinition.parse(text), { onFailure: () => [], onSuccess: (definition) => [definition] })
)

// A contract chooses its reasons: line breaks would forge log lines, direction marks reorder what is displayed.
const unsafeCharacters = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\u2028\u2029]/gu

/** Whole characters up to `length`, `...` for omitted text. */
const shorten = (text: string, length: number): string => {
  if (text.length <= length) return text
  const cut = text.slice(0, length - 3)
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}...`
}

/** Foreign text in one line of bounded length, without control characters. */
export const oneLine = (text: string, length = maxText): string =>
  shorten(
    text
      .slice(0, 4 * length)
      .replace(unsafeCharacters, " ")
      .trim(),
    length
  )

const shownBytes = (hex: string): string => {
  const size = (hex.length - 2) / 2
  return size <= maxShownBytes ? hex : `${hex.slice(0, 2 + 2 * maxShownBytes)}... (${size} bytes)`
}

/** Bytes from which on revert data may be shortened ones: the EntryPoint hands on 2,048 bytes of an inner revert. */
const cutFrom = 512

/** Source of definitions, and the number of inner reverts still to decode. */
interface Decoding {
  readonly candidates: (selector: string) => ReadonlyArray<ErrorDefinition.ErrorDefinition>
  /** Whether the data are part of shortened data. */
  cut: boolean
  innerLeft: number
}

/** The message of inner revert data; null when they have none. */
const innerMessage = (decoding: Decoding, data: Values.Json | undefined): string | null => {
  if (decoding.innerLeft === 0 || typeof data !== "string") return null
  decoding.innerLeft -= 1
  const { kind, message } = decodeWith(decoding, Hex.unsafe(data))
  return kind === "unknown" || kind === "empty" ? null : message
}

const shownValue = (decoding: Decoding, type: Parameter["base"], value: Values.Json): string => {
  if (typeof value === "string") {
    if (type.kind === "string") return JSON.stringify(oneLine(value))
    if (type.kind !== "bytes") return value
    return innerMessage(decoding, value) ?? shownBytes(value)
  }
  if (type.kind === "array" && Array.isArray(value)) {
    const shown = value
      .slice(0, maxShownElements)
      .map((element: Values.Json) => shownValue(decoding, type.element, element))
    return `[${shown.join(", ")}${value.length > maxShownElements ? `, ... (${value.length} elements)` : ""}]`
  }
  if (type.kind === "tuple" && typeof value === "object" && value !== null)
    return `(${shownList(decoding, type.components, Object.values(value))})`
  return String(value)
}

const shownList = (
  decoding: Decoding,
  parameters: ReadonlyArray<Parameter>,
  values: ReadonlyArray<Values.Json>
): string =>
  parameters
    .map(({ base, name }, i) => {
      const value = shownValue(decoding, base, values[i] ?? null)
      return name === "" ? value : `${name}: ${value}`
    })
    .join(", ")

const explained = (
  reason: string,
  inner: string
): { readonly message: string; readonly code: string | null } => {
  const found = EntryPointReason.find(reason)
  const first = `${oneLine(reason) || "failed without a reason"}${inner === "" ? "" : ` (${inner})`}`
  return found === null
    ? { message: first, code: null }
    : { message: `${first}: ${found.meaning}; ${found.remedy}`, code: found.code }
}

const text = (value: Values.Json | undefined): string => (typeof value === "string" ? value : "")

const described = (
  decoding: Decoding,
  definition: ErrorDefinition.ErrorDefinition,
  values: ReadonlyArray<Values.Json>
): Pick<Revert, "kind" | "message" | "code"> => {
  // By signature, whatever the source: a caller's ABI may list these errors as well.
  switch (`${definition.name}${canonicalList(definition.inputs)}`) {
    case "Error(string)": {
      const reason = text(values[0])
      // Some checks of the EntryPoint itself are plain reasons; a contract's own text stays unchanged.
      if (/^AA[49]/.test(reason)) return { kind: "error", ...explained(reason, "") }
      return { kind: "error", message: oneLine(reason) || "reverted with an empty reason", code: null }
    }
    case "Panic(uint256)": {
      const code = BigInt(text(values[0]))
      const meaning = panics.get(code.toString()) ?? "unknown panic code"
      const shown = `Panic(0x${code.toString(16).padStart(2, "0")})`
      return { kind: "panic", message: `${shown}: ${meaning}`, code: null }
    }
    case "FailedOp(uint256,string)":
      return { kind: "failedOp", ...explained(text(values[1]), "") }
    case "FailedOpWithRevert(uint256,string,bytes)": {
      const inner = text(values[2])
      const shown = inner === Hex.empty ? "" : (innerMessage(decoding, inner) ?? shownBytes(inner))
      return { kind: "failedOp", ...explained(text(values[1]), shown) }
    }
    default:
      return {
        kind: "custom",
        message: `${definition.name}(${shownList(decoding, definition.inputs, values)})`,
        code: null
      }
  }
}

const unknown = (data: Hex.Hex): string => `reverted with ${shownBytes(data)}`

/** The revert data when no definition fits, so that the message shows only their first bytes; otherwise null. */
export const unreadableData = (data: Hex.Hex, message: string): Hex.Hex | null =>
  data !== Hex.empty && message === unknown(data) ? data : null

const decodeWith = (decoding: Decoding, data: Hex.Hex): Revert => {
  if (data === Hex.empty)
    return { kind: "empty", name: null, args: null, message: "reverted without a reason", code: null }
  const candidates = decoding.candidates(data.slice(0, 10))
  const body = Hex.unsafe(`0x${data.slice(10)}`)
  const mayBeCut = decoding.cut || data.length >= 2 + 2 * cutFrom
  for (const cut of mayBeCut ? [false, true] : [false])
    for (const definition of candidates) {
      const values = Values.decode(definition.inputs, body, { cut, maxValues: Values.maxValuesAtOnce })
      if (Result.isFailure(values)) continue
      const outer = decoding.cut
      decoding.cut = outer || cut
      const { code, kind, message } = described(decoding, definition, values.success)
      decoding.cut = outer
      return {
        kind,
        name: definition.name,
        args: Values.byName(definition.inputs, values.success),
        message: shorten(message, maxMessage),
        code
      }
    }
  return { kind: "unknown", name: null, args: null, message: unknown(data), code: null }
}

/** Errors by selector, in order of precedence. It may be kept. */
export type Index = ReadonlyMap<string, ReadonlyArray<ErrorDefinition.ErrorDefinition>>

/** The first 8 errors that differ in types: equal types fit the same data, so that only the first could ever decode. */
class Candidates {
  readonly list: Array<ErrorDefinition.ErrorDefinition> = []
  private readonly types = new Set<string>()

  add(definition: ErrorDefinition.ErrorDefinition, most = maxCandidates): void {
    if (this.list.length >= most) return
    const types = canonicalList(definition.inputs)
    if (this.types.has(types)) return
    this.types.add(types)
    this.list.push(definition)
  }
}

/** Of errors in order of precedence, the first 8 of each selector that differ in types. */
export const index = (errors: ReadonlyArray<ErrorDefinition.ErrorDefinition>): Index => {
  const bySelector = new Map<string, Candidates>()
  for (const definition of errors) {
    const same = bySelector.get(definition.selector) ?? new Candidates()
    same.add(definition)
    bySelector.set(definition.selector, same)
  }
  return new Map([...bySelector].map(([selector, { list }]) => [selector, list]))
}

const standardIndex = index(standard)

/**
 * Decodes reverts with indexes in order of precedence. `Error(string)`, `Panic(uint256)` and the EntryPoint's
 * `FailedOp` and `FailedOpWithRevert` are always known and come last. Messages:
 *
 * - a reason unchanged; a panic as `Panic(0x11): arithmetic overflow or underflow`
 * - a custom error as `NotEnough(available: 5, required: 7)`
 * - an EntryPoint's failure as its reason, the meaning and the remedy
 * - revert data inside `bytes` arguments decoded as well, a few levels deep
 * - of shortened data, the remaining text and bytes
 */
export const decoder = (indexes: ReadonlyArray<Index>): ((data: Hex.Hex) => Revert) => {
  const candidates = (selector: string): ReadonlyArray<ErrorDefinition.ErrorDefinition> => {
    const found = new Candidates()
    for (const definition of indexes.flatMap((one) => one.get(selector) ?? [])) found.add(definition)
    for (const definition of standardIndex.get(selector) ?? [])
      found.add(definition, Number.POSITIVE_INFINITY)
    return found.list
  }
  return (data) => decodeWith({ candidates, cut: false, innerLeft: maxInner }, data)
}
