import * as Data from "effect/Data"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Steps from "../primitives/Steps.js"
import * as ErrorDefinition from "./ErrorDefinition.js"
import * as Event from "./Event.js"
import type * as Fragment from "./Fragment.js"
import * as FunctionSignature from "./FunctionSignature.js"
import type * as Grammar from "./Grammar.js"
import * as Structs from "./Structs.js"

/** What a caller's own ABI defines, each kind in the caller's order. */
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

type Read = Either.Either<Entry, string>

const ignored: Entry = { kind: "ignored" }
const withoutDefinition: ReadonlySet<unknown> = new Set(["constructor", "fallback", "receive"])
const keyword = /^[ \t\r\n]*(event|error|function|constructor|fallback|receive|struct)(?![A-Za-z0-9_$])/

const event = (read: Either.Either<Event.EventDefinition, Fragment.InvalidDefinition>): Read =>
  Either.mapBoth(read, {
    onLeft: ({ message }) => message,
    onRight: (definition): Entry => ({ kind: "event", definition })
  })

const error = (read: Either.Either<ErrorDefinition.ErrorDefinition, Fragment.InvalidDefinition>): Read =>
  Either.mapBoth(read, {
    onLeft: ({ message }) => message,
    onRight: (definition): Entry => ({ kind: "error", definition })
  })

const fromText = (text: string, options: Grammar.Options): Read => {
  switch (keyword.exec(text)?.[1]) {
    case "event":
      return event(Event.parse(text, options))
    case "error":
      return error(ErrorDefinition.parse(text, options))
    case "function":
      return Either.mapBoth(FunctionSignature.parse(text, options), {
        onLeft: ({ message, why }) => `${message}: ${why}`,
        onRight: (definition): Entry => ({ kind: "function", definition })
      })
    case undefined:
      return Either.left("a definition begins with event, error, function or struct")
    default:
      return Either.right(ignored)
  }
}

const fromJson = (fragment: Readonly<Record<string, unknown>>): Read => {
  // Solidity's JSON ABI lets `type` be left out for functions.
  const type = fragment.type ?? "function"
  if (type === "event") return event(Event.fromJson(fragment))
  if (type === "error") return error(ErrorDefinition.fromJson(fragment))
  if (type === "function")
    return Either.mapBoth(FunctionSignature.fromJson({ ...fragment, type }), {
      onLeft: (why) => `invalid function definition: ${why}`,
      onRight: (definition): Entry => ({ kind: "function", definition })
    })
  return withoutDefinition.has(type)
    ? Either.right(ignored)
    : Either.left("type is none of event, error, function, constructor, fallback, receive")
}

/**
 * A list of JSON fragments and human-readable definitions, mixed as the caller likes. Constructors, `fallback`
 * and `receive` decode nothing and are passed over; the types of `struct` lines are known in all texts of the list.
 * `Left` names the first entry that is none of these. Stops after each.
 */
export function* parseSteps(list: ReadonlyArray<unknown>): Steps.Steps<Either.Either<UseAbi, InvalidAbi>> {
  const events: Array<Event.EventDefinition> = []
  const errors: Array<ErrorDefinition.ErrorDefinition> = []
  const functions: Array<FunctionSignature.FunctionSignature> = []
  const structs = yield* Structs.readSteps(list)
  if (Either.isLeft(structs)) return Either.left(new InvalidAbi(structs.left))
  for (const [index, entry] of list.entries()) {
    let read: Read = Either.left("neither text nor an object")
    if (typeof entry === "string") read = fromText(entry, { struct: structs.right })
    else if (Predicate.isRecord(entry)) read = fromJson(entry)
    if (Either.isLeft(read)) return Either.left(new InvalidAbi({ index, message: read.left }))
    if (read.right.kind === "event") events.push(read.right.definition)
    if (read.right.kind === "error") errors.push(read.right.definition)
    if (read.right.kind === "function") functions.push(read.right.definition)
    yield
  }
  return Either.right({ events, errors, functions })
}

/** `parseSteps` in one go. */
export const parse = (list: ReadonlyArray<unknown>): Either.Either<UseAbi, InvalidAbi> =>
  Steps.finish(parseSteps(list))

/** An entry that is no ABI definition; `index` is its place in the list. */
export class InvalidAbi extends Data.TaggedError("InvalidAbi")<{
  readonly index: number
  readonly message: string
}> {}
