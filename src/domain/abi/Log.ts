import * as Either from "effect/Either"
import type { Address } from "../evm/Address.js"
import * as Hex from "../evm/Hex.js"
import type { EventDefinition } from "./Event.js"
import * as Parameter from "./Parameter.js"
import * as Parameters from "./Parameters.js"
import * as Values from "./Values.js"

/** A log entry as the chain has it. */
export interface RawLog {
  readonly address: Address
  readonly topics: ReadonlyArray<Hex.Bytes32>
  readonly data: Hex.Hex
  readonly logIndex: number
}

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

/**
 * Indexes definitions, given in order of precedence, for many logs. The first one that has the log's topic and
 * fits its topics and data decodes it; anonymous events are tried last. A log that fits none stays raw.
 */
export const decoder = (definitions: ReadonlyArray<EventDefinition>): ((log: RawLog) => DecodedLog) => {
  const byTopic = new Map<string, Array<EventDefinition>>()
  const anonymous: Array<EventDefinition> = []
  for (const definition of definitions) {
    if (definition.anonymous) {
      anonymous.push(definition)
      continue
    }
    const same = byTopic.get(definition.topic)
    if (same === undefined) byTopic.set(definition.topic, [definition])
    else same.push(definition)
  }
  return (log) => {
    for (const definition of byTopic.get(log.topics[0] ?? "") ?? []) {
      const args = values(definition, log)
      if (args !== null) return decoded(definition, log, args)
    }
    for (const definition of anonymous) {
      const args = values(definition, log)
      if (args !== null && isExact(definition, log, args)) return decoded(definition, log, args)
    }
    return raw(log)
  }
}

/** Decodes one log; for several, keep `decoder(definitions)`. */
export const decode = (definitions: ReadonlyArray<EventDefinition>, log: RawLog): DecodedLog =>
  decoder(definitions)(log)
