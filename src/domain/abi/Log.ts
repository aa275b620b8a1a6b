import * as Result from "effect/Result"
import type { RawLog } from "../evm/RawLog.js"
import * as Hex from "../primitives/Hex.js"
import type { EventDefinition } from "./Event.js"
import * as Parameter from "./Parameter.js"
import * as Parameters from "./Parameters.js"
import * as Values from "./Values.js"

/** A log entry as answers show it: decoded where a definition fits, and always raw as well. */
export interface DecodedLog {
  readonly address: string
  readonly logIndex: number
  readonly eventName: string | null
  readonly eventDef: string | null
  /** By name, or an array when a parameter has none; null when nothing decodes the log. */
  readonly args: Values.Json
  readonly topics: ReadonlyArray<string>
  readonly data: string
}

/**
 * Definitions of one topic, or anonymous ones, that are tried on a log. Each may cost the decoding of all its
 * data, and an account may register any number of them.
 */
const maxCandidates = 32

const isHashed = ({ base }: Parameter.Parameter): boolean =>
  base.dynamic || base.kind === "array" || base.kind === "tuple"

/**
 * The arguments in order of declaration, null when the log does not fit, `tooMuch` when it holds more values than are
 * decoded. Topics of reference types are hashes.
 */
const values = (
  definition: EventDefinition,
  log: RawLog,
  allowance: Values.Allowance
): ReadonlyArray<Values.Json> | "tooMuch" | null => {
  const topics = definition.anonymous ? log.topics : log.topics.slice(1)
  if (definition.inputs.filter(({ indexed }) => indexed === true).length !== topics.length) return null
  const plain = Values.decode(
    definition.inputs.filter(({ indexed }) => indexed !== true),
    log.data,
    { maxValues: Values.maxValuesAtOnce, allowance }
  )
  if (Result.isFailure(plain)) return plain.failure.tooMuch ? "tooMuch" : null
  return merge(definition, topics, plain.success)
}

/** Values of topics and of data in order of declaration; null for those that the data does not have. */
const merge = (
  definition: EventDefinition,
  topics: RawLog["topics"],
  plain: ReadonlyArray<Values.Json>
): ReadonlyArray<Values.Json> | null => {
  const merged: Array<Values.Json> = []
  let topic = 0
  let value = 0
  for (const input of definition.inputs) {
    if (input.indexed !== true) {
      merged.push(plain[value++] ?? null)
      continue
    }
    const hash = topics[topic++]
    if (hash === undefined) return null
    const decoded = isHashed(input) ? Result.succeed([hash]) : Values.decode([input], hash)
    if (Result.isFailure(decoded)) return null
    merged.push(decoded.success[0] ?? null)
  }
  return merged
}

/**
 * An anonymous event has no topic to be recognised by, so almost any log with as many topics would match: its data must
 * be exactly an encoder's output.
 */
const isExact = (definition: EventDefinition, log: RawLog, args: ReadonlyArray<Values.Json>): boolean => {
  const plain = definition.inputs.filter(({ indexed }) => indexed !== true)
  const base = plain.length === 0 ? null : Parameter.tupleOf(plain)
  if (base === null) return log.data === Hex.empty
  if (typeof base === "string") return false
  const given = args.filter((_, index) => definition.inputs[index]?.indexed !== true)
  const encoded = Parameters.encode([Parameter.make("", base)], [given])
  if (Result.isFailure(encoded)) return false
  return base.dynamic ? encoded.success.slice(66) === log.data.slice(2) : encoded.success === log.data
}

/** The log as it is. */
export const raw = (log: RawLog): DecodedLog => ({
  address: log.address,
  logIndex: log.logIndex,
  eventName: null,
  eventDef: null,
  args: null,
  topics: log.topics,
  data: log.data
})

