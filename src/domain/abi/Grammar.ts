import * as Result from "effect/Result"
import * as Parameter from "./Parameter.js"

/**
 * The strict reader behind every human-readable definition: white space (space, tab, CR, LF) and Solidity
 * comments between tokens, ASCII identifiers, `tuple` optional before a parenthesis. Nothing else is skipped.
 */

/** Characters that one definition may have. */
export const maxLength = 8_192

const tokenPattern = /[A-Za-z_$][A-Za-z0-9_$]*|0|[1-9][0-9]*|[()[\],{};@]/y
const blank = /(?:[ \t\r\n]+|\/\/[^\n\r]*|\/\*(?:[^*]|\*(?!\/))*\*\/)+/y
const wordStart = /^[A-Za-z_$]/
const numeral = /^[0-9]/

/** Never leaves this module: `read` turns it into a `Failure`. */
class Refusal {
  constructor(readonly why: string) {}
}

const refuse = (why: string): never => {
  throw new Refusal(why)
}

const tokenize = (text: string): ReadonlyArray<string> => {
  const tokens: Array<string> = []
  let at = 0
  while (at < text.length) {
    blank.lastIndex = at
    const skipped = blank.exec(text)
    if (skipped !== null) {
      at += skipped[0].length
      continue
    }
    tokenPattern.lastIndex = at
    const token = tokenPattern.exec(text)
    if (token === null) return refuse(`unexpected ${JSON.stringify(text.slice(at, at + 1))} at ${at}`)
    tokens.push(token[0])
    at += token[0].length
  }
  return tokens
}

/** Operations of a definition's reader on the text. */
export interface Reader {
  /** The next token, not consumed; empty at the end. */
  readonly peek: () => string
  /** True at the end of the text. */
  readonly atEnd: () => boolean
  /** Consumes the next token if it is this one. */
  readonly take: (token: string) => boolean
  /** Consumes a name; a refusal contains `what`. */
  readonly name: (what: string) => string
  /** Consumes the next word if it is in the set; otherwise returns the empty string. */
  readonly oneOf: (words: ReadonlySet<string>) => string
  /** Consumes a number; a refusal contains `what`. */
  readonly number: (what: string) => void
  /** Consumes `{type name; type name;}` or `(type name, type name)`: the fields of a struct. */
  readonly fields: () => ReadonlyArray<Parameter.Parameter>
  /** Consumes a type without a name. */
  readonly type: () => Parameter.Type
  /** Consumes `(...)`. */
  readonly list: (options: { readonly indexed: boolean }) => ReadonlyArray<Parameter.Parameter>
  /** Consumes parameters without parentheses, up to the end. */
  readonly bareList: () => ReadonlyArray<Parameter.Parameter>
  /** True when the text's first parenthesis stands here and closes at the very end. */
  readonly enclosed: () => boolean
  /** Ends the reading. */
  readonly refuse: (why: string) => never
}

export interface Options {
  /**
   * The text is our own canonical form, without data location or `payable`: every word behind a type is a name, type
   * names too. In other text a type name there indicates a missing comma.
   */
  readonly canonical?: boolean
  /** The struct of that name; null when there is none, a string with the reason when it is invalid. */
  readonly struct?: (name: string) => Parameter.Type | string | null
}

