import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import * as OpenRequests from "../../application/lanes/requests/OpenRequests.js"
import * as ScheduledRequests from "../../application/lanes/requests/ScheduledRequests.js"
import { integer, optional } from "../fields/FileFields.js"

/** Of requests and of their elements. */
const most = 10_000_000

/** What the service takes at a time: the least and the most that the operator may say, and what holds unless told. */
const limits = {
  bodyBytes: [1_024, 8 * 1_024 * 1_024, 1_048_576],
  arrayElements: [1, 65_536, 256],
  batchElements: [1, 10_000, 10_000],
  concurrentRequests: [1, 65_536, 512],
  openRequests: [1, most, OpenRequests.defaults.requests],
  openElements: [1, most, OpenRequests.defaults.elements],
  openRequestsPerAccount: [1, most, OpenRequests.defaults.requestsPerAccount],
  openElementsPerAccount: [1, most, OpenRequests.defaults.elementsPerAccount],
  scheduledRequests: [1, most, ScheduledRequests.defaults.requests],
  scheduledElements: [1, most, ScheduledRequests.defaults.elements],
  scheduledRequestsPerAccount: [1, most, ScheduledRequests.defaults.requestsPerAccount],
  scheduledElementsPerAccount: [1, most, ScheduledRequests.defaults.elementsPerAccount],
  anonymousPerMinute: [1, 1_000_000, 300],
  connections: [1, 1_000_000, 4_096],
  connectionsPerAddress: [1, 1_000_000, 1_024],
  drainMillis: [0, 600_000, 25_000]
} as const satisfies Readonly<Record<string, readonly [from: number, to: number, byDefault: number]>>

export type Limits = Readonly<Record<keyof typeof limits, number>>

export const defaults: Limits = Record.map(limits, ([, , byDefault]) => byDefault)

/** The field of the configuration file. */
export const limitsField = optional(
  Schema.Struct(Record.map(limits, ([from, to]) => optional(integer(from, to))))
)
