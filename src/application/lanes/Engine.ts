import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as ChainFacts from "../chain/ChainFacts.js"
import * as LaneSigners from "../keys/LaneSigners.js"
import * as Payers from "../pay/Payers.js"
import * as Sponsorships from "../pay/Sponsorships.js"
import { Budgets } from "../ports/Budgets.js"
import { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import type { ChainRpc } from "../ports/chain/ChainRpc.js"
import { PaymasterRpc } from "../ports/chain/PaymasterRpc.js"
import type { Journals } from "../ports/journal/Journals.js"
import { LaneJournal } from "../ports/journal/LaneJournal.js"
import { RemoteOpJournal } from "../ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { Networks } from "../ports/Networks.js"
import { Replicas } from "../ports/Replicas.js"
import { Signers, SystemSigners } from "../ports/Signers.js"
import { Lifetime } from "../runtime/Lifetime.js"
import * as NonceManager from "./NonceManager.js"
import { RemoteOps } from "./remote/RemoteOps.js"
import * as LaneClaims from "./requests/LaneClaims.js"
import * as OpenRequests from "./requests/OpenRequests.js"
import * as ScheduledRequests from "./requests/ScheduledRequests.js"
import * as Telling from "./requests/Telling.js"
import * as WakeUps from "./requests/WakeUps.js"
import * as TransactionMonitor from "./TransactionMonitor.js"
import * as Lanes from "./worker/Lanes.js"

/** What all writes of a process share. */
export type Engine =
  | ChainFacts.ChainFacts
  | NonceManager.NonceManager
  | TransactionMonitor.TransactionMonitor
  | RemoteOps
  | Payers.Payers
  | Sponsorships.Sponsorships
  | WakeUps.WakeUps
  | LaneClaims.LaneClaims
  | Lanes.Following
  | OpenRequests.OpenRequests
  | ScheduledRequests.ScheduledRequests
  | LaneSigners.SignerOf
  | Lifetime
  | Budgets
  | BundlerRpc

/**
 * The engine with its bundlers, its own and those of somebody else: everything that the writing use cases need beside
 * the adapters.
 */
export const layer: Layer.Layer<
  Engine,
  never,
  Budgets | BundlerRpc | ChainRpc | Journals | Replicas | Networks | PaymasterRpc | Signers | SystemSigners
> = Layer.effectContext(
  Effect.gen(function* () {
    const bundlers = yield* BundlerRpc
    const budgets = yield* Budgets
    const replicas = yield* Replicas
    const claims = LaneClaims.make(yield* LaneJournal, replicas)
    const scope = yield* Scope.Scope
    const services = yield* PaymasterRpc
    const system = yield* SystemSigners
    const signerOf = LaneSigners.resolver(yield* Signers, system)
    const wakeUps = yield* WakeUps.make(yield* RequestJournal)
    const { remoteOpJournal, transactionJournal } = Telling.journals(wakeUps, {
      remoteOpJournal: yield* RemoteOpJournal,
      requestJournal: yield* RequestJournal,
      transactionJournal: yield* TransactionJournal
    })
    const nudges = yield* Queue.sliding<void>(1)
    const nudge = Effect.asVoid(Queue.offer(nudges, undefined))
    const following = yield* Lanes.follow({
      remoteOpJournal,
      reopened: nudge,
      transactionJournal,
      wakeUps
    }).pipe(Effect.provideService(LaneSigners.SignerOf, signerOf))
    const { lanes, monitor, remoteOps } = following
    const openRequests = OpenRequests.make(yield* OpenRequests.OpenRequestBounds)
    const scheduledRequests = ScheduledRequests.make(
      yield* ScheduledRequests.ScheduledRequestBounds,
      yield* RequestJournal
    )
    yield* Effect.forkScoped(
      Stream.runForEach(replicas.heard, (signal) => {
        if (signal._tag === "final") {
          openRequests.close(signal.requestId)
          return wakeUps.notify([signal.requestId])
        }
        return replicas.owns(signal.lane) ? nudge : Effect.void
      })
    )
    yield* Effect.forkScoped(Stream.runForEach(replicas.assigned, () => nudge))
    const facts = ChainFacts.make()
    const sponsorships = Sponsorships.make(budgets, scope)
    const payers = Payers.make({ budgets, services, system, sponsorships })
    return Context.make(ChainFacts.ChainFacts, facts).pipe(
      Context.add(NonceManager.NonceManager, lanes),
      Context.add(TransactionMonitor.TransactionMonitor, monitor),
      Context.add(RemoteOps, remoteOps),
      Context.add(Payers.Payers, payers),
      Context.add(Sponsorships.Sponsorships, sponsorships),
      Context.add(WakeUps.WakeUps, wakeUps),
      Context.add(LaneClaims.LaneClaims, claims),
      Context.add(Lanes.Following, following),
      Context.add(OpenRequests.OpenRequests, openRequests),
      Context.add(ScheduledRequests.ScheduledRequests, scheduledRequests),
      Context.add(LaneSigners.SignerOf, signerOf),
      Context.add(Lifetime, { nudges, scope, stopWaiting: Effect.void }),
      Context.add(BundlerRpc, bundlers),
      Context.add(Budgets, budgets)
    )
  })
)