/** A parser by recursive descent. */
const make = (tokens: ReadonlyArray<string>, { canonical = false, struct }: Options): Reader => {
  let at = 0
  const peek = (): string => tokens[at] ?? ""
  const show = (): string => (peek() === "" ? "the end" : `"${peek().slice(0, 64)}"`)
  const take = (token: string): boolean => {
    if (peek() !== token) return false
    at += 1
    return true
  }
  const expect = (token: string): void => {
    if (!take(token)) refuse(`expected "${token}" but found ${show()}`)
  }
  const built = <T>(type: T | string): T => (typeof type === "string" ? refuse(type) : type)
  /** Structs let a few words stand for any number of them. */
  const bounded = (parameters: ReadonlyArray<Parameter.Parameter>): ReadonlyArray<Parameter.Parameter> =>
    parameters.reduce((sum, { type }) => sum + type.length, 0) > 2 * maxLength
      ? refuse(`the types are longer than ${2 * maxLength} characters`)
      : parameters

  const suffixed = (element: Parameter.Type): Parameter.Type => {
    let type = element
    while (take("[")) {
      const length = numeral.test(peek()) ? Number(tokens[at++]) : null
      expect("]")
      type = built(Parameter.arrayOf(type, length))
    }
    return type
  }

  const type = (level: number): Parameter.Type => {
    const tuple = take("tuple")
    if (peek() === "(") {
      if (level >= Parameter.maxDepth) refuse(`types may be nested ${Parameter.maxDepth} levels deep`)
      return suffixed(built(Parameter.tupleOf(parenthesised(level + 1, false, false))))
    }
    if (tuple) return refuse(`expected "(" after tuple but found ${show()}`)
    const found = Parameter.elementary(peek()) ?? built(struct?.(peek()) ?? null)
    if (found === null) return refuse(`expected a type but found ${show()}`)
    at += 1
    if (found.kind === "address" && !canonical) take("payable")
    return suffixed(found)
  }

  const parameter = (level: number, indexable: boolean, locatable: boolean): Parameter.Parameter => {
    const base = type(level)
    const indexed = indexable ? take("indexed") : undefined
    const reference = base.depth > 0 || base.dynamic
    if (locatable && !canonical && reference && Parameter.isLocation(peek())) at += 1
    if (!wordStart.test(peek())) return Parameter.make("", base, indexed)
    return Parameter.make(name("a parameter"), base, indexed)
  }

  const parenthesised = (
    level: number,
    indexable: boolean,
    locatable: boolean
  ): ReadonlyArray<Parameter.Parameter> => {
    expect("(")
    if (take(")")) return []
    const parameters = [parameter(level, indexable, locatable)]
    while (take(",")) parameters.push(parameter(level, indexable, locatable))
    expect(")")
    return bounded(parameters)
  }

  const name = (what: string): string => {
    const found = peek()
    if (!Parameter.isName(found)) return refuse(`expected a name for ${what} but found ${show()}`)
    if (!canonical && Parameter.elementary(found) !== null)
      return refuse(`expected a name for ${what} but found the type ${show()}: is a comma missing?`)
    at += 1
    return found
  }

  return {
    peek,
    atEnd: () => at === tokens.length,
    take,
    name,
    oneOf: (words) => {
      const found = peek()
      if (!words.has(found)) return ""
      at += 1
      return found
    },
    number: (what) => {
      if (!numeral.test(peek())) refuse(`expected a number for ${what} but found ${show()}`)
      at += 1
    },
    fields: () => {
      if (!take("{")) return parenthesised(0, false, false)
      const fields: Array<Parameter.Parameter> = []
      while (!take("}")) {
        fields.push(parameter(0, false, false))
        expect(";")
      }
      return bounded(fields)
    },
    type: () => type(0),
    list: ({ indexed }) => parenthesised(0, indexed, !indexed),
    bareList: () => {
      const parameters = [parameter(0, false, true)]
      while (take(",")) parameters.push(parameter(0, false, true))
      return parameters
    },
    enclosed: () => {
      if (peek() !== "(") return false
      let level = 0
      for (let i = at; i < tokens.length; i++) {
        if (tokens[i] === "(") level += 1
        if (tokens[i] === ")") level -= 1
        if (level === 0) return i === tokens.length - 1
      }
      return false
    },
    refuse
  }
}

/** Reads the whole text with `body`; `Failure` says why it is not such a definition. Never throws. */
export const read = <A>(
  text: string,
  body: (reader: Reader) => A,
  options: Options = {}
): Result.Result<A, string> => {
  if (text.length > maxLength) return Result.fail(`longer than ${maxLength} characters`)
  try {
    const tokens = tokenize(text)
    const reader = make(tokens, options)
    const result = body(reader)
    return reader.atEnd() ? Result.succeed(result) : Result.fail(`unexpected "${reader.peek().slice(0, 64)}"`)
  } catch (error) {
    if (error instanceof Refusal) return Result.fail(error.why)
    throw error
  }
}

/** True for a tuple that is spelled within the type, as Vyper does it. */
const inline = /^(?:tuple)?\(/

/**
 * The type that a JSON fragment's `type` field spells: `uint256[2]`, `tuple[]` with the tuple's components next to it,
 * `(address,uint256)[]` with or without them.
 */
export const readJsonType = (
  text: string,
  components: ReadonlyArray<Parameter.Parameter> | null
): Result.Result<Parameter.Type, string> => {
  if (inline.test(text))
    return Result.flatMap(
      read(text, (reader) => reader.type()),
      (type) => {
        if (components === null || components.length === 0) return Result.succeed(type)
        const beside = readJsonType(`tuple${text.slice(text.lastIndexOf(")") + 1)}`, components)
        return Result.filterOrFail(
          beside,
          ({ canonical }) => canonical === type.canonical,
          ({ canonical }) => `the components are those of ${canonical.slice(0, 64)}`
        )
      }
    )
  const bracket = text.indexOf("[")
  const head = bracket < 0 ? text : text.slice(0, bracket)
  const suffix = bracket < 0 ? "" : text.slice(bracket)
  let type: Parameter.Type | string | null
  if (head === "tuple")
    type = components === null ? "a tuple needs components" : Parameter.tupleOf(components)
  else if (components !== null && components.length > 0) type = "only tuples have components"
  else type = Parameter.elementary(head) ?? `unknown type ${JSON.stringify(text.slice(0, 64))}`
  if (text.length > maxLength || !/^(?:\[(?:0|[1-9][0-9]*)?\])*$/.test(suffix))
    type = `unknown type ${JSON.stringify(text.slice(0, 64))}`
  for (const [, length] of suffix.matchAll(/\[([0-9]*)\]/g)) {
    if (typeof type === "string") break
    type = Parameter.arrayOf(type, length === undefined || length === "" ? null : Number(length))
  }
  return typeof type === "string" ? Result.fail(type) : Result.succeed(type)
}
