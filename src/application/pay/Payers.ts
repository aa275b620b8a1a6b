import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Connection } from "../chain/Connection.js"
import * as Keys from "../keys/Keys.js"
import type { Budgets } from "../ports/Budgets.js"
import type { PaymasterRpc } from "../ports/chain/PaymasterRpc.js"
import type { SystemSigners } from "../ports/Signers.js"
import * as EncodedPayer from "./EncodedPayer.js"
import type { Payer } from "./Payer.js"
import type { Site } from "./Paymaster.js"
import * as Paymaster from "./Paymaster.js"
import * as Sponsor from "./Sponsor.js"
import type { Sponsorships } from "./Sponsorships.js"
import * as Submitter from "./Submitter.js"

export interface Payers {
  /**
   * Who pays for the ops of a request: of one that names no paymaster its wallets, or whom ops that come as they are name; else
   * the operator's own one, one of the profile's services, or any other, which is given no data. For the operator's own
   * one the connection is that to the operator's node.
   */
  readonly of: (
    caller: Site["caller"],
    connection: Connection,
    terms: {
      readonly entryPoint: Address
      readonly version: Version
      readonly paymaster: Address | undefined
      /** The EOA that submits the request's transactions. */
      readonly submitter: Address
    }
  ) => Effect.Effect<Payer>
}

export const Payers: Context.Key<Payers, Payers> = Context.Service("castellan/Payers")

export const make = (options: {
  readonly budgets: Budgets["Service"]
  readonly services: PaymasterRpc["Service"]
  readonly system: SystemSigners["Service"]
  readonly sponsorships: Sponsorships
}): Payers => {
  const { budgets, services, sponsorships, system } = options
  const of: Payers["of"] = (caller, connection, { entryPoint, paymaster, submitter, version }) => {
    if (paymaster === undefined) {
      const terms = { entryPoint, submitter, version }
      return Effect.succeed(
        EncodedPayer.make(version, (named) => of(caller, connection, { ...terms, paymaster: named }))
      )
    }
    const { paymasterServices, sponsor } = connection.profile
    const bundler = Submitter.boundTo(connection.profile, submitter)
    const site = { caller, connection, entryPoint, version, paymaster, bundler }
    if (paymaster === sponsor?.paymaster)
      return connection.trust === "operator"
        ? Sponsor.make(
            {
              budgets,
              sponsorships,
              signer: Effect.map(system.sponsor, Keys.bounded),
              dailyBudget: sponsor.dailyBudget
            },
            site
          )
        : Effect.die(new Error("the sponsor signs by what the operator's own node says alone"))
    const named = paymasterServices.find((service) => service.paymaster === paymaster)
    return Effect.succeed(
      named === undefined
        ? Paymaster.plain(budgets, site)
        : Paymaster.service(budgets, services.connect(Redacted.value(named.url)), site)
    )
  }
  return { of }
}
