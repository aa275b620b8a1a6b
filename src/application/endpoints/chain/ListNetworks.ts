import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as EntryPoint from "../../../domain/erc4337/EntryPoint.js"
import * as Span from "../../observe/Span.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"
import { Networks } from "../../ports/Networks.js"
import { SystemSigners } from "../../ports/Signers.js"
import type { Caller } from "../../request/Caller.js"

const address = (description: string) => Schema.NullOr(Schema.String).annotate({ description })

/** A chain that the account may work on. Fields that correspond to settings have the settings' names. */
export const Network = Schema.Struct({
  chainId: Schema.Int,
  entryPoints: Schema.Array(
    Schema.Struct({ address: Schema.String, version: Schema.Literals([...EntryPoint.versions]) })
  ).annotate({ description: "EntryPoints that settings.entryPoint may name." }),
  factory: address("The only factory through which this account creates wallets."),
  validator: address("Validator that the wallets' implementation reports."),
  beaconAdminAddress: address("Beacon of the wallet proxies."),
  beaconAdminCreationCode: address("Creation code of the wallet proxy."),
  ledger: address("OperationLedger, which operations with dependsOn call; null: dependsOn is not possible."),
  paymaster: address("The operator's sponsor: settings.paymaster may name it; null: none."),
  bundler: address("The service EOA, which submits ops. Null: ops go through an external bundler."),
  defaultCustody: Schema.Int.annotate({
    description: "The custody that walletCustody 0 means together with a salt."
  }),
  confirmations: Schema.Int.annotate({ description: "Blocks before an answer is given." }),
  maxFeePerGas: Schema.String.annotate({ description: "Absolute cap, wei." }),
  maxPriorityFeePerGas: Schema.String.annotate({ description: "Absolute cap, wei." })
}).annotate({ identifier: "Network" })
export type Network = typeof Network.Type

export const Response = Schema.Array(Network).annotate({ identifier: "ListNetworksResponse" })
export type Response = typeof Response.Type

const of = (profile: NetworkProfile, serviceEoa: string | null): Network => ({
  chainId: Number(profile.chainId),
  entryPoints: profile.entryPoints.flatMap((address) => {
    const version = EntryPoint.versionOf(address)
    return version === undefined ? [] : [{ address, version }]
  }),
  factory: profile.factory,
  validator: profile.validator,
  beaconAdminAddress: profile.beacon,
  beaconAdminCreationCode: profile.creationCode,
  ledger: profile.ledger,
  paymaster: profile.sponsor?.paymaster ?? null,
  bundler: profile.remoteBundler === null ? serviceEoa : null,
  defaultCustody: profile.defaultCustody,
  confirmations: profile.confirmations,
  maxFeePerGas: profile.caps.maxFeePerGas.toString(),
  maxPriorityFeePerGas: profile.caps.maxPriorityFeePerGas.toString()
})

/** The account's network profiles with its own overrides, by chain id, without any node's URL. */
export const run = Effect.fnUntraced(function* (caller: Caller) {
  const networks = yield* Networks
  const { serviceEoa } = yield* SystemSigners
  const eoa = yield* Effect.match(serviceEoa, {
    onFailure: () => null,
    onSuccess: ({ address }) => address
  })
  const chainIds = [...(yield* networks.chainIds)].sort((a, b) => (a < b ? -1 : 1))
  const profiles = yield* Effect.forEach(chainIds, (chainId) =>
    networks.profile(caller.principal.accountId, chainId)
  )
  return profiles.flatMap((profile) => (profile === null ? [] : [of(profile, eoa)]))
}, Span.named("ListNetworks"))
