import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as NetworkProfile from "../../application/ports/NetworkProfile.js"
import { Networks } from "../../application/ports/Networks.js"
import type { AccountId } from "../../application/ports/Tenants.js"

/** The profiles contradict themselves or each other. */
export class NetworksError extends Data.TaggedError("NetworksError")<{ readonly message: string }> {}

/** Profile of one account on one chain. */
export interface Override {
  readonly accountId: AccountId
  readonly chainId: bigint
  readonly profile: NetworkProfile.Fields
}

/** Chains, and changes of accounts to them. */
export interface Options {
  readonly profiles: ReadonlyArray<NetworkProfile.NetworkProfile>
  readonly overrides?: ReadonlyArray<Override>
}

const fail = (message: string) => Effect.fail(new NetworksError({ message }))

const check = (
  profile: NetworkProfile.NetworkProfile
): Effect.Effect<NetworkProfile.NetworkProfile, NetworksError> => {
  const { bumpAfterMillis, caps, chainId, confirmations, maxInFlight, settledDepth } = profile
  const { pollIntervalMillis, receiptTimeoutMillis, requestExpiryMillis } = profile
  if (!Number.isSafeInteger(confirmations) || confirmations < 1)
    return fail(`chain ${chainId}: confirmations is less than 1`)
  if (!Number.isSafeInteger(settledDepth) || settledDepth < confirmations)
    return fail(`chain ${chainId}: settledDepth is less than confirmations`)
  if (!Number.isSafeInteger(maxInFlight) || maxInFlight < 1)
    return fail(`chain ${chainId}: maxInFlight is less than 1`)
  if (
    !(bumpAfterMillis > 0) ||
    !(receiptTimeoutMillis > 0) ||
    !(pollIntervalMillis > 0) ||
    !(requestExpiryMillis > 0)
  )
    return fail(`chain ${chainId}: a time is not above 0`)
  if (caps.maxFeePerGas <= 0n || caps.maxPriorityFeePerGas < 0n || caps.transactionGas <= 0n)
    return fail(`chain ${chainId}: a cap permits nothing`)
  return Effect.succeed(profile)
}

/** Serves profiles that are fixed for the life of the process. */
export const make = ({
  overrides = [],
  profiles
}: Options): Effect.Effect<Networks["Service"], NetworksError> =>
  Effect.gen(function* () {
    const general = new Map<bigint, NetworkProfile.NetworkProfile>()
    for (const profile of profiles) {
      if (general.has(profile.chainId)) return yield* fail(`chain ${profile.chainId} has two profiles`)
      general.set(profile.chainId, yield* check(profile))
    }
    const own = new Map<string, NetworkProfile.NetworkProfile>()
    const name = (accountId: AccountId, chainId: bigint) => `${chainId} ${accountId}`
    for (const { accountId, chainId, profile } of overrides) {
      const base = general.get(chainId)
      if (base === undefined)
        return yield* fail(`account ${accountId} overrides chain ${chainId}, which has no profile`)
      if (own.has(name(accountId, chainId)))
        return yield* fail(`account ${accountId} overrides chain ${chainId} twice`)
      own.set(name(accountId, chainId), yield* check(NetworkProfile.override(base, profile)))
    }
    return {
      profile: (account, chainId) =>
        Effect.sync(() => own.get(name(account, chainId)) ?? general.get(chainId) ?? null),
      chainIds: Effect.succeed([...general.keys()])
    }
  })

/** The chains of a fixed list, as the port `Networks`. */
export const layer = (options: Options): Layer.Layer<Networks, NetworksError> =>
  Layer.effect(Networks, make(options))
