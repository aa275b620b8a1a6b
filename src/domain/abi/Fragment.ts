import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Grammar from "./Grammar.js"
import * as Parameter from "./Parameter.js"

/** Common fields of the fragments of a JSON ABI (Solidity's "JSON" specification). */
export interface Fragment {
  readonly name: string
  readonly inputs: ReadonlyArray<Parameter.Parameter>
  /** Null when the fragment omits them. */
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
  "signature",
  "unit"
])
const parameterFields: ReadonlySet<string> = new Set([
  "name",
  "type",
  "indexed",
  "internalType",
  "components",
  "gas",
  "signature",
  "unit"
])

/** Boolean fields, each optional. */
const flags = ["anonymous", "constant", "payable"]

/** Problem of a fragment, and its place: `inputs[0].type`; empty for the whole. */
export interface Misfit {
  readonly path: string
  readonly why: string
}

/** A misfit in one line. */
export const text = ({ path, why }: Misfit): string => (path === "" ? why : `${path}: ${why}`)

type Outcome<A> = Result.Result<A, Misfit>

const refuse = (path: string, why: string): Result.Result<never, Misfit> => Result.fail({ path, why })

const unknownField = (value: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): string | null =>
  Object.keys(value).find((key) => !known.has(key)) ?? null

const field = (value: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(value, name) ? value[name] : undefined

const quote = (text: string): string => JSON.stringify(text.slice(0, 64))

const readName = (value: unknown, path: string): Outcome<string> => {
  if (value === undefined || value === "") return Result.succeed("")
  if (typeof value !== "string") return refuse(path, "not a string")
  return Parameter.isName(value) ? Result.succeed(value) : refuse(path, `${quote(value)} cannot be a name`)
}

const readParameter = (
  value: unknown,
  path: string,
  indexable: boolean,
  level: number,
  budget: { left: number }
): Outcome<Parameter.Parameter> => {
  if (!Predicate.isObject(value)) return refuse(path, "not an object")
  const stray = unknownField(value, parameterFields)
  if (stray !== null) return refuse(path, `unknown field ${quote(stray)}`)
  const name = readName(field(value, "name"), `${path}.name`)
  if (Result.isFailure(name)) return Result.fail(name.failure)
  const type = field(value, "type")
  if (typeof type !== "string") return refuse(`${path}.type`, "not a string")
  const internal = field(value, "internalType")
  if (internal !== undefined && typeof internal !== "string")
    return refuse(`${path}.internalType`, "not a string")
  const indexed = field(value, "indexed")
  if (indexed !== undefined && typeof indexed !== "boolean") return refuse(`${path}.indexed`, "not a boolean")
  if (indexed === true && !indexable) return refuse(`${path}.indexed`, "only parameters of events are")
  const inner = field(value, "components")
  if (level >= Parameter.maxDepth)
    return refuse(path, `types may be nested ${Parameter.maxDepth} levels deep`)
  const components =
    inner === undefined
      ? Result.succeed(null)
      : readList(inner, `${path}.components`, false, level + 1, budget)
  if (Result.isFailure(components)) return Result.fail(components.failure)
  return Result.mapBoth(Grammar.readJsonType(type, components.success), {
    onFailure: (why) => ({ path: `${path}.type`, why }),
    onSuccess: (base) => Parameter.make(name.success, base, indexable ? indexed === true : undefined)
  })
}

const readList = (
  value: unknown,
  path: string,
  indexable: boolean,
  level: number,
  budget: { left: number }
): Outcome<ReadonlyArray<Parameter.Parameter>> => {
  if (!Array.isArray(value)) return refuse(path, "not an array")
  budget.left -= value.length
  if (budget.left < 0) return refuse(path, `more than ${maxParameters} parameters`)
  const parameters: Array<Parameter.Parameter> = []
  for (const [index, element] of value.entries()) {
    const parameter = readParameter(element, `${path}[${index}]`, indexable, level, budget)
    if (Result.isFailure(parameter)) return Result.fail(parameter.failure)
    parameters.push(parameter.success)
  }
  return Result.succeed(parameters)
}

/**
 * Reads a fragment of that type. `inputs`, `outputs`, `anonymous`, parameter names, `indexed` and
 * `internalType` may be absent; a field that no JSON ABI has is refused.
 */
export const read = (fragment: unknown, type: "event" | "error" | "function"): Outcome<Fragment> => {
  if (!Predicate.isObject(fragment)) return refuse("", "not an object")
  if (field(fragment, "type") !== type) return refuse("type", `not ${quote(type)}`)
  const stray = unknownField(fragment, fragmentFields)
  if (stray !== null) return refuse("", `unknown field ${quote(stray)}`)
  const name = field(fragment, "name")
  if (typeof name !== "string") return refuse("name", "not a string")
  if (!Parameter.isName(name)) return refuse("name", `${quote(name)} cannot be a name`)
  for (const flag of flags) {
    const value = field(fragment, flag)
    if (value !== undefined && typeof value !== "boolean") return refuse(flag, "not a boolean")
  }
  const budget = { left: maxParameters }
  const given = field(fragment, "inputs")
  const inputs = readList(given === undefined ? [] : given, "inputs", type === "event", 0, budget)
  if (Result.isFailure(inputs)) return Result.fail(inputs.failure)
  const declared = field(fragment, "outputs")
  const outputs =
    declared === undefined ? Result.succeed(null) : readList(declared, "outputs", false, 0, budget)
  if (Result.isFailure(outputs)) return Result.fail(outputs.failure)
  // Every accepted definition must also be readable from its canonical text.
  if (Parameter.fullList(inputs.success).length + name.length + 64 > Grammar.maxLength)
    return refuse("", `longer than ${Grammar.maxLength} characters`)
  return Result.succeed({
    name,
    inputs: inputs.success,
    outputs: outputs.success,
    anonymous: field(fragment, "anonymous") === true
  })
}

/** Text or JSON that defines no event or error. */
export class InvalidDefinition extends Data.TaggedError("InvalidDefinition")<
  Misfit & {
    /** Problem and place, in one line. */
    readonly message: string
  }
> {}

/** `kind`: the expected kind of definition. */
export const invalid = (kind: "event" | "error", misfit: Misfit): InvalidDefinition =>
  new InvalidDefinition({ ...misfit, message: `invalid ${kind} definition: ${text(misfit)}` })
