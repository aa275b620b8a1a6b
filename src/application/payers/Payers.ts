import * as Effect from "effect/Effect"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import type { Address } from "../../domain/primitives/Address.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import * as Keys from "../keys/Keys.js"
import type { Budgets } from "../ports/Budgets.js"
import type { PaymasterContext, PaymasterRpc } from "../ports/chain/PaymasterRpc.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { SystemSigners } from "../ports/Signers.js"
import * as EncodedPayer from "./EncodedPayer.js"
import type { HoldFollower } from "./HoldFollower.js"
import type { Payers } from "./Payer.js"
import type { Site } from "./Paymaster.js"
import * as Paymaster from "./Paymaster.js"
import * as Sponsor from "./Sponsor.js"
import * as Submitter from "./Submitter.js"

/** The request's members that the operator permits, under the operator's own. */
const contextOf = (
  { callerContext = [], context }: NetworkProfile["paymasterServices"][number],
  own: Readonly<Record<string, unknown>>
): PaymasterContext =>
  Redacted.make({
    ...Record.filter(own, (_, name) => callerContext.includes(name)),
    ...(context === undefined ? {} : Redacted.value(context))
  })

export const make = (options: {
  readonly budgets: Budgets["Service"]
  readonly facts: Pick<ChainFacts, "block">
  readonly services: PaymasterRpc["Service"]
  readonly system: SystemSigners["Service"]
  readonly follower: HoldFollower
}): Payers => {
  const { budgets, facts, services, follower, system } = options
  return {
    of: (accountId, connection, { entryPoint, paymaster, paymasterContext = {}, submitter, version }) =>
      Effect.gen(function* () {
        const { profile, trust } = connection
        const { chainId, paymasterServices, sponsor } = profile
        const bundler = Submitter.boundTo(profile, submitter)
        const siteOf = (of: Address): Site => ({
          accountId,
          connection,
          entryPoint,
          version,
          paymaster: of,
          bundler
        })
        const sponsorOf = ({ dailyBudget, paymaster: own }: NonNullable<typeof sponsor>) =>
          Sponsor.make(
            {
              budgets,
              facts,
              follower,
              signer: Effect.map(system.sponsor, Keys.withPatience),
              dailyBudget
            },
            siteOf(own)
          )
        if (paymaster === undefined) {
          // The sponsor only trusts the operator's node.
          const own = sponsor === null || trust !== "operator" ? null : sponsorOf(sponsor)
          return EncodedPayer.make(
            version,
            (named) => (own?.paymaster === named ? own : Paymaster.plain(budgets, siteOf(named))),
            Paymaster.release(budgets, chainId)
          )
        }
        if (sponsor !== null && paymaster === sponsor.paymaster)
          return trust === "operator"
            ? sponsorOf(sponsor)
            : yield* Effect.die(new Error("the sponsor trusts only the operator's node"))
        const named = paymasterServices.find((service) => service.paymaster === paymaster)
        const site = siteOf(paymaster)
        return named === undefined
          ? Paymaster.plain(budgets, site)
          : Paymaster.service(
              budgets,
              services.connect(Redacted.value(named.url)),
              site,
              contextOf(named, paymasterContext)
            )
      })
  }
}
