import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ErrorDefinition from "./ErrorDefinition.js"
import * as Event from "./Event.js"
import type * as Fragment from "./Fragment.js"
import * as FunctionSignature from "./FunctionSignature.js"
import type * as Grammar from "./Grammar.js"
import * as Structs from "./Structs.js"

/** Definitions of a caller's own ABI, each kind in the caller's order. */
export interface UseAbi {
  readonly events: ReadonlyArray<Event.EventDefinition>
  readonly errors: ReadonlyArray<ErrorDefinition.ErrorDefinition>
  readonly functions: ReadonlyArray<FunctionSignature.FunctionSignature>
}

/** Nothing defined. */
export const empty: UseAbi = { events: [], errors: [], functions: [] }

type Entry =
  | { readonly kind: "event"; readonly definition: Event.EventDefinition }
  | { readonly kind: "error"; readonly definition: ErrorDefinition.ErrorDefinition }
  | { readonly kind: "function"; readonly definition: FunctionSignature.FunctionSignature }
  | { readonly kind: "ignored" }

type Read = Result.Result<Entry, string>

const ignored: Entry = { kind: "ignored" }
const withoutDefinition: ReadonlySet<unknown> = new Set(["constructor", "fallback", "receive"])
const keyword = /^[ \t\r\n]*(event|error|function|constructor|fallback|receive|struct)(?![A-Za-z0-9_$])/

const event = (read: Result.Result<Event.EventDefinition, Fragment.InvalidDefinition>): Read =>
  Result.mapBoth(read, {
    onFailure: ({ message }) => message,
    onSuccess: (definition): Entry => ({ kind: "event", definition })
  })

const error = (read: Result.Result<ErrorDefinition.ErrorDefinition, Fragment.InvalidDefinition>): Read =>
  Result.mapBoth(read, {
    onFailure: ({ message }) => message,
    onSuccess: (definition): Entry => ({ kind: "error", definition })
  })

const fromText = (text: string, options: Grammar.Options): Read => {
  switch (keyword.exec(text)?.[1]) {
    case "event":
      return event(Event.parse(text, options))
    case "error":
      return error(ErrorDefinition.parse(text, options))
    case "function":
      return Result.mapBoth(FunctionSignature.parse(text, options), {
        onFailure: ({ message, why }) => `${message}: ${why}`,
        onSuccess: (definition): Entry => ({ kind: "function", definition })
      })
    case undefined:
      return Result.fail("a definition begins with event, error, function or struct")
    default:
      return Result.succeed(ignored)
  }
}

const fromJson = (fragment: Readonly<Record<string, unknown>>): Read => {
  // Solidity's JSON ABI lets `type` be left out for functions.
  const type = fragment.type ?? "function"
  if (type === "event") return event(Event.fromJson(fragment))
  if (type === "error") return error(ErrorDefinition.fromJson(fragment))
  if (type === "function")
    return Result.mapBoth(FunctionSignature.fromJson({ ...fragment, type }), {
      onFailure: (why) => `invalid function definition: ${why}`,
      onSuccess: (definition): Entry => ({ kind: "function", definition })
    })
  return withoutDefinition.has(type)
    ? Result.succeed(ignored)
    : Result.fail("expected the type event, error, function, constructor, fallback or receive")
}

/**
 * A list of JSON fragments and human-readable definitions, freely mixed. Skips constructors, `fallback` and `receive`,
 * which decode nothing. Every entry knows the types of the `struct` lines. `Failure` names the first invalid entry.
 */
export const parse = (list: ReadonlyArray<unknown>): Result.Result<UseAbi, InvalidAbi> => {
  const events: Array<Event.EventDefinition> = []
  const errors: Array<ErrorDefinition.ErrorDefinition> = []
  const functions: Array<FunctionSignature.FunctionSignature> = []
  const structs = Structs.read(list)
  if (Result.isFailure(structs)) return Result.fail(new InvalidAbi(structs.failure))
  for (const [index, entry] of list.entries()) {
    let read: Read = Result.fail("neither text nor an object")
    if (typeof entry === "string") read = fromText(entry, { struct: structs.success })
    else if (Predicate.isObject(entry)) read = fromJson(entry)
    if (Result.isFailure(read)) return Result.fail(new InvalidAbi({ index, message: read.failure }))
    if (read.success.kind === "event") events.push(read.success.definition)
    if (read.success.kind === "error") errors.push(read.success.definition)
    if (read.success.kind === "function") functions.push(read.success.definition)
  }
  return Result.succeed({ events, errors, functions })
}

/** An entry that is not an ABI definition; `index` is its place in the list. */
export class InvalidAbi extends Data.TaggedError("InvalidAbi")<{
  readonly index: number
  readonly message: string
}> {}
