import * as Schema from "effect/Schema"
import { mostPerHour, mostPerMinute } from "../../application/ports/RateLimit.js"
import { integer, Name, optional, Secret, says } from "../fields/FileFields.js"
import { edgeFields } from "./EdgeFile.js"
import { keyFields } from "./KeysFile.js"
import { limitsField } from "./LimitsFile.js"
import { AccountNetwork, Network } from "./NetworkFile.js"
import { operationsFields } from "./OperationsFile.js"

export const KeyHash = Schema.String.pipe(
  Schema.pattern(/^[0-9a-f]{64}$/, {
    message: () => 'expected the 64 hex digits that "castellan keys hash" prints'
  })
)

export const Account = Schema.Struct({
  id: Name,
  name: Name,
  tier: Schema.Literal("free", "pro", "enterprise").annotations(
    says('expected "free", "pro" or "enterprise"')
  ),
  requestsPerMinute: optional(integer(1, mostPerMinute)),
  requestsPerHour: optional(integer(1, mostPerHour)),
  paused: optional(Schema.Boolean),
  keys: Schema.Array(
    Schema.Struct({
      hash: KeyHash,
      scopes: optional(Schema.NonEmptyArray(Schema.Literal("read", "write", "sign", "webhooks")))
    })
  ),
  networks: optional(Schema.Array(AccountNetwork))
})
export type Account = typeof Account.Type

/** The configuration file as it is written. */
export const ConfigFile = Schema.Struct({
  profile: Schema.Literal("development", "production").annotations(
    says('expected "development" or "production"')
  ),
  listen: Schema.Struct({ host: Name, port: integer(0, 65_535) }),
  database: Schema.Union(
    Schema.Struct({ path: Schema.NonEmptyString }),
    Schema.Struct({ url: Secret })
  ).annotations(says('expected {"path": "file"} of SQLite or {"url": Secret} of PostgreSQL')),
  keyPepper: Secret,
  accounts: Schema.Array(Account),
  ...keyFields,
  ...edgeFields,
  ...operationsFields,
  networks: Schema.Array(Network),
  rateLimit: optional(Schema.Struct({ redis: Secret }).annotations(says('expected {"redis": Secret}'))),
  abi: optional(Schema.Array(Schema.Unknown)),
  limits: limitsField
})
export type ConfigFile = typeof ConfigFile.Type
