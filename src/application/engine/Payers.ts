import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Address } from "../../domain/evm/Address.js"
import type { Version } from "../../domain/op/EntryPoint.js"
import type { UserOperation } from "../../domain/op/UserOperation.js"
import type { Caller } from "../Caller.js"
import type { Budgets } from "../ports/Budgets.js"
import type { PaymasterRpc } from "../ports/PaymasterRpc.js"
import type { SystemSigners } from "../ports/Signers.js"
import type { Connection } from "./Connection.js"
import * as Funding from "./Funding.js"
import * as GivenPayer from "./GivenPayer.js"
import * as Keys from "./Keys.js"
import { type Payer, wallet } from "./Payer.js"
import * as Paymaster from "./Paymaster.js"
import * as Sponsor from "./Sponsor.js"
import type { Sponsorships } from "./Sponsorships.js"

export interface Payers {
  /**
   * Who pays for the ops of a request: its wallets when it names no paymaster; else the operator's own one, one of the
   * profile's services, or any other, which is given no data. For the operator's own one the connection is that to
   * the operator's node.
   */
  readonly of: (
    caller: Caller,
    connection: Connection,
    terms: {
      readonly entryPoint: Address
      readonly version: Version
      readonly paymaster: Address | undefined
    }
  ) => Effect.Effect<Payer>
  /** Who pays for ops that come as they are. */
  readonly ofGiven: (
    caller: Caller,
    connection: Connection,
    terms: { readonly entryPoint: Address; readonly version: Version },
    ops: ReadonlyArray<UserOperation>
  ) => Effect.Effect<Payer>
}

export const make = (options: {
  readonly budgets: Budgets["Type"]
  readonly services: PaymasterRpc["Type"]
  readonly system: SystemSigners["Type"]
  readonly sponsorships: Sponsorships
}): Payers => {
  const { budgets, services, sponsorships, system } = options
  const of: Payers["of"] = (caller, connection, { entryPoint, paymaster, version }) => {
    if (paymaster === undefined) return Effect.succeed(wallet)
    const { paymasterServices, sponsor } = connection.profile
    const site = { caller, connection, entryPoint, version, paymaster }
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
        : Effect.dieMessage("the sponsor signs by what the operator's own node says alone")
    const named = paymasterServices.find((service) => service.paymaster === paymaster)
    return Effect.succeed(
      named === undefined
        ? Paymaster.plain(budgets, site)
        : Paymaster.service(budgets, services.connect(Redacted.value(named.url)), site)
    )
  }
  return {
    of,
    ofGiven: (caller, connection, { entryPoint, version }, ops) =>
      Effect.map(
        Effect.forEach(new Set(ops.flatMap((op) => Funding.paymasterOf(version, op) ?? [])), (paymaster) =>
          Effect.map(
            of(caller, connection, { entryPoint, version, paymaster }),
            (payer) => [paymaster, payer] as const
          )
        ),
        (payers) => GivenPayer.make(version, new Map(payers))
      )
  }
}
