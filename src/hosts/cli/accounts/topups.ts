import * as Context from "effect/Context"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TopUps from "../../../application/endpoints/policies/TopUps.js"
import { Settings } from "../../../application/ports/operator/Settings.js"
import { chainOf, decodeFile, help, json, report } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

const account = Argument.String("ACCOUNT").pipe(Argument.withDescription("of the database or of the file"))
const chain = Argument.String("CHAIN").pipe(Argument.withDescription("id of the chain"))

const open = (id: string, text: string) =>
  Effect.gen(function* () {
    const context = yield* OperatorContext.openFor(id)
    const chainId = yield* chainOf(text, "CHAIN: ")
    const store = Context.get(context.ports, Settings)
    return { ...context, chainId, store }
  })

const one = (terms: TopUps.Terms & { readonly at: number; readonly by: string }, chain: string) => {
  const { at, by, ...written } = terms
  const topUp = Schema.encodeSync(TopUps.Terms)(written)
  const set = Table.time(at * 1_000)
  return {
    json: { chain, topUp, at: set, by },
    text: `${Table.card({ chain, at: set, by })}\n${JSON.stringify(topUp, null, 2)}`
  }
}

const set = Command.make("set", {
  account,
  chain,
  file: Argument.String("FILE").pipe(
    Argument.withDescription(
      "JSON with signer, keep, dailyCap and targets; without targets nothing is topped up"
    )
  ),
  ...OperatorContext.logged,
  json
}).pipe(
  help(
    "Sets the top-ups of an account on a chain: a signer of the account keeps up balances of its other signers and of its wallets. Replaces the terms before.",
    "acme 8453 topups.json"
  ),
  report(function* ({ account, chain, file, ...logged }) {
    const context = yield* open(account, chain)
    const { accountId } = context.account
    const terms = yield* decodeFile(file, TopUps.Terms)
    yield* OperatorContext.record(context, "set", `top-ups of ${account} on chain ${chain}`, logged)
    const setting = { accountId, by: "command line", requestId: null }
    const put = yield* Effect.provideService(
      TopUps.put(setting, context.chainId, terms),
      Settings,
      context.store
    )
    return one(put, chain)
  })
)

const show = Command.make("show", { account, chain, json }).pipe(
  help("Shows the top-ups of an account on a chain.", "acme 8453"),
  report(function* ({ account, chain }) {
    const { account: known, chainId, store } = yield* open(account, chain)
    const found = yield* TopUps.find(known.accountId, chainId).pipe(
      Effect.provideService(Settings, store),
      Effect.mapError(({ message }) => message)
    )
    return found === null
      ? yield* Effect.fail(`account ${account} has no top-ups on chain ${chain}`)
      : one(found, chain)
  })
)

export const commands = [set, show]

export const notes = [
  "Changes are in force at the next round of top-ups, within 30 seconds. A key, a wallet or a chain that does not exist is reported in the service's log."
]
