/**
 * An ABI parameter: its name and type, and the layout of the type in ABI-encoded bytes
 * (Solidity's "Contract ABI Specification").
 */

/** How values of a type are laid out. */
interface Layout {
  /** The type as selectors and topics spell it: `uint256`, `(address,bytes)[2][]`. */
  readonly canonical: string
  /** True when the head holds an offset and the value lies in the tail. */
  readonly dynamic: boolean
  /** 32-byte words in the head: 1 for a dynamic type, the whole value for a static one. */
  readonly words: number
  /** Levels of arrays and tuples, 0 for an elementary type. */
  readonly depth: number
}

export interface PlainType extends Layout {
  readonly kind: "address" | "bool" | "bytes" | "string"
}
export interface IntegerType extends Layout {
  readonly kind: "uint" | "int"
  /** 8 to 256, a multiple of 8. */
  readonly bits: number
}
export interface FixedBytesType extends Layout {
  readonly kind: "fixedBytes"
  /** 1 to 32 bytes. */
  readonly size: number
}
export interface ArrayType extends Layout {
  readonly kind: "array"
  readonly element: Type
  /** Number of elements; null when each value carries its own. */
  readonly length: number | null
}
export interface TupleType extends Layout {
  readonly kind: "tuple"
  /** At least one: zero-sized values would let a few bytes claim any number of elements. */
  readonly components: ReadonlyArray<Parameter>
  /** True when values are keyed by name, see `allNamed`. */
  readonly named: boolean
}

export type Type = PlainType | IntegerType | FixedBytesType | ArrayType | TupleType

/** One parameter of a function, an event, an error or a tuple. */
export interface Parameter {
  /** Empty when it has none. */
  readonly name: string
  /** Canonical text of the type. */
  readonly type: string
  readonly base: Type
  /** Only in events: whether it is a topic. */
  readonly indexed?: boolean
}

/** Levels of arrays and tuples that a type may have. */
export const maxDepth = 16

/** Words that the static part of one type may take: 1 MiB. */
export const maxWords = 32_768

const identifier = /^[A-Za-z_$][A-Za-z0-9_$]{0,255}$/
const integerName = /^(u?int)([1-9][0-9]{0,2})?$/
const bytesName = /^bytes([1-9][0-9]?)$/
const locations: ReadonlySet<string> = new Set(["memory", "calldata", "storage"])

const plain = (kind: PlainType["kind"], dynamic: boolean): PlainType => ({
  kind,
  canonical: kind,
  dynamic,
  words: 1,
  depth: 0
})

const plainTypes: ReadonlyMap<string, Type> = new Map<string, Type>([
  ["address", plain("address", false)],
  ["bool", plain("bool", false)],
  ["bytes", plain("bytes", true)],
  ["string", plain("string", true)],
  ["byte", { kind: "fixedBytes", size: 1, canonical: "bytes1", dynamic: false, words: 1, depth: 0 }]
])

/** The elementary type of that name, aliases `uint`, `int` and `byte` included; null when there is none. */
export const elementary = (name: string): Type | null => {
  const known = plainTypes.get(name)
  if (known !== undefined) return known
  const integer = integerName.exec(name)
  if (integer !== null) {
    const bits = Number(integer[2] ?? "256")
    const kind = integer[1] === "uint" ? "uint" : "int"
    return bits % 8 === 0 && bits <= 256
      ? { kind, bits, canonical: `${kind}${bits}`, dynamic: false, words: 1, depth: 0 }
      : null
  }
  const size = Number(bytesName.exec(name)?.[1] ?? "0")
  return size >= 1 && size <= 32
    ? { kind: "fixedBytes", size, canonical: name, dynamic: false, words: 1, depth: 0 }
    : null
}

/** True for Solidity's data locations. */
export const isLocation = (word: string): boolean => locations.has(word)

/** True for text that can name a parameter, a function, an event or an error, even if it is a keyword elsewhere. */
export const isName = (text: string): boolean => identifier.test(text)

/** The array of `length` elements (null: of any number), or why there is no such type. */
export const arrayOf = (element: Type, length: number | null): ArrayType | string => {
  if (length === 0) return "a fixed array has at least one element"
  if (element.depth >= maxDepth) return `types may be nested ${maxDepth} levels deep`
  const dynamic = length === null || element.dynamic
  if (length !== null && length * element.words > maxWords)
    return `a fixed array may take up to ${maxWords} words of 32 bytes`
  return {
    kind: "array",
    element,
    length,
    canonical: `${element.canonical}[${length ?? ""}]`,
    dynamic,
    words: dynamic ? 1 : (length ?? 1) * element.words,
    depth: element.depth + 1
  }
}

/** The tuple of these components, or why there is no such type. */
export const tupleOf = (components: ReadonlyArray<Parameter>): TupleType | string => {
  if (components.length === 0) return "a tuple has at least one component"
  const depth = components.reduce((deepest, component) => Math.max(deepest, component.base.depth), 0)
  if (depth >= maxDepth) return `types may be nested ${maxDepth} levels deep`
  const dynamic = components.some((component) => component.base.dynamic)
  const words = components.reduce((sum, component) => sum + component.base.words, 0)
  if (words > maxWords) return `a tuple may take up to ${maxWords} words of 32 bytes`
  return {
    kind: "tuple",
    components,
    named: allNamed(components),
    canonical: `(${components.map((component) => component.type).join(",")})`,
    dynamic,
    words: dynamic ? 1 : words,
    depth: depth + 1
  }
}

/** The parameter of that name and type; `indexed` only for events. */
export const make = (name: string, base: Type, indexed?: boolean): Parameter => ({
  name,
  type: base.canonical,
  base,
  ...(indexed === undefined ? {} : { indexed })
})

/** `(type,type)`, as selectors and topics spell a list. */
export const canonicalList = (parameters: ReadonlyArray<Parameter>): string =>
  `(${parameters.map((parameter) => parameter.type).join(",")})`

const fullType = (type: Type): string => {
  if (type.kind === "tuple") return fullList(type.components)
  if (type.kind === "array") return `${fullType(type.element)}[${type.length ?? ""}]`
  return type.canonical
}

const named = ({ indexed, name }: Parameter): string => {
  // Behind the type of an event's parameter this word can only mean a topic.
  if (indexed === false && name === "indexed") return ""
  return `${indexed === true ? " indexed" : ""}${name === "" ? "" : ` ${name}`}`
}

/**
 * `(type indexed name, (type name, type) name)`: canonical types, one space between words. Keeps all names, except
 * `indexed` as the name of an event's parameter that is not a topic.
 */
export const fullList = (parameters: ReadonlyArray<Parameter>): string =>
  `(${parameters.map((parameter) => `${fullType(parameter.base)}${named(parameter)}`).join(", ")})`

/** True when values can be keyed by name: every parameter has one and no two share it. */
export const allNamed = (parameters: ReadonlyArray<Parameter>): boolean =>
  parameters.every((parameter) => parameter.name !== "") &&
  new Set(parameters.map((parameter) => parameter.name)).size === parameters.length
