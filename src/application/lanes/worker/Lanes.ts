import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { ChainFacts } from "../../chain/ChainFacts.js"
import { SignerOf } from "../../keys/LaneSigners.js"
import * as Losses from "../../pay/Losses.js"
import { Budgets } from "../../ports/Budgets.js"
import { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import { ChainRpc } from "../../ports/chain/ChainRpc.js"
import { ClockTrust } from "../../ports/clock/ClockTrust.js"
import { LaneJournal } from "../../ports/journal/LaneJournal.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import { RecoveryJournal } from "../../ports/journal/RecoveryJournal.js"
import { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Lane, TransactionRecord } from "../../ports/journal/Transactions.js"
import { Networks } from "../../ports/Networks.js"
import * as Elements from "../../request/Elements.js"
import * as InFlight from "../InFlight.js"
import * as AccessNodes from "../monitor/AccessNodes.js"
import * as NonceManager from "../NonceManager.js"
import * as RemoteOps from "../remote/RemoteOps.js"
import * as Cancellations from "../requests/Cancellations.js"
import type { LaneClaims } from "../requests/LaneClaims.js"
import * as Settlement from "../Settlement.js"
import * as StuckTransactions from "../StuckTransactions.js"
import * as TransactionMonitor from "../TransactionMonitor.js"
import type { Dependencies } from "./LaneState.js"
import * as LookUp from "./LookUp.js"
import * as Record from "./Record.js"
import type { Preparing } from "./rules/Context.js"
import * as Strays from "./Strays.js"
import * as Worker from "./Worker.js"

/** A process's lanes: the workers that make transactions, and the monitor that follows them to their ends. */
export interface Lanes extends Worker.Worker {
  readonly monitor: TransactionMonitor.TransactionMonitor
}

/** What of the following of transactions concerns the workers. */
export interface Listener {
  readonly wake: (lane: Lane) => Effect.Effect<void>
  readonly included: Worker.Worker["included"]
  readonly mined: Worker.Worker["mined"]
  /** Something has become of these requests. */
  readonly affected: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
}

/** Follows the transactions of all lanes, whoever has made them. */
export interface Following {
  readonly inFlight: InFlight.InFlight
  readonly lanes: NonceManager.NonceManager
  readonly settlement: Settlement.Settlement
  readonly monitor: TransactionMonitor.TransactionMonitor
  /** Ops at bundlers of others. */
  readonly remoteOps: RemoteOps.RemoteOps
  /** From now on it is told what concerns it. */
  readonly listen: (listener: Listener) => void
}

export const Following: Context.Key<Following, Following> = Context.Service("castellan/Following")

export interface Options {
  readonly following: Following
  readonly claims: Pick<LaneClaims, "holding" | "take">
  readonly preparing: Preparing
  readonly unopened: Strays.Dependencies["unopened"]
  readonly revertOf: Dependencies["revertOf"]
  /** Something has become of these requests. */
  readonly affected: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
  /** Elements of these requests were refused by somebody else's bundler, and may land all the same. */
  readonly refused: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
}

const nobody: Listener = {
  wake: () => Effect.void,
  included: () => Effect.void,
  mined: () => Effect.void,
  affected: () => Effect.void
}

/** `wakeUps`, `reopened`: of what else works on the lanes, see `Settlement`. */
export const follow = ({
  remoteOpJournal,
  reopened,
  transactionJournal,
  wakeUps
}: Omit<Settlement.Dependencies, "losses"> & { readonly remoteOpJournal: RemoteOpJournal["Service"] }) =>
  Effect.gen(function* () {
    let listener = nobody
    const inFlight = InFlight.make()
    const lanes = NonceManager.make(transactionJournal)
    const accessNodes = AccessNodes.make(yield* ChainRpc, yield* Networks)
    const telling: Settlement.Dependencies["wakeUps"] = {
      notify: (names) => {
        const all = [...names]
        return Effect.andThen(
          wakeUps.notify(all),
          Effect.suspend(() => listener.affected(all.filter((name) => !name.startsWith("transaction "))))
        )
      },
      signal: (lane) =>
        Effect.andThen(
          wakeUps.signal(lane),
          Effect.suspend(() => listener.wake(lane))
        )
    }
    const remoteOps = yield* RemoteOps.make({ remoteOpJournal, wakeUps: telling, reopened })
    const settled = Settlement.make({
      transactionJournal,
      losses: Losses.make(yield* Budgets),
      wakeUps: telling,
      reopened
    })
    const minedForGood = (record: TransactionRecord) => Effect.suspend(() => listener.mined(record))
    const settlement: Settlement.Settlement = {
      ...settled,
      mined: (chain, record, receipt, seen) =>
        Effect.tap(settled.mined(chain, record, receipt, seen), () =>
          Effect.andThen(
            Effect.suspend(() => listener.included(record)),
            seen.final ? minedForGood({ ...record, mined: receipt }) : Effect.void
          )
        ),
      finalised: (record, confirmations) =>
        Effect.tap(settled.finalised(record, confirmations), () => minedForGood(record))
    }
    const attend = StuckTransactions.make({
      accessNodes,
      lanes,
      scope: yield* Scope.Scope,
      settlement,
      signerOf: yield* SignerOf,
      transactionJournal
    })
    const monitor = yield* TransactionMonitor.make({ accessNodes, attend, inFlight, settlement })
    return {
      inFlight,
      lanes,
      settlement,
      monitor,
      remoteOps,
      listen: (next) => {
        listener = next
      }
    } satisfies Following
  })

export const make = ({ affected, claims, following, preparing, refused, revertOf, unopened }: Options) =>
  Effect.gen(function* () {
    const { inFlight, lanes, monitor, remoteOps } = following
    const scope = yield* Scope.Scope
    const laneJournal = yield* LaneJournal
    const opJournal = yield* OpJournal
    const transactionJournal = yield* TransactionJournal
    const remoteOpJournal = yield* RemoteOpJournal
    const requestJournal = yield* RequestJournal
    const recoveryJournal = yield* RecoveryJournal
    const networks = yield* Networks
    const signerOf = yield* SignerOf
    /** In nonce order: many nodes refuse a nonce that is ahead of what they know. */
    const watch = (lane: Lane) =>
      Effect.flatMap(transactionJournal.inFlight(lane), (open) =>
        Effect.forEach(
          open,
          (transaction) =>
            Effect.flatMap(networks.profile(transaction.access.accountId, lane.chainId), (profile) => {
              const record = Record.recordOf(transaction)
              return profile === null || monitor.isWatched(record)
                ? Effect.void
                : monitor.watch({ profile, record })
            }),
          { discard: true }
        )
      )
    const worker = Worker.make({
      opJournal,
      transactionJournal,
      laneJournal: { takeOver: (lane) => Effect.andThen(laneJournal.takeOver(lane), watch(lane)) },
      requestJournal,
      known: Strays.make({
        opJournal,
        recoveryJournal,
        transactionJournal,
        unopened,
        watch
      }),
      expiry: {
        mayExpire: (yield* ClockTrust).mayExpire,
        overdue: requestJournal.overdue,
        cancel: (requestId) =>
          Cancellations.cancel(requestJournal, requestId, "request_expired", { onlyUnsigned: true })
      },
      lookUp: LookUp.make({ opJournal, recoveryJournal, remoteOpJournal }),
      // The note first: what it names needs no row any more, whatever ends the process in between.
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
        journal: remoteOpJournal,
        bundlers: yield* BundlerRpc,
        requests: requestJournal.requests,
        refused
      },
      exclusive: lanes.exclusive,
      claims,
      inFlight,
      monitor,
      facts: yield* ChainFacts,
      signerOf,
      preparing,
      revertOf,
      affected,
      scope
    })
    following.listen({ ...worker, affected })
    return { ...worker, monitor } satisfies Lanes
  })
