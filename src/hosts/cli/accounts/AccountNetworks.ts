import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { OwnNetwork } from "../../../application/ports/TenantStore.js"
import * as AccountNetworks from "../../config/AccountNetworks.js"
import * as SchemaProblems from "../../config/SchemaProblems.js"
import { chainOf, help, json, report } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"

type Settings = Readonly<Record<string, unknown>>

const id = Argument.String("ID").pipe(Argument.withDescription("an account of the database"))
const chain = Argument.String("CHAIN").pipe(Argument.withDescription("a chain id"))

interface Own extends OperatorContext.OperatorContext {
  readonly account: OperatorContext.Account
}

const networkOf = ({ account, content }: Own, chainId: bigint): OwnNetwork | undefined =>
  content.networks.find((network) => network.accountId === account.accountId && network.chainId === chainId)

const isSettings = (value: unknown): value is Settings => typeof value === "object" && value !== null

const settingsOf = (network: OwnNetwork | undefined): Settings => {
  const settings: unknown = JSON.parse(network?.settings ?? "{}")
  return isSettings(settings) ? settings : {}
}

/** Parses JSON and keeps other text. Long numbers stay text, which keeps them exact. */
const valueOf = (text: string): unknown =>
  /^\d{16,}$/.test(text)
    ? text
    : Result.getOrElse(
        Result.try((): unknown => JSON.parse(text)),
        () => text
      )

/** Stores valid settings. */
const keep = (context: Own, chainId: bigint, settings: Settings) =>
  Effect.gen(function* () {
    const text = JSON.stringify({ ...settings, chainId: Number(chainId) })
    const { network } = yield* Effect.fromResult(
      Result.mapError(AccountNetworks.read(context.config, text), (problems) =>
        ["these values cannot be used:", ...SchemaProblems.lines(problems).map((line) => `  ${line}`)].join(
          "\n"
        )
      )
    )
    const own = {
      accountId: context.account.accountId,
      chainId,
      factory: network.factory ?? null,
      settings: text
    }
    yield* context.store.setNetwork(own)
    return { text, json: JSON.parse(text) as unknown }
  })

const setNetwork = Command.make("set-network", {
  id,
  chain,
  fields: Argument.String("FIELD=VALUE").pipe(
    Argument.withDescription("the field to set; FIELD= removes it"),
    Argument.atLeast(1)
  ),
  json
}).pipe(
  help(
    "Sets an account's own values on a chain, such as factory=0x... Fields are those of accounts[].networks[] of the file; FIELD= removes one.",
    "acme 137 factory=0x35a7E9496DfDaC5D3dc40D76AAa677d6a76ac106",
    `acme 137 rpc='{"env":"ACME_RPC"}' confirmations=`
  ),
  report(function* ({ chain, fields, id }) {
    const chainId = yield* chainOf(chain)
    const changes = yield* Effect.forEach(fields, (field) => {
      const [, name, value] = /^([A-Za-z0-9]+)=(.*)$/s.exec(field) ?? []
      return name === undefined || value === undefined || name === "chainId"
        ? Effect.fail(`expected FIELD=VALUE, not ${field.split("=")[0]}`)
        : Effect.succeed([name, value] as const)
    })
    const context = yield* OperatorContext.openForOwn(id)
    const settings = new Map(Object.entries(settingsOf(networkOf(context, chainId))))
    for (const [name, value] of changes)
      if (value === "") settings.delete(name)
      else settings.set(name, valueOf(value))
    return yield* keep(context, chainId, Object.fromEntries(settings))
  })
)

const removeNetwork = Command.make("remove-network", { id, chain, json }).pipe(
  help(
    "Removes an account's own values on a chain. The values of the chain apply instead, without a factory.",
    "acme 137"
  ),
  report(function* ({ chain, id }) {
    const chainId = yield* chainOf(chain)
    const context = yield* OperatorContext.openForOwn(id)
    if (networkOf(context, chainId) === undefined)
      return yield* Effect.fail(`account ${id} has no own settings on chain ${chainId}`)
    yield* context.store.removeNetwork(context.account.accountId, chainId)
    return {
      text: `account ${id} uses the chain's settings on chain ${chainId} again`,
      json: { id, chainId: Number(chainId), removed: true }
    }
  })
)

const paymasterOf = (sponsor: unknown): string | null =>
  isSettings(sponsor) && typeof sponsor.paymaster === "string" ? sponsor.paymaster : null

const setBudget = Command.make("set-budget", {
  id,
  chain,
  wei: Argument.String("WEI").pipe(Argument.withDescription("a decimal number")),
  json
}).pipe(
  help(
    "Sets how much an account's wallets may cost the operator's sponsor on a chain in one UTC day; 0 for nothing.",
    "acme 137 5000000000000000000"
  ),
  report(function* ({ chain, id, wei }) {
    const chainId = yield* chainOf(chain)
    if (!/^\d{1,30}$/.test(wei)) return yield* Effect.fail("expected wei, a decimal number")
    const context = yield* OperatorContext.openForOwn(id)
    const settings = settingsOf(networkOf(context, chainId))
    const base = context.config.networks.find((network) => network.chainId === chainId)
    const paymaster = paymasterOf(settings.sponsor) ?? base?.sponsor?.paymaster ?? null
    if (paymaster === null)
      return yield* Effect.fail(
        `chain ${chainId} has no sponsor: name its paymaster in "networks[].sponsor" of the configuration`
      )
    return yield* keep(context, chainId, { ...settings, sponsor: { paymaster, dailyBudget: wei } })
  })
)

export const commands = [setNetwork, removeNetwork, setBudget] as const
