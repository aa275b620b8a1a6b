import * as Result from "effect/Result"
import * as Grammar from "./Grammar.js"
import * as Parameter from "./Parameter.js"

/** `struct Name { type a; type b; }` of a list of human-readable definitions, or as ethers writes it, `struct Name(type a)`. */

const keyword = /^[ \t\r\n]*struct(?![A-Za-z0-9_$])[ \t\r\n]*([A-Za-z0-9_$]*)/

/** An invalid struct line: its place in the list, and why. */
export interface Misfit {
  readonly index: number
  readonly message: string
}

/** The type of the struct of that name; null when the list has none. */
export type Lookup = (name: string) => Parameter.Type | null

interface Line {
  readonly index: number
  readonly text: string
}

/** All structs of a list, in any order. `Failure` names the first invalid line, or the line that it needs. */
export const read = (list: ReadonlyArray<unknown>): Result.Result<Lookup, Misfit> => {
  const lines = new Map<string, Line>()
  for (const [index, text] of list.entries()) {
    const name = typeof text === "string" ? keyword.exec(text)?.[1] : undefined
    if (typeof text !== "string" || name === undefined) continue
    if (lines.has(name))
      return Result.fail({ index, message: `the struct ${name.slice(0, 64)} is there twice` })
    lines.set(name, { index, text })
  }
  const known = new Map<string, Parameter.Type>()
  const open = new Set<string>()
  let misfit: Misfit | null = null

  const struct = (name: string): Parameter.Type | string | null => {
    const type = known.get(name)
    const line = lines.get(name)
    if (type !== undefined || line === undefined) return type ?? null
    if (open.has(name)) return `the struct ${name.slice(0, 64)} holds itself`
    if (open.size > Parameter.maxDepth) return `types may be nested ${Parameter.maxDepth} levels deep`
    open.add(name)
    const made = Result.flatMap(Grammar.read(line.text, fieldsOf, { struct }), (fields) => {
      const tuple = Parameter.tupleOf(fields)
      return typeof tuple === "string" ? Result.fail(tuple) : Result.succeed(tuple)
    })
    open.delete(name)
    if (Result.isSuccess(made)) {
      known.set(name, made.success)
      return made.success
    }
    // The innermost line comes first: it is the line to fix.
    misfit ??= { index: line.index, message: `invalid struct definition: ${made.failure}` }
    return made.failure
  }

  for (const name of lines.keys()) {
    struct(name)
    if (misfit !== null) return Result.fail(misfit)
  }
  return Result.succeed((name) => known.get(name) ?? null)
}

const fieldsOf = (reader: Grammar.Reader): ReadonlyArray<Parameter.Parameter> => {
  reader.take("struct")
  reader.name("a struct")
  return reader.fields()
}
