import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as BuiltIn from "../../../domain/abi/BuiltIn.js"
import * as Event from "../../../domain/abi/Event.js"
import * as EventFilter from "../../../domain/abi/EventFilter.js"
import * as Log from "../../../domain/abi/Log.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Suggestion from "../../../domain/primitives/Suggestion.js"
import { type InvalidRequest, invalid, invalidAt } from "../../failures/Failure.js"
import { AbiStore, OperatorAbi } from "../../ports/AbiStore.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { node, optional } from "../../request/Fields.js"
import * as EventLoop from "../../runtime/EventLoop.js"

/** Most contracts in one request. */
export const maxContracts = 256

/** Most definitions that one `eventName` may match. */
export const maxDefinitions = 32

const BlockText = Schema.String.annotate({
  description:
    "A block number, hex (0x10) or decimal, or one of the tags earliest, latest, safe, finalized, pending. Default: latest. pending means latest, because unmined transactions have no events."
})

/** Most fields with values in one request; no event of a contract has that many. */
export const maxFields = 256

/** The request of `/filterEvent` and `/getEvents`. */
export const Request = Schema.Struct({
  contracts: optional(
    Schema.Array(Address.schema).annotate({
      description: `Contracts whose events are searched, at most ${maxContracts}. An empty list means every contract.`
    }),
    []
  ),
  eventName: optional(
    Schema.String.annotate({
      description:
        "Name of a registered event; it means all definitions of this name. Required without eventDef."
    })
  ),
  eventDef: optional(
    Schema.String.annotate({
      description:
        "Definition of a registered event, for example event Deposit(address indexed from, uint256 amount)."
    })
  ),
  fields: optional(
    Schema.Record(Schema.String, Schema.Unknown).annotate({
      description:
        "The required value of each named event field, or an array of accepted values. One value of an array type is JSON text, or an array inside the array. At most 256 fields."
    }),
    {}
  ),
  fromBlock: optional(BlockText, "latest"),
  toBlock: optional(BlockText, "latest"),
  ...node,
  useABI: optional(
    Schema.Array(Schema.Unknown).annotate({
      description: "Events that count as registered, as JSON fragments or human-readable text."
    }),
    []
  )
}).annotate({ identifier: "EventQuery" })
export type Request = typeof Request.Type

const known = Effect.fnUntraced(function* (caller: Caller, useABI: ReadonlyArray<unknown>) {
  const own = yield* Decoding.own(useABI, "useABI")
  const store = yield* AbiStore
  const registered = yield* Effect.orDie(store.events(caller.principal.accountId))
  const operator = yield* OperatorAbi
  return [...own.events, ...registered, ...operator.events, ...BuiltIn.events]
})

/** The known definitions that the request selects, without duplicates, in order of precedence. */
const meant = (
  { eventDef, eventName }: Request,
  definitions: ReadonlyArray<Event.EventDefinition>
): Result.Result<ReadonlyArray<Event.EventDefinition>, InvalidRequest> => {
  const unregistered = (path: string, name: string) => {
    const names = definitions.map((one) => one.name)
    const meant = names.includes(name) ? "" : Suggestion.tell(name, names)
    return invalidAt(
      path,
      `register the event with /addEvent, or send it in useABI${meant}`,
      "event_not_registered"
    )
  }
  if (eventDef !== undefined) {
    // A registered definition may use names that only an exact match of its text can distinguish from keywords.
    const exact = definitions.find((one) => one.canonical === eventDef)
    const given = exact === undefined ? Event.parse(eventDef) : Result.succeed(exact)
    if (Result.isFailure(given)) return Result.fail(invalidAt("eventDef", given.failure.message))
    const { canonical, name } = given.success
    if (eventName !== undefined && eventName !== name)
      return Result.fail(invalidAt("eventName", `eventDef defines ${name}`))
    const definition = definitions.find((one) => one.canonical === canonical)
    return definition === undefined
      ? Result.fail(unregistered("eventDef", name))
      : Result.succeed([definition])
  }
  if (eventName === undefined) return Result.fail(invalidAt("eventName", "eventName or eventDef is required"))
  const named = new Map<string, Event.EventDefinition>()
  for (const one of definitions)
    if (one.name === eventName && !named.has(one.canonical)) named.set(one.canonical, one)
  if (named.size === 0) return Result.fail(unregistered("eventName", eventName))
  return named.size > maxDefinitions
    ? Result.fail(
        invalidAt("eventName", `${named.size} definitions have this name: choose one with eventDef`)
      )
    : Result.succeed([...named.values()])
}

const fieldPath = (name: string, index: number | null): string => {
  const field = /^[A-Za-z_$][\w$]{0,63}$/.test(name)
    ? `fields.${name}`
    : `fields[${JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}...` : name)}]`
  return index === null ? field : `${field}[${index}]`
}

const misfit = (problem: EventFilter.UnknownField | EventFilter.InvalidValue): InvalidRequest =>
  problem._tag === "UnknownField"
    ? invalidAt(
        fieldPath(problem.name, null),
        `${problem.eventName} has no such field${Suggestion.tell(problem.name, problem.known)}`
      )
    : invalidAt(fieldPath(problem.name, problem.index), problem.message)

/** An anonymous event matches only logs that no known event with a topic explains, as in decoded receipts. */
const unlessNamed = (
  filters: ReadonlyArray<EventFilter.EventFilter>,
  all: ReadonlyArray<Event.EventDefinition>
): ReadonlyArray<EventFilter.EventFilter> => {
  if (!filters.some(({ definition }) => definition.anonymous)) return filters
  const topical = all.filter(({ anonymous }) => !anonymous)
  const named = Log.decoder([Log.index(topical)], { left: Number.POSITIVE_INFINITY })
  return filters.map((filter) =>
    filter.definition.anonymous
      ? {
          ...filter,
          match: (log, allowance) => (named(log).eventDef === null ? filter.match(log, allowance) : null)
        }
      : filter
  )
}

/**
 * The filters of the request's events. A definition that lacks a field, or whose type does not fit a value, cannot
 * match and is left out; when none is left, the request is refused.
 */
export const filters = Effect.fnUntraced(function* (caller: Caller, request: Request) {
  if ((request.contracts ?? []).length > maxContracts)
    return yield* invalidAt("contracts", `expected at most ${maxContracts} addresses`)
  const { fields = {} } = request
  if (Object.keys(fields).length > maxFields)
    return yield* invalidAt("fields", `expected at most ${maxFields} fields`)
  const all = yield* known(caller, request.useABI ?? [])
  const definitions = yield* Effect.fromResult(meant(request, all))
  const made = yield* EventLoop.map(definitions, (definition) => EventFilter.make(definition, fields))
  const fitting = made.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
  if (fitting.length > 0) return unlessNamed(fitting, all)
  // A wrong value for an existing field is closer to the caller's intention than an unknown field.
  const problems = made.flatMap((one) => (Result.isFailure(one) ? [one.failure] : []))
  const nearest = problems.find(({ _tag }) => _tag === "InvalidValue") ?? problems[0]
  return yield* Effect.fail(nearest === undefined ? invalid("event_not_registered") : misfit(nearest))
})
