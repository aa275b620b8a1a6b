import * as Data from "effect/Data"
import * as Either from "effect/Either"
import * as Grammar from "./Grammar.js"
import * as Parameter from "./Parameter.js"

/** What the fragments of a JSON ABI (Solidity's "JSON" specification) have in common. */
export interface Fragment {
  readonly name: string
  readonly inputs: ReadonlyArray<Parameter.Parameter>
  /** Null when the fragment does not say. */
  readonly outputs: ReadonlyArray<Parameter.Parameter> | null
  readonly anonymous: boolean
}

/** Parameters and components, at every level together, that one fragment may have. */
const maxParameters = 1_024

const fragmentFields: ReadonlySet<string> = new Set([
  "type",
  "name",
  "inputs",
  "outputs",
  "stateMutability",
  "constant",
  "payable",
  "anonymous",
  "gas",
  "signature"
])
const parameterFields: ReadonlySet<string> = new Set([
  "name",
  "type",
  "indexed",
  "internalType",
  "components"
])

/** Fields whose type is checked though nothing is made of them. */
const flags = ["anonymous", "constant", "payable"]

type Outcome<A> = Either.Either<A, string>

/** A JSON object; arrays and null are none. */
export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const unknownField = (value: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): string | null =>
  Object.keys(value).find((key) => !known.has(key)) ?? null

const field = (value: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(value, name) ? value[name] : undefined

const quote = (text: string): string => JSON.stringify(text.slice(0, 64))

const readName = (value: unknown, path: string): Outcome<string> => {
  if (value === undefined || value === "") return Either.right("")
  if (typeof value !== "string") return Either.left(`${path}.name is not a string`)
  return Parameter.isName(value)
    ? Either.right(value)
    : Either.left(`${path}.name ${quote(value)} cannot be a name`)
}

const readParameter = (
  value: unknown,
  path: string,
  indexable: boolean,
  level: number,
  budget: { left: number }
): Outcome<Parameter.Parameter> => {
  if (!isObject(value)) return Either.left(`${path} is not an object`)
  const stray = unknownField(value, parameterFields)
  if (stray !== null) return Either.left(`${path} has an unknown field ${quote(stray)}`)
  const name = readName(field(value, "name"), path)
  if (Either.isLeft(name)) return Either.left(name.left)
  const text = field(value, "type")
  if (typeof text !== "string") return Either.left(`${path}.type is not a string`)
  const internal = field(value, "internalType")
  if (internal !== undefined && typeof internal !== "string")
    return Either.left(`${path}.internalType is not a string`)
  const indexed = field(value, "indexed")
  if (indexed !== undefined && typeof indexed !== "boolean")
    return Either.left(`${path}.indexed is not a boolean`)
  if (indexed === true && !indexable) return Either.left(`${path}.indexed: only parameters of events are`)
  const inner = field(value, "components")
  if (level >= Parameter.maxDepth)
    return Either.left(`${path}: types may be nested ${Parameter.maxDepth} levels deep`)
  const components =
    inner === undefined ? Either.right(null) : readList(inner, `${path}.components`, false, level + 1, budget)
  if (Either.isLeft(components)) return Either.left(components.left)
  return Either.mapBoth(Grammar.readJsonType(text, components.right), {
    onLeft: (why) => `${path}.type: ${why}`,
    onRight: (type) => Parameter.make(name.right, type, indexable ? indexed === true : undefined)
  })
}

const readList = (
  value: unknown,
  path: string,
  indexable: boolean,
  level: number,
  budget: { left: number }
): Outcome<ReadonlyArray<Parameter.Parameter>> => {
  if (!Array.isArray(value)) return Either.left(`${path} is not an array`)
  budget.left -= value.length
  if (budget.left < 0) return Either.left(`more than ${maxParameters} parameters`)
  const parameters: Array<Parameter.Parameter> = []
  for (const [index, element] of value.entries()) {
    const parameter = readParameter(element, `${path}[${index}]`, indexable, level, budget)
    if (Either.isLeft(parameter)) return Either.left(parameter.left)
    parameters.push(parameter.right)
  }
  return Either.right(parameters)
}

/**
 * Reads a fragment of that type. `inputs`, `outputs`, `anonymous`, parameter names, `indexed` and
 * `internalType` may be absent; a field that no JSON ABI has is refused. `Left` says what is wrong, and where.
 */
export const read = (fragment: unknown, type: "event" | "error" | "function"): Outcome<Fragment> => {
  if (!isObject(fragment)) return Either.left("not an object")
  if (field(fragment, "type") !== type) return Either.left(`type is not ${quote(type)}`)
  const stray = unknownField(fragment, fragmentFields)
  if (stray !== null) return Either.left(`unknown field ${quote(stray)}`)
  const name = field(fragment, "name")
  if (typeof name !== "string") return Either.left("name is not a string")
  if (!Parameter.isName(name)) return Either.left(`name ${quote(name)} cannot be a name`)
  for (const flag of flags) {
    const value = field(fragment, flag)
    if (value !== undefined && typeof value !== "boolean") return Either.left(`${flag} is not a boolean`)
  }
  const budget = { left: maxParameters }
  const given = field(fragment, "inputs")
  const inputs = readList(given === undefined ? [] : given, "inputs", type === "event", 0, budget)
  if (Either.isLeft(inputs)) return Either.left(inputs.left)
  const said = field(fragment, "outputs")
  const outputs = said === undefined ? Either.right(null) : readList(said, "outputs", false, 0, budget)
  if (Either.isLeft(outputs)) return Either.left(outputs.left)
  // Every accepted definition must also be readable from its canonical text.
  if (Parameter.fullList(inputs.right).length + name.length + 64 > Grammar.maxLength)
    return Either.left(`longer than ${Grammar.maxLength} characters`)
  return Either.right({
    name,
    inputs: inputs.right,
    outputs: outputs.right,
    anonymous: field(fragment, "anonymous") === true
  })
}

/** Text or JSON that defines no event or error; `message` says why. */
export class InvalidDefinition extends Data.TaggedError("InvalidDefinition")<{ readonly message: string }> {}
