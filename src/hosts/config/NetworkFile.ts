import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as NetworkProfile from "../../application/ports/NetworkProfile.js"
import * as EntryPoint from "../../domain/erc4337/EntryPoint.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Uint from "../../domain/primitives/Uint.js"
import * as Custody from "../../domain/wallet/Custody.js"
import { integer, optional, Secret, says, saysInteger, Text } from "./FileFields.js"

/** A developer's chain has no reorganizations and mines immediately. */
export const ofDevelopment = { settledDepth: 1, pollIntervalMillis: 100 } satisfies NetworkProfile.Fields

/** Default low-balance threshold of a Submitting EOA, in wei: 0.05 coins. */
export const usualLowBalance = 5n * 10n ** 16n

/** An unsigned integer as text, or as an exact JSON number. */
const Wei = Schema.Union([
  Uint.schema,
  integer(0, Number.MAX_SAFE_INTEGER).pipe(
    Schema.decodeTo(
      Schema.BigInt,
      SchemaTransformation.transform({ decode: (value) => BigInt(value), encode: (value) => Number(value) })
    )
  )
]).annotate(saysInteger("a non-negative integer, as text when above 2^53"))

const PositiveWei = Wei.check(Schema.makeFilter((value) => value > 0n)).annotate(
  saysInteger("a positive integer, as text when above 2^53")
)

const ChainId = integer(1, Number.MAX_SAFE_INTEGER).pipe(
  Schema.decodeTo(
    Schema.BigInt,
    SchemaTransformation.transform({ decode: (value) => BigInt(value), encode: (value) => Number(value) })
  )
)

const CanonicalEntryPoint = Address.schema.check(
  Schema.makeFilter(
    (address) =>
      EntryPoint.versionOf(address) !== undefined ||
      `expected the address of a canonical EntryPoint (${EntryPoint.anyVersion})`
  )
)

const { defaults } = NetworkProfile

type Value = bigint | number | string | null | undefined

/** A field's default, with the chains that differ. */
const defaultText = (of: (fields: NetworkProfile.Fields) => Value): string =>
  [
    String(of(defaults) ?? "none"),
    ...[...NetworkProfile.chains].flatMap(([chainId, fields]) => {
      const own = of(fields)
      return own === undefined ? [] : [`${own} on chain ${chainId}`]
    })
  ].join("; ")

/** An optional field, with its description and default for the file's JSON Schema. */
const ofChain = <A, I>(schema: Schema.Codec<A, I>, about: string, byDefault = "none") =>
  Schema.flip(Schema.flip(optional(schema)).annotateKey({ description: `${about}. Default: ${byDefault}.` }))

const ofAccount: typeof ofChain = (schema, about) => ofChain(schema, about, "the chain's")

