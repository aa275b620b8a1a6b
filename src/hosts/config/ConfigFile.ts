import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import { defaults } from "../../application/intake/OpenRequests.js"
import { mostPerHour, mostPerMinute } from "../../application/ports/RateLimit.js"
import * as FileAccounts from "../../application/tenants/FileAccounts.js"
import { edgeFields } from "./EdgeFile.js"
import { integer, Name, optional, Secret, says, Text } from "./FileFields.js"
import { keyFields } from "./KeysFile.js"
import { AccountNetwork, Network } from "./NetworkFile.js"
import { operationsFields } from "./OperationsFile.js"

const KeyHash = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/u, {
    message: 'expected the 64 hex digits that "castellan keys hash" prints'
  })
)

export const Account = Schema.Struct({
  id: Name,
  name: Name,
  tier: Schema.Literals(["free", "pro", "enterprise"]).annotate(
    says('expected "free", "pro" or "enterprise"')
  ),
  requestsPerMinute: optional(integer(1, mostPerMinute)),
  requestsPerHour: optional(integer(1, mostPerHour)),
  paused: optional(Schema.Boolean),
  keys: Schema.Array(
    Schema.Struct({
      hash: KeyHash,
      scopes: optional(Schema.NonEmptyArray(Schema.Literals(FileAccounts.knownScopes)))
    })
  ),
  networks: optional(Schema.Array(AccountNetwork))
})
export type Account = typeof Account.Type

/** Highest rate limit, for requests and for their elements. */
const most = 10_000_000

/** Limits of the service: minimum, maximum and default. */
const limits = {
  bodyBytes: [1_024, 8 * 1_024 * 1_024, 1_048_576],
  arrayElements: [1, 65_536, 256],
  batchElements: [1, 10_000, 10_000],
  concurrentRequests: [1, 65_536, 512],
  openRequests: [1, most, defaults.open.requests],
  openElements: [1, most, defaults.open.elements],
  openRequestsPerAccount: [1, most, defaults.open.requestsPerAccount],
  openElementsPerAccount: [1, most, defaults.open.elementsPerAccount],
  scheduledRequests: [1, most, defaults.scheduled.requests],
  scheduledElements: [1, most, defaults.scheduled.elements],
  scheduledRequestsPerAccount: [1, most, defaults.scheduled.requestsPerAccount],
  scheduledElementsPerAccount: [1, most, defaults.scheduled.elementsPerAccount],
  anonymousPerMinute: [1, 1_000_000, 300],
  connections: [1, 1_000_000, 4_096],
  connectionsPerAddress: [1, 1_000_000, 1_024],
  drainMillis: [0, 600_000, 25_000]
} as const satisfies Readonly<Record<string, readonly [from: number, to: number, byDefault: number]>>

export type Limits = Readonly<Record<keyof typeof limits, number>>

export const defaultLimits: Limits = Record.map(limits, ([, , byDefault]) => byDefault)

/** The configuration file as written. */
export const ConfigFile = Schema.Struct({
  profile: Schema.Literals(["development", "production"]).annotate(
    says('expected "development" or "production"')
  ),
  listen: Schema.Struct({ host: Name, port: integer(0, 65_535) }),
  database: Schema.Union([Schema.Struct({ path: Text }), Schema.Struct({ url: Secret })]).annotate(
    says('expected {"path": "file"} of SQLite or {"url": Secret} of PostgreSQL')
  ),
  keyPepper: Secret,
  accounts: Schema.Array(Account),
  ...keyFields,
  ...edgeFields,
  ...operationsFields,
  networks: Schema.Array(Network),
  rateLimit: optional(Schema.Struct({ redis: Secret }).annotate(says('expected {"redis": Secret}'))),
  abi: optional(Schema.Array(Schema.Unknown)),
  limits: optional(Schema.Struct(Record.map(limits, ([from, to]) => optional(integer(from, to)))))
})
export type ConfigFile = typeof ConfigFile.Type

/** The configuration file as JSON Schema (draft 2020-12), pretty-printed. */
export const jsonSchema = (): string => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(ConfigFile, { onExcessProperty: "error" })
  return JSON.stringify(
    { $schema: "https://json-schema.org/draft/2020-12/schema", $defs: definitions, ...schema },
    null,
    2
  )
}
