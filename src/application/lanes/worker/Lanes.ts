import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Cancellations from "../../answers/Cancellations.js"
import type { WakeUps } from "../../answers/WakeUps.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import * as Delays from "../../failures/Delays.js"
import * as Elements from "../../failures/Elements.js"
import { SignerOf } from "../../keys/LaneSigners.js"
import * as Losses from "../../payers/Losses.js"
import { Budgets } from "../../ports/Budgets.js"
import { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import { ChainRpc } from "../../ports/chain/ChainRpc.js"
import { ClockTrust } from "../../ports/clock/ClockTrust.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import { RecoveryJournal } from "../../ports/journal/RecoveryJournal.js"
import { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import * as NetworkProfile from "../../ports/NetworkProfile.js"
import { Networks } from "../../ports/Networks.js"
import * as InFlight from "../InFlight.js"
import * as AccessNodes from "../monitor/AccessNodes.js"
import * as NonceManager from "../NonceManager.js"
import * as RemoteOps from "../remote/RemoteOps.js"
import * as Settlement from "../Settlement.js"
import * as StuckTransactions from "../StuckTransactions.js"
import * as TransactionMonitor from "../TransactionMonitor.js"
import type { Dependencies } from "./LaneState.js"
import * as LookUp from "./LookUp.js"
import * as Strays from "./recovery/Strays.js"
import * as Worker from "./Worker.js"

/** Lanes of a process: workers that make transactions, and monitors that follow them. */

/** Follows the transactions of all lanes, whichever process made them, and ops at remote bundlers. */
export interface Following {
  readonly inFlight: InFlight.InFlight
  readonly lanes: NonceManager.NonceManager
  readonly monitor: TransactionMonitor.TransactionMonitor
  readonly remoteOps: RemoteOps.RemoteOps
  readonly notifyEvents: Effect.Effect<void>
  readonly listen: (listener: Listener) => void
}

type Listener = Pick<Settlement.Listener, "affected" | "mined">

export const Following: Context.Key<Following, Following> = Context.Service("castellan/Following")

export interface Options {
  readonly following: Following
  readonly claims: Dependencies["claims"]
  readonly preparing: Dependencies["preparing"]
  readonly affected: Dependencies["affected"]
  readonly refused: Dependencies["remote"]["refused"]
}

/** `reopened`: wakes the rounds after a reorganisation undid a final answer. */
export const follow = ({
  reopened,
  wakeUps
}: {
  readonly reopened: Effect.Effect<void>
  readonly wakeUps: Pick<WakeUps, "notify" | "notifyEvents">
}) =>
  Effect.gen(function* () {
    let listener: Listener = { affected: () => Effect.void, mined: () => Effect.void }
    const listening: Settlement.Listener = {
      affected: (lane, requestIds) =>
        Effect.andThen(
          wakeUps.notify(requestIds),
          Effect.suspend(() => listener.affected(lane, requestIds))
        ),
      mined: (...of) => Effect.suspend(() => listener.mined(...of)),
      reopened,
      notifyEvents: wakeUps.notifyEvents
    }
    const transactionJournal = yield* TransactionJournal
    const inFlight = InFlight.make()
    const lanes = NonceManager.make(transactionJournal)
    const accessNodes = AccessNodes.make(yield* ChainRpc, yield* Networks)
    const losses = Losses.make(yield* Budgets)
    const settlement = Settlement.make({ transactionJournal, losses, listener: listening })
    const attend = StuckTransactions.make({
      accessNodes,
      lanes,
      scope: yield* Scope.Scope,
      settlement,
      signerOf: yield* SignerOf,
      transactionJournal
    })
    return {
      inFlight,
      lanes,
      monitor: yield* TransactionMonitor.make({ accessNodes, attend, inFlight, settlement }),
      remoteOps: yield* RemoteOps.make({ remoteOpJournal: yield* RemoteOpJournal, listener: listening }),
      notifyEvents: wakeUps.notifyEvents,
      listen: (next) => {
        listener = next
      }
    } satisfies Following
  })

export const make = ({ affected, claims, following, preparing, refused }: Options) =>
  Effect.gen(function* () {
    const { inFlight, lanes, monitor, notifyEvents, remoteOps } = following
    const opJournal = yield* OpJournal
    const transactionJournal = yield* TransactionJournal
    const remoteOpJournal = yield* RemoteOpJournal
    const requestJournal = yield* RequestJournal
    const recoveryJournal = yield* RecoveryJournal
    const networks = yield* Networks
    /** In nonce order: many nodes refuse a nonce ahead of the one they expect. */
    const watch = (lane: Lane) =>
      Effect.flatMap(transactionJournal.openOf(lane), (open) =>
        Effect.forEach(
          open,
          (record) =>
            Effect.flatMap(networks.profile(record.access.accountId, lane.chainId), (profile) =>
              profile === null || monitor.isWatched(record) ? Effect.void : monitor.watch({ profile, record })
            ),
          { discard: true }
        )
      )
    return Worker.make({
      opJournal,
      transactionJournal: {
        ...transactionJournal,
        record: (recording) => Effect.tap(transactionJournal.record(recording), notifyEvents)
      },
      watch,
      requestJournal,
      known: Strays.make({
        opJournal,
        recoveryJournal,
        transactionJournal,
        unopened: preparing.unopened,
        watch
      }),
      expiry: {
        mayExpire: (yield* ClockTrust).mayExpire,
        overdue: requestJournal.overdue,
        profileOf: (accountId, { chainId }) =>
          Effect.map(networks.profile(accountId, chainId), (profile) => profile ?? NetworkProfile.defaults),
        cancel: ({ isExposed, requestId }, delay) =>
          Cancellations.cancel(
            requestJournal,
            requestId,
            "request_expired",
            { onlyUnsigned: !isExposed },
            Delays.detailsOf(delay)
          )
      },
      lookUp: LookUp.make({ opJournal, recoveryJournal, remoteOpJournal }),
      // The note first: afterwards its elements need no row, whenever the process dies.
      foundDone: ({ index, requestId, space }) =>
        Effect.gen(function* () {
          const record = yield* requestJournal.request(requestId)
          if (record === null) return
          yield* requestJournal.note(requestId, Elements.noteOf(Elements.existingOf(record.note).add(index)))
          const lane = { chainId: space.chainId, signer: space.authority }
          yield* opJournal.fail(lane, [{ requestId, failed: [], done: [index] }])
        }),
      remote: {
        ops: remoteOps,
        journal: {
          ...remoteOpJournal,
          handOver: (...of) => Effect.tap(remoteOpJournal.handOver(...of), notifyEvents)
        },
        bundlers: yield* BundlerRpc,
        refused
      },
      exclusive: lanes.exclusive,
      claims,
      inFlight,
      monitor,
      facts: yield* ChainFacts,
      signerOf: yield* SignerOf,
      preparing,
      affected,
      scope: yield* Scope.Scope
    })
  })