const profileFields = (field: typeof ofChain) => ({
  rpc: field(Secret, "The operator's own node. Without it nothing that needs a system key is possible"),
  bundler: field(
    Schema.NullOr(Schema.Struct({ url: Secret })).annotate(says('expected {"url": Secret} or null')),
    "The ERC-4337 bundler that ops go through; null: the service bundles itself"
  ),
  entryPoints: field(
    Schema.NonEmptyArray(CanonicalEntryPoint),
    "Canonical EntryPoints that requests may name",
    defaults.entryPoints.join(", ")
  ),
  ledger: field(Address.schema, "The OperationLedger, which enforces dependencies between operations"),
  sponsor: field(
    Schema.NullOr(Schema.Struct({ paymaster: Address.schema, dailyBudget: optional(Wei) })).annotate(
      says('expected {"paymaster": address, "dailyBudget": wei} or null')
    ),
    "The operator's SponsorPaymaster, and the wei that the wallets of one account may cost it in one UTC day",
    "none; dailyBudget 0"
  ),
  paymasters: field(
    Schema.Array(
      Schema.Struct({
        address: Address.schema,
        url: Secret,
        context: optional(Schema.JsonObject),
        callerContext: optional(Schema.Array(Text))
      })
    ).annotate(
      says(
        'expected a list of {"address": address, "url": Secret, "context": object, "callerContext": list of names}'
      )
    ),
    "Paymasters of others, asked for their data by ERC-7677. context: the members that each call sends, whose values may be references to secrets; callerContext: the names that settings.paymasterContext may add"
  ),
  serviceSubmission: field(
    Schema.Struct({ dailyLoss: optional(Wei), maxInFlight: optional(integer(1, 1_000)) }).annotate(
      says('expected {"dailyLoss": wei, "maxInFlight": 1 to 1000}')
    ),
    "Bounds of what the service's EOA submits for one account: wei that it may lose in one UTC day, and ops under way",
    `dailyLoss ${defaultText(({ serviceSubmission }) => serviceSubmission?.dailyLoss)}; maxInFlight ${defaults.serviceSubmission.maxInFlight}`
  ),
  factory: field(Address.schema, "The only factory for which deployments are authorised"),
  validator: field(Address.schema, "The validator that the wallets' implementation reports"),
  beaconAdminAddress: field(Address.schema, "The beacon of the wallet proxies"),
  beaconAdminCreationCode: field(
    Hex.schema,
    "Creation code of the wallet proxy",
    "the reference proxy's, once there is a beacon"
  ),
  implementationCodeHash: field(
    Hex.schema32,
    "keccak256 of the wallet implementation's code that the operator has confirmed",
    "not pinned"
  ),
  precompiles: field(
    Schema.Array(Address.schema),
    "Addresses outside 0x1 to 0x1ff that answer calls without having code"
  ),
  defaultCustody: field(
    Custody.storedSchema,
    "Custody that walletCustody 0 means together with a salt",
    defaultText(({ defaultCustody }) => defaultCustody)
  ),
  maxFeePerGas: field(
    PositiveWei,
    "Absolute cap on maxFeePerGas of every op and transaction, wei",
    defaultText(({ caps }) => caps?.maxFeePerGas)
  ),
  maxPriorityFeePerGas: field(
    Wei,
    "Absolute cap on maxPriorityFeePerGas, wei",
    defaultText(({ caps }) => caps?.maxPriorityFeePerGas)
  ),
  maxTransactionGas: field(
    PositiveWei,
    "Cap on the gas limit of one transaction",
    defaultText(({ caps }) => caps?.transactionGas)
  ),
  minPriorityFeePerGas: field(
    Wei,
    "Least tip that the chain's nodes take, wei; the least gas price on chains without EIP-1559",
    defaultText(({ minPriorityFeePerGas }) => minPriorityFeePerGas)
  ),
  l1Fee: field(
    Schema.NullOr(Schema.Literal("op-stack")).annotate(says('expected "op-stack" or null')),
    "Source of the layer 1 fee of a transaction's data; null: there is no such fee",
    defaultText(({ l1Fee }) => l1Fee)
  ),
  confirmations: field(
    integer(1, 10_000),
    "Blocks, the including one counted, before an answer is given",
    defaultText(({ confirmations }) => confirmations)
  ),
  settledDepth: field(
    integer(1, 10_000),
    "Blocks, the including one counted, after which nothing is undone any more; at least the confirmations",
    `${defaults.settledDepth}; ${ofDevelopment.settledDepth} in the development profile`
  ),
  lowBalance: field(Wei, "Wei below which an EOA that submits is said to run low", String(usualLowBalance)),
  bumpAfterMillis: field(
    integer(100, 3_600_000),
    "How long the lowest waiting transaction of an EOA waits before it is replaced at a higher price, milliseconds",
    defaultText(({ bumpAfterMillis }) => bumpAfterMillis)
  ),
  maxInFlight: field(
    integer(1, 1_000),
    "Most transactions of one EOA on their way at a time",
    defaultText(({ maxInFlight }) => maxInFlight)
  ),
  receiptTimeoutMillis: field(
    integer(1_000, 3_600_000),
    "How long a request waits for its transaction before it answers outcome_unknown, milliseconds",
    defaultText(({ receiptTimeoutMillis }) => receiptTimeoutMillis)
  ),
  requestExpiryMillis: field(
    integer(1_000, 86_400_000),
    "Time after acceptance at which an unsigned request expires, milliseconds",
    defaultText(({ requestExpiryMillis }) => requestExpiryMillis)
  ),
  pollIntervalMillis: field(
    integer(10, 60_000),
    "Polling interval of the node, milliseconds",
    `${defaults.pollIntervalMillis}; ${ofDevelopment.pollIntervalMillis} in the development profile`
  )
})

const TopUp = Schema.Struct({
  keep: Wei,
  dailyCap: PositiveWei,
  targets: Schema.NonEmptyArray(
    Schema.Struct({
      to: Schema.Union([
        Schema.Literal("serviceEoa"),
        Address.schema,
        Schema.Struct({ deposit: Address.schema, entryPoint: CanonicalEntryPoint })
      ]).annotate(says('expected "serviceEoa", an address or {"deposit": paymaster, "entryPoint": address}')),
      below: PositiveWei,
      upTo: PositiveWei,
      dailyCap: PositiveWei
    })
  )
})

/** Configuration of one chain. Every field but its id has a default. */
export const Network = Schema.Struct({
  chainId: ChainId,
  sharedFactory: optional(Schema.Boolean),
  topUp: ofChain(
    TopUp,
    "Balances that systemKeys.treasury keeps up: below `below` it sends what is missing to `upTo`. It keeps `keep`; each dailyCap bounds amounts and gas in one UTC day"
  ),
  ...profileFields(ofChain)
})
export type Network = typeof Network.Type

/** Overrides of one account on one chain; absent fields are the chain's. */
export const AccountNetwork = Schema.Struct({ chainId: ChainId, ...profileFields(ofAccount) })
export type AccountNetwork = typeof AccountNetwork.Type
