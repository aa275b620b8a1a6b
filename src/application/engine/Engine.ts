import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import { Budgets } from "../ports/Budgets.js"
import { Bundler } from "../ports/Bundler.js"
import { BundlerRpc } from "../ports/BundlerRpc.js"
import { Journal } from "../ports/Journal.js"
import { PaymasterRpc } from "../ports/PaymasterRpc.js"
import { Signers, SystemSigners } from "../ports/Signers.js"
import * as ChainFacts from "./ChainFacts.js"
import * as LaneKeys from "./LaneKeys.js"
import * as Lanes from "./Lanes.js"
import * as Losses from "./Losses.js"
import * as OtherHands from "./OtherHands.js"
import * as Payers from "./Payers.js"
import * as Releases from "./Releases.js"
import * as RemoteBundler from "./RemoteBundler.js"
import * as Requests from "./Requests.js"
import * as SelfBundler from "./SelfBundler.js"
import * as Settlement from "./Settlement.js"
import * as Sponsorships from "./Sponsorships.js"
import * as Upkeep from "./Upkeep.js"
import * as Watcher from "./Watcher.js"

/** What all writes of a process share. */
export class Engine extends Context.Tag("castellan/Engine")<
  Engine,
  {
    readonly facts: ChainFacts.ChainFacts
    readonly lanes: Lanes.Lanes
    readonly watcher: Watcher.Watcher
    /** Ops that bundlers of somebody else were given. */
    readonly hands: OtherHands.OtherHands
    readonly bundlers: BundlerRpc["Type"]
    /** What the operator pays or risks for accounts. */
    readonly budgets: Budgets["Type"]
    readonly payers: Payers.Payers
    readonly sponsorships: Sponsorships.Sponsorships
    readonly releases: Releases.Releases
    readonly requests: Requests.Requests
    readonly signerOf: LaneKeys.SignerOf
    /** Requests whose final answer a reorganisation has undone: they are to go on. */
    readonly reopened: Queue.Dequeue<string>
    /** Tells everybody who waits for a sent transaction what is known of it, and to look again later. */
    readonly stopWaiting: Effect.Effect<void>
    /** Lives as long as the process: accepted work runs there, whether its caller still waits or not. */
    readonly scope: Scope.Scope
  }
>() {}

/**
 * The engine with its bundlers, its own and those of somebody else: everything that the writing use cases need beside
 * the adapters.
 */
export const layer: Layer.Layer<
  Engine | Bundler,
  never,
  Budgets | BundlerRpc | Journal | PaymasterRpc | Signers | SystemSigners
> = Layer.scopedContext(
  Effect.gen(function* () {
    const journal = yield* Journal
    const bundlers = yield* BundlerRpc
    const budgets = yield* Budgets
    const scope = yield* Scope.Scope
    const services = yield* PaymasterRpc
    const system = yield* SystemSigners
    const signerOf = LaneKeys.resolver(yield* Signers, system)
    const releases = yield* Releases.make
    const lanes = Lanes.make(journal)
    const reopened = yield* Queue.unbounded<string>()
    const reopen = (requestIds: ReadonlyArray<string>) => Effect.asVoid(Queue.offerAll(reopened, requestIds))
    const settlement = Settlement.make(journal, releases, Losses.make(budgets), reopen)
    const attend = Upkeep.make({ lanes, settlement, signerOf, scope })
    const watcher = yield* Watcher.make({ settlement, releases, attend })
    const hands = yield* OtherHands.make({ journal, releases, reopened: reopen })
    const facts = ChainFacts.make()
    const sponsorships = Sponsorships.make(budgets, scope)
    const payers = Payers.make({ budgets, services, system, sponsorships })
    const stopping = yield* Deferred.make<void>()
    const stopWaiting = Effect.asVoid(Deferred.succeed(stopping, undefined))
    const requests = Requests.make({ journal, releases, stopping, scope })
    const own = SelfBundler.make({ lanes, watcher, scope })
    const remote = RemoteBundler.make({ journal, bundlers, hands })
    return Context.make(Engine, {
      facts,
      lanes,
      watcher,
      hands,
      bundlers,
      budgets,
      payers,
      sponsorships,
      releases,
      requests,
      signerOf,
      reopened,
      scope,
      stopWaiting
    }).pipe(
      Context.add(Bundler, {
        submit: (bundle) => (bundle.profile.remoteBundler === null ? own : remote).submit(bundle)
      })
    )
  })
)
