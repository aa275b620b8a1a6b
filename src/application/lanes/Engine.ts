import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as WakeUps from "../answers/WakeUps.js"
import * as ChainFacts from "../chain/ChainFacts.js"
import * as LaneSigners from "../keys/LaneSigners.js"
import * as HoldFollower from "../payers/HoldFollower.js"
import * as Payer from "../payers/Payer.js"
import * as Payers from "../payers/Payers.js"
import { Budgets } from "../ports/Budgets.js"
import { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import type { ChainRpc } from "../ports/chain/ChainRpc.js"
import { PaymasterRpc } from "../ports/chain/PaymasterRpc.js"
import type { Journals } from "../ports/journal/Journals.js"
import { LaneJournal } from "../ports/journal/LaneJournal.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { Networks } from "../ports/Networks.js"
import { Replicas } from "../ports/Replicas.js"
import { Signers, SystemSigners } from "../ports/Signers.js"
import { Lifetime } from "../runtime/Lifetime.js"
import * as Claims from "./Claims.js"
import * as Lanes from "./worker/Lanes.js"

export type Engine =
  | ChainFacts.ChainFacts
  | Payer.Payers
  | HoldFollower.HoldFollower
  | WakeUps.WakeUps
  | Claims.Claims
  | Lanes.Following
  | LaneSigners.SignerOf
  | Lifetime
  | Budgets
  | BundlerRpc

/** The engine with its own and remote bundlers: all that the writing use cases need in addition to the adapters. */
export const layer: Layer.Layer<
  Engine,
  never,
  Budgets | BundlerRpc | ChainRpc | Journals | Replicas | Networks | PaymasterRpc | Signers | SystemSigners
> = Layer.effectContext(
  Effect.gen(function* () {
    const bundlers = yield* BundlerRpc
    const budgets = yield* Budgets
    const replicas = yield* Replicas
    const claims = Claims.make(yield* LaneJournal, replicas)
    const scope = yield* Scope.Scope
    const services = yield* PaymasterRpc
    const system = yield* SystemSigners
    const signerOf = LaneSigners.resolver(yield* Signers, system)
    const wakeUps = yield* WakeUps.make(yield* RequestJournal)
    const nudges = yield* Queue.sliding<void>(1)
    const nudge = Effect.asVoid(Queue.offer(nudges, undefined))
    const following = yield* Effect.provideService(
      Lanes.follow({ reopened: nudge, wakeUps }),
      LaneSigners.SignerOf,
      signerOf
    )
    yield* Effect.forkScoped(
      Stream.runForEach(replicas.signals, (signal) => {
        if (signal._tag === "final") return wakeUps.notify([signal.requestId])
        return replicas.owns(signal.lane) ? nudge : Effect.void
      })
    )
    yield* Effect.forkScoped(Stream.runForEach(replicas.assigned, () => nudge))
    const follower = HoldFollower.make(budgets, scope)
    const facts = ChainFacts.make()
    return Context.make(ChainFacts.ChainFacts, facts).pipe(
      Context.add(Payer.Payers, Payers.make({ budgets, facts, services, system, follower })),
      Context.add(HoldFollower.HoldFollower, follower),
      Context.add(WakeUps.WakeUps, wakeUps),
      Context.add(Claims.Claims, claims),
      Context.add(Lanes.Following, following),
      Context.add(LaneSigners.SignerOf, signerOf),
      Context.add(Lifetime, { nudges, scope, stopWaiting: Effect.void }),
      Context.add(BundlerRpc, bundlers),
      Context.add(Budgets, budgets)
    )
  })
)
