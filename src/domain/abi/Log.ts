import * as Either from "effect/Either"
import * as Hex from "../evm/Hex.js"
import type { RawLog } from "../evm/RawLog.js"
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

/** The arguments in order of declaration, null when the log does not fit. Topics of reference types are hashes. */
const values = (definition: EventDefinition, log: RawLog): ReadonlyArray<Values.Json> | null => {
  const topics = definition.anonymous ? log.topics : log.topics.slice(1)
  if (definition.inputs.filter(({ indexed }) => indexed === true).length !== topics.length) return null
  const plain = Values.decode(
    definition.inputs.filter(({ indexed }) => indexed !== true),
    log.data
  )
  if (Either.isLeft(plain)) return null
  const merged: Array<Values.Json> = []
  let topic = 0
  let value = 0
  for (const input of definition.inputs) {
    if (input.indexed !== true) {
      merged.push(plain.right[value++] ?? null)
      continue
    }
    const hash = topics[topic++]
    if (hash === undefined) return null
    const decoded = isHashed(input) ? Either.right([hash]) : Values.decode([input], hash)
    if (Either.isLeft(decoded)) return null
    merged.push(decoded.right[0] ?? null)
  }
  return merged
}

/**
 * An anonymous event has no topic to be recognised by, so that almost any log with as many topics would pass
 * for it: its data must be exactly what an encoder writes.
 */
const isExact = (definition: EventDefinition, log: RawLog, args: ReadonlyArray<Values.Json>): boolean => {
  const plain = definition.inputs.filter(({ indexed }) => indexed !== true)
  const base = plain.length === 0 ? null : Parameter.tupleOf(plain)
  if (base === null) return log.data === Hex.empty
  if (typeof base === "string") return false
  const given = args.filter((_, index) => definition.inputs[index]?.indexed !== true)
  const encoded = Parameters.encode([Parameter.make("", base)], [given])
  if (Either.isLeft(encoded)) return false
  return base.dynamic ? encoded.right.slice(66) === log.data.slice(2) : encoded.right === log.data
}

const raw = (log: RawLog): DecodedLog => ({
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

/** What decides whether a log fits: definitions that agree in it differ in names only. */
const shape = ({ anonymous, inputs, topic }: EventDefinition): string =>
  `${topic}${anonymous ? Parameter.canonicalList(inputs) : ""} ${inputs.map(({ indexed }) => (indexed === true ? 1 : 0)).join("")}`

/** Definitions in order of precedence, by topic; anonymous ones under the empty text. May be kept. */
export type Index = ReadonlyMap<string, ReadonlyArray<EventDefinition>>

/** Indexes definitions, given in order of precedence: of each topic the first 32 that differ in shape. */
export const index = (definitions: ReadonlyArray<EventDefinition>): Index => {
  const byTopic = new Map<string, Array<EventDefinition>>()
  for (const definition of definitions) {
    const key = definition.anonymous ? "" : definition.topic
    const same = byTopic.get(key)
    if (same === undefined) byTopic.set(key, [definition])
    else add(same, definition)
  }
  return byTopic
}

const add = (candidates: Array<EventDefinition>, definition: EventDefinition): void => {
  if (candidates.length === maxCandidates) return
  const form = shape(definition)
  if (candidates.every((one) => shape(one) !== form)) candidates.push(definition)
}

/**
 * Decodes logs with several indexes, given in order of precedence. The first definition that has the log's topic
 * and fits its topics and data decodes it; anonymous events are tried last. A log that fits none of the first 32
 * of a topic stays raw. Never throws.
 */
export const layered = (indexes: ReadonlyArray<Index>): ((log: RawLog) => DecodedLog) => {
  const merged = new Map<string, ReadonlyArray<EventDefinition>>()
  const candidates = (key: string): ReadonlyArray<EventDefinition> => {
    const known = merged.get(key)
    if (known !== undefined) return known
    const found: Array<EventDefinition> = []
    for (const one of indexes) for (const definition of one.get(key) ?? []) add(found, definition)
    if (found.length > 0) merged.set(key, found)
    return found
  }
  return (log) => {
    for (const definition of candidates(log.topics[0] ?? "none")) {
      const args = values(definition, log)
      if (args !== null) return decoded(definition, log, args)
    }
    for (const definition of candidates("")) {
      const args = values(definition, log)
      if (args !== null && isExact(definition, log, args)) return decoded(definition, log, args)
    }
    return raw(log)
  }
}

/** Decodes logs with definitions, given in order of precedence. */
export const decoder = (definitions: ReadonlyArray<EventDefinition>): ((log: RawLog) => DecodedLog) =>
  layered([index(definitions)])

/** Decodes one log; for several, keep `decoder(definitions)`. */
export const decode = (definitions: ReadonlyArray<EventDefinition>, log: RawLog): DecodedLog =>
  decoder(definitions)(log)