const decoded = (definition: EventDefinition, log: RawLog, args: ReadonlyArray<Values.Json>): DecodedLog => ({
  ...raw(log),
  eventName: definition.name,
  eventDef: definition.canonical,
  args: Values.byName(definition.inputs, args)
})

/**
 * The log as this event, otherwise null. Of an anonymous event the data must be exactly what an encoder
 * writes. `tooMuch`: it holds more than 4,096 values, or more than the allowance.
 */
export const read = (
  definition: EventDefinition,
  log: RawLog,
  allowance: Values.Allowance
): DecodedLog | "tooMuch" | null => {
  if (!definition.anonymous && log.topics[0] !== definition.topic) return null
  const args = values(definition, log, allowance)
  if (args === null || args === "tooMuch") return args
  return definition.anonymous && !isExact(definition, log, args) ? null : decoded(definition, log, args)
}

/** A log without its data as this event, by its topics: null stands for values in the data. */
export const readTopics = (definition: EventDefinition, log: RawLog): DecodedLog | null => {
  const [topic, ...topics] = log.topics
  if (definition.anonymous || topic !== definition.topic) return null
  if (definition.inputs.filter(({ indexed }) => indexed === true).length !== topics.length) return null
  const args = merge(definition, topics, [])
  return args === null ? null : decoded(definition, log, args)
}

/** Decides whether a log fits: definitions of one shape differ only in names. */
const shape = ({ anonymous, inputs, topic }: EventDefinition): string =>
  `${topic}${anonymous ? Parameter.canonicalList(inputs) : ""} ${inputs.map(({ indexed }) => (indexed === true ? 1 : 0)).join("")}`

/** Values to which the logs of one answer are decoded, attempts included; logs beyond stay raw. */
export const maxValuesInAll = 65_536

/** Definitions in order of precedence, by topic; anonymous ones under the empty text. May be kept. */
export type Index = ReadonlyMap<string, ReadonlyArray<EventDefinition>>

/**
 * Indexes definitions, given in order of precedence: of each topic the first 32 that differ in shape.
 */
export const index = (definitions: ReadonlyArray<EventDefinition>): Index => {
  const byTopic = new Map<string, Candidates>()
  for (const definition of definitions) {
    const key = definition.anonymous ? "" : definition.topic
    const same = byTopic.get(key) ?? new Candidates()
    same.add(definition)
    byTopic.set(key, same)
  }
  return new Map([...byTopic].map(([key, { list }]) => [key, list]))
}

/** The first 32 definitions that differ in shape. */
class Candidates {
  readonly list: Array<EventDefinition> = []
  private readonly shapes = new Set<string>()

  add(definition: EventDefinition): void {
    if (this.list.length === maxCandidates) return
    const form = shape(definition)
    if (this.shapes.has(form)) return
    this.shapes.add(form)
    this.list.push(definition)
  }
}

/**
 * Decodes logs with several indexes, given in order of precedence. The first definition that has the log's topic
 * and fits its topics and data decodes it; anonymous events are tried last. A log that fits none of the first 32
 * of a topic stays raw, and so do a log of more than 4,096 values and all logs after the shared allowance is used up.
 * Never throws.
 */
export const decoder = (
  indexes: ReadonlyArray<Index>,
  allowance: Values.Allowance = { left: maxValuesInAll }
): ((log: RawLog) => DecodedLog) => {
  const merged = new Map<string, ReadonlyArray<EventDefinition>>()
  const candidates = (key: string): ReadonlyArray<EventDefinition> => {
    const known = merged.get(key)
    if (known !== undefined) return known
    const found = new Candidates()
    for (const one of indexes) for (const definition of one.get(key) ?? []) found.add(definition)
    if (found.list.length > 0) merged.set(key, found.list)
    return found.list
  }
  return (log) => {
    for (const key of [log.topics[0] ?? "none", ""])
      for (const definition of candidates(key)) {
        const found = read(definition, log, allowance)
        if (found !== null && found !== "tooMuch") return found
      }
    return raw(log)
  }
}
