import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { NetworkProfile } from "../../application/ports/NetworkProfile.js"
import { Networks } from "../../application/ports/Networks.js"
import type { Content, OwnNetwork } from "../../application/ports/TenantStore.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import { Directory } from "../../application/tenants/Directory.js"
import * as Breakage from "../../domain/json/Breakage.js"
import * as Json from "../../domain/json/Json.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Config } from "./Config.js"
import type { Problem } from "./FileFields.js"
import { AccountNetwork } from "./NetworkFile.js"
import * as NetworkProfiles from "./NetworkProfiles.js"
import * as SchemaProblems from "./SchemaProblems.js"

/** Configuration fields that the accounts' networks depend on. */
export type NetworksConfig = Pick<
  Config,
  "accounts" | "accountNetworks" | "networks" | "readSecret" | "sharedFactories"
>

const profileOf = (config: NetworksConfig, chainId: bigint): NetworkProfile | null =>
  config.networks.find((profile) => profile.chainId === chainId) ?? null

/**
 * A chain's profile for a database account without overrides. It has no factory unless the chain's factory is shared: that
 * one belongs to the file's accounts.
 */
const withoutFactory = (config: NetworksConfig, base: NetworkProfile): NetworkProfile =>
  config.sharedFactories.has(base.chainId) ? base : { ...base, factory: null }

/** Owner of the factory, an account or the chain of the file; null: none. */
const ownerOf = (config: NetworksConfig, chainId: bigint, factory: Address): string | null => {
  if (config.sharedFactories.has(chainId)) return null
  const own = config.accountNetworks.find(
    (network) => network.chainId === chainId && network.profile.factory === factory
  )
  if (own !== undefined) return `account ${own.accountId}`
  return profileOf(config, chainId)?.factory === factory ? "the configuration's network" : null
}

const decode = SchemaProblems.decoder(AccountNetwork)

/** Parses an account's overrides for a chain from JSON; fails with all problems. */
export const read = (
  config: NetworksConfig,
  settings: string
): Result.Result<
  { readonly network: AccountNetwork; readonly profile: NetworkProfile },
  ReadonlyArray<Problem>
> =>
  Result.gen(function* () {
    const json = yield* Result.mapError(Json.parse(settings, Json.unbounded), ({ kind, message, path }) => [
      { path, message: kind === "malformed" ? `it is not JSON${Breakage.describeIn(settings)}` : message }
    ])
    const network = yield* decode(json)
    const base = profileOf(config, network.chainId)
    if (base === null)
      return yield* Result.fail([
        { path: "chainId", message: `the configuration has no chain ${network.chainId}` }
      ])
    const problems: Array<Problem> = []
    const owner = network.factory === undefined ? null : ownerOf(config, network.chainId, network.factory)
    if (owner !== null)
      problems.push({ path: "factory", message: `${owner} has it; each account needs its own` })
    const own = NetworkProfiles.locate(
      network,
      "",
      (path, reference) =>
        Result.getOrElse(config.readSecret(path, reference), (problem) => {
          problems.push(problem)
          return Redacted.make("")
        }),
      (path, message) => problems.push({ path, message })
    )
    if (problems.length > 0) return yield* Result.fail(problems)
    return { network, profile: NetworkProfiles.override(withoutFactory(config, base), own) }
  })

const name = ({ accountId, chainId }: Pick<OwnNetwork, "accountId" | "chainId">) => `${chainId} ${accountId}`

/**
 * Network profiles of the file's accounts, which are fixed, and of the database's, which change. An account's unreadable
 * overrides close the chain to the account.
 */
export const layer = (
  config: NetworksConfig,
  ofFile: Layer.Layer<Networks, { readonly message: string }>
): Layer.Layer<Networks, { readonly message: string }, Directory> =>
  Layer.effect(
    Networks,
    Effect.gen(function* () {
      const directory = yield* Directory
      const fixed = yield* Networks
      const listed = new Set(config.accounts.map(({ accountId }) => accountId))
      let known: {
        readonly content: Content
        readonly own: ReadonlyMap<string, NetworkProfile | null>
      } | null = null

      const ownOf = (content: Content) =>
        Effect.gen(function* () {
          if (known?.content === content) return known.own
          const own = new Map<string, NetworkProfile | null>()
          for (const network of content.networks) {
            const profile = read(config, network.settings)
            own.set(name(network), Result.isSuccess(profile) ? profile.success.profile : null)
            if (Result.isFailure(profile))
              yield* Effect.logError("account network unusable").pipe(
                Effect.annotateLogs({
                  accountId: network.accountId,
                  chainId: network.chainId.toString(),
                  problems: SchemaProblems.lines(profile.failure).join("; ")
                })
              )
          }
          known = { content, own }
          return own
        })

      return {
        chainIds: fixed.chainIds,
        profile: (account: AccountId, chainId: bigint) =>
          listed.has(account)
            ? fixed.profile(account, chainId)
            : Effect.gen(function* () {
                const own = (yield* ownOf(yield* directory.latest)).get(name({ accountId: account, chainId }))
                if (own !== undefined) return own
                const base = profileOf(config, chainId)
                return base === null ? null : withoutFactory(config, base)
              })
      }
    })
  ).pipe(Layer.provide(ofFile))
