import * as Schema from "effect/Schema"
import * as Percent from "../../domain/erc4337/Percent.js"
import * as Json from "../../domain/json/Json.js"
import * as Address from "../../domain/primitives/Address.js"
import { node, optional, shown } from "./Fields.js"

/** Names a key of the account: `versionId` for HSM and KMS, `assetId` for MPC; exactly one of the two. */
export const SignerRef = Schema.Struct({
  clientId: Schema.String.annotate({ description: "Custody-provider client identifier." }),
  versionId: optional(Schema.String).annotateKey({
    description: "HSM key version. Required when assetId is absent."
  }),
  assetId: optional(Schema.String).annotateKey({
    description: "MPC asset identifier. Required when versionId is absent."
  })
}).annotate({ identifier: "Signer" })

const percent = (byDefault: number, description: string) =>
  shown(optional(Percent.schema, Schema.decodeSync(Percent.schema)(byDefault)), {
    description: `${description} Default ${byDefault}.`
  })

/** Members of settings that are decimal numbers; every other number of a request is an integer. */
export const decimals: ReadonlySet<string> = new Set([
  "percentUserOpGasOvershoot",
  "percentTxGasOvershoot",
  "percentTxGasPriceOvershoot"
])

const address = (description: string) => shown(Address.schema, { description })

/** Members that some endpoints require. */
const known = {
  entryPoint: address("ERC-4337 EntryPoint that the network profile accepts."),
  signer: SignerRef
}

const fields = {
  ...node,
  entryPoint: optional(known.entryPoint),
  signer: optional(known.signer),
  cosigners: optional(
    Schema.Array(SignerRef).annotate({
      description: "Further keys of the account that sign for wallets with several owners. At most 15."
    }),
    []
  ),
  factory: optional(address("Wallet factory; default: the network profile's.")),
  validator: optional(address("Validator that the wallet implementation must report.")),
  beaconAdminAddress: optional(address("Beacon of the wallet proxies; default: the network profile's.")),
  beaconAdminCreationCode: optional(
    Schema.String.annotate({
      description: "Creation code of the wallet proxy in hex; default: the network profile's."
    })
  ),
  paymaster: optional(address("Paymaster; used only when named.")),
  aggregator: optional(address("Signature aggregator; used only when named.")),
  percentUserOpGasOvershoot: percent(50, "Percent added to call and verification gas."),
  percentTxGasOvershoot: percent(50, "Percent added to the transaction's gas limit."),
  percentTxGasPriceOvershoot: percent(20, "Percent added to the gas price."),
  useABI: optional(
    Schema.Array(Schema.Unknown).annotate({
      description:
        "Events and errors for decoding, as JSON fragments or human-readable text; struct lines name tuples for the other lines."
    }),
    []
  )
}

/** Settings of `/predict`: the whole address formula, without a network. */
export const ForPrediction = Schema.Struct({
  ...fields,
  factory: address("Wallet factory."),
  beaconAdminAddress: address("Beacon of the wallet proxies."),
  beaconAdminCreationCode: Schema.String.annotate({
    description: "Creation code of the wallet proxy in hex, at most 48 KiB."
  })
}).annotate({ identifier: "PredictSettings" })

/** Settings of `/check`. */
export const ForReading = Schema.Struct(fields).annotate({ identifier: "CheckSettings" })

const mostContextBytes = 4_096
const mostContextDepth = 4

const PaymasterContext = Schema.JsonObject.check(
  Schema.makeFilter((value) => {
    const text = JSON.stringify(value)
    return (
      new TextEncoder().encode(text).length <= mostContextBytes &&
      Json.refusal(text, { maxDepth: mostContextDepth, maxElements: mostContextBytes }) === null
    )
  })
).annotate({
  message: `expected an object of at most ${mostContextBytes} bytes and ${mostContextDepth} levels`
})

const building = {
  paymasterContext: optional(PaymasterContext).annotateKey({
    description:
      "Members of the paymaster service's context (ERC-7677) that the operator permits. At most 4,096 bytes, 4 levels."
  })
}

/** Settings of `/signMessage`. */
export const ForMessages = Schema.Struct(fields).annotate({ identifier: "MessageSettings" })
export type ForMessages = typeof ForMessages.Type

/** Settings of the endpoints that build ops. `signer` may be absent where the endpoint says so. */
export const ForOps = Schema.Struct({
  ...fields,
  ...building,
  entryPoint: known.entryPoint
}).annotate({ identifier: "Settings" })
export type ForOps = typeof ForOps.Type

/** Settings of the endpoints that send transactions of the signer itself. */
export const ForSigner = Schema.Struct({
  ...fields,
  signer: known.signer
}).annotate({ identifier: "SignerSettings" })
export type ForSigner = typeof ForSigner.Type

/** Settings of the endpoints that submit with the request's signer. */
export const ForSubmission = Schema.Struct({
  ...fields,
  ...building,
  entryPoint: known.entryPoint,
  signer: known.signer
}).annotate({ identifier: "SubmitSettings" })
export type ForSubmission = typeof ForSubmission.Type
