import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Balances from "../application/observe/Balances.js"
import * as Observed from "../application/observe/Observed.js"
import { AuditLog } from "../application/ports/AuditLog.js"
import { ChainRpc } from "../application/ports/chain/ChainRpc.js"
import type { Journals } from "../application/ports/journal/Journals.js"
import { Signers, SystemSigners } from "../application/ports/Signers.js"
import type { Config } from "./config/Config.js"

/** How often the balances of the EOAs that submit are looked at. */
const balanceInterval = "60 seconds"

/** The ports of the adapters with somebody watching: spans, figures, the audit log, and balances that run low. */
export const layer = (config: Pick<Config, "networks" | "lowBalances">) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const { record } = yield* AuditLog
      const system = yield* SystemSigners
      const balances = Balances.make(
        config.networks.map((profile) => ({ profile, least: config.lowBalances.get(profile.chainId) ?? 0n }))
      )
      const nodes = Observed.chainRpc(yield* ChainRpc, balances)
      const signers = Observed.signers(yield* Signers, record)
      yield* Effect.ignore(
        Effect.flatMap(system.serviceEoa, ({ address }) =>
          Effect.forEach(config.networks, ({ chainId }) => balances.submits(chainId, address))
        )
      )
      yield* balances.check.pipe(
        Effect.provideService(ChainRpc, nodes),
        Effect.repeat(Schedule.spaced(balanceInterval)),
        Effect.forkScoped
      )
      return Context.empty().pipe(
        Context.add(ChainRpc, nodes),
        Context.add(Signers, {
          resolve: (account, ref) =>
            Effect.tap(signers.resolve(account, ref), ({ address }) => balances.register(address))
        }),
        Context.add(SystemSigners, Observed.systemSigners(system, record)),
        Context.merge(Observed.journal(yield* Effect.context<Journals>(), record))
      )
    })
  )
