import * as Schema from "effect/Schema"
import * as EntryPoint from "../../domain/erc4337/EntryPoint.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Uint from "../../domain/primitives/Uint.js"
import * as Custody from "../../domain/wallet/Custody.js"
import { integer, Name, optional, Secret, says } from "../fields/FileFields.js"
import { edgeFields } from "./EdgeFile.js"
import { keyFields } from "./KeysFile.js"
import { operationsFields } from "./OperationsFile.js"

/** An unsigned integer as text, or as a JSON number that is exact. */
const Wei = Schema.Union(
  Uint.schema,
  Schema.transform(integer(0, Number.MAX_SAFE_INTEGER), Schema.BigIntFromSelf, {
    strict: true,
    decode: (value) => BigInt(value),
    encode: (value) => Number(value)
  })
).annotations(says("expected a non-negative integer, as text when above 2^53"))

const ChainId = Schema.transform(integer(1, Number.MAX_SAFE_INTEGER), Schema.BigIntFromSelf, {
  strict: true,
  decode: (value) => BigInt(value),
  encode: (value) => Number(value)
})

const CanonicalEntryPoint = Address.schema.pipe(
  Schema.filter((address) => EntryPoint.versionOf(address) !== undefined, {
    message: () => `expected the address of a canonical EntryPoint (${EntryPoint.anyVersion})`
  })
)

const profileFields = {
  rpc: optional(Secret),
  bundler: optional(
    Schema.NullOr(Schema.Struct({ url: Secret })).annotations(says('expected {"url": Secret} or null'))
  ),
  entryPoints: optional(Schema.NonEmptyArray(CanonicalEntryPoint)),
  ledger: optional(Address.schema),
  sponsor: optional(
    Schema.NullOr(Schema.Struct({ paymaster: Address.schema, dailyBudget: optional(Wei) })).annotations(
      says('expected {"paymaster": address, "dailyBudget": wei} or null')
    )
  ),
  paymasters: optional(
    Schema.Array(Schema.Struct({ address: Address.schema, url: Secret })).annotations(
      says('expected a list of {"address": address, "url": Secret}')
    )
  ),
  serviceSubmission: optional(
    Schema.Struct({ dailyLoss: optional(Wei), maxInFlight: optional(integer(1, 1_000)) }).annotations(
      says('expected {"dailyLoss": wei, "maxInFlight": 1 to 1000}')
    )
  ),
  factory: optional(Address.schema),
  validator: optional(Address.schema),
  beaconAdminAddress: optional(Address.schema),
  beaconAdminCreationCode: optional(Hex.schema),
  implementationCodeHash: optional(Hex.schema32),
  defaultCustody: optional(Custody.storedSchema),
  maxFeePerGas: optional(Wei),
  maxPriorityFeePerGas: optional(Wei),
  maxTransactionGas: optional(Wei),
  minPriorityFeePerGas: optional(Wei),
  l1Fee: optional(Schema.NullOr(Schema.Literal("op-stack")).annotations(says('expected "op-stack" or null'))),
  confirmations: optional(integer(1, 10_000)),
  settledDepth: optional(integer(1, 10_000)),
  lowBalance: optional(Wei),
  bumpAfterMillis: optional(integer(100, 3_600_000)),
  maxInFlight: optional(integer(1, 1_000)),
  receiptTimeoutMillis: optional(integer(1_000, 3_600_000)),
  pollIntervalMillis: optional(integer(10, 60_000))
}

/** What the operator says of one chain. */
export const Network = Schema.Struct({
  chainId: ChainId,
  sharedFactory: optional(Schema.Boolean),
  ...profileFields
})
export type Network = typeof Network.Type

/** What one account has of its own on one chain. */
export const AccountNetwork = Schema.Struct({ chainId: ChainId, ...profileFields })
export type AccountNetwork = typeof AccountNetwork.Type

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
  paused: optional(Schema.Boolean),
  keys: Schema.Array(
    Schema.Struct({
      hash: KeyHash,
      scopes: optional(Schema.NonEmptyArray(Schema.Literal("read", "write", "sign")))
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
  limits: optional(
    Schema.Struct({
      bodyBytes: optional(integer(1_024, 8 * 1_024 * 1_024)),
      arrayElements: optional(integer(1, 65_536)),
      concurrentRequests: optional(integer(1, 65_536)),
      strangersPerMinute: optional(integer(1, 1_000_000)),
      connections: optional(integer(1, 1_000_000)),
      connectionsPerAddress: optional(integer(1, 1_000_000)),
      drainMillis: optional(integer(0, 600_000))
    })
  )
})
export type ConfigFile = typeof ConfigFile.Type
