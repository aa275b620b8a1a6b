import * as Effect from "effect/Effect"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import * as Custody from "../../../domain/wallet/Custody.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import type { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import * as Estimation from "../../prepare/estimate/Estimation.js"
import type { FirstLook } from "../../prepare/estimate/FirstLook.js"
import * as OpContext from "../../prepare/OpContext.js"
import * as Links from "../../prepare/ops/Links.js"
import * as NotBegun from "../../prepare/ops/NotBegun.js"
import * as Snapshot from "../../prepare/Snapshot.js"
import * as Wallets from "../../prepare/wallets/Wallets.js"
import { CurrentRequest } from "../../request/CurrentRequest.js"
import { dependencyFailed } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import type * as HeldNonces from "../submission/HeldNonces.js"
import type * as SubmissionPlan from "../submission/SubmissionPlan.js"
import * as BuildOps from "./BuildOps.js"
import * as ExecutableCalls from "./ExecutableCalls.js"

/** Seconds between a recent block and the one of the measurement; beyond that the chain's clock has leapt. */
const mostLag = 60

/** The operations of a request, and all that is known of them before the chain is looked at. */
export interface Input extends ExecutableCalls.Input {
  readonly dependencies: Dependencies.Dependencies
  readonly ledger: Address | null
  /** The validator that the request expects. */
  readonly validator: Address | undefined
  readonly revert: (data: Hex.Hex) => string
  /** Whose the leased nonce keys are. */
  readonly holder: string
  /** What is too early waits for its window, instead of failing. */
  readonly mayWait: boolean
}

type KeyOf = (index: number, wallet: Address) => bigint

/** Looks at the chain for elements of a request, and makes ops of those that can be executed. */
export const make = (input: Input) =>
  Effect.gen(function* () {
    const { calls, context, dependencies, holder, ledger, mayWait, revert, signers, validator, walletOf } =
      input
    const { connection, spaceOf } = context
    const opJournal = yield* OpJournal
    const current = yield* CurrentRequest
    const executable = (
      elements: ReadonlyArray<number>,
      snapshot: Snapshot.Snapshot,
      scheduled: ReadonlyMap<number, number>
    ) => ExecutableCalls.find(input, elements, snapshot, scheduled, current.accepted())

    /** The epochs of the wallets as they were last seen: keys are leased anew when one has changed. */
    const epochs = new Map<Address, bigint>()
    const remember = (
      snapshot: Snapshot.Snapshot,
      distinct: ReadonlyArray<Address>
    ): ReadonlyArray<Address> => {
      const changed = distinct.filter(
        (wallet) => epochs.get(wallet) !== Wallets.epochOf(snapshot.wallets.get(wallet))
      )
      for (const wallet of changed) epochs.set(wallet, Wallets.epochOf(snapshot.wallets.get(wallet)))
      return changed
    }

    /**
     * One key for each wallet, up to the first that has none left. In one order, so that of two requests for the
     * same wallets one gets all it needs.
     */
    const lease = (distinct: ReadonlyArray<Address>, held: HeldNonces.HeldNonces) =>
      Effect.gen(function* () {
        const keys = new Map([...held.values()].map(({ nonceKey, space }) => [space.wallet, nonceKey]))
        const wallets = [...distinct].sort().filter((wallet) => !keys.has(wallet))
        if (wallets.length === 0) return { keys, leased: 0, busy: null }
        const leased = yield* Effect.orDie(
          opJournal.lease(
            wallets.map((wallet) => ({
              ...spaceOf(wallet),
              holder,
              keys: Nonce.inEpoch(Nonce.serviceKeys, epochs.get(wallet) ?? 0n),
              count: 1,
              ttlMillis: OpContext.leaseMillis
            }))
          )
        )
        for (const [place, wallet] of wallets.entries()) {
          const key = leased[place]?.[0]
          if (key !== undefined) keys.set(wallet, key)
        }
        return { keys, leased: leased.length, busy: wallets[leased.length] ?? null }
      })

    /** Others of a wallet wait for those of it that have a nonce already, unless one of those depends on them. */
    const afterHeld = (elements: ReadonlyArray<number>, held: HeldNonces.HeldNonces) => {
      const wallets = new Set([...held.values()].map(({ space }) => space.wallet))
      const first = elements.filter((index) => held.has(index) || !wallets.has(walletOf(index)))
      const waiting = elements.filter((index) => !first.includes(index))
      return first.some((index) => waiting.includes(dependencies[index] ?? -1)) ? elements : first
    }

    const callsOf = (elements: ReadonlyArray<number>) => elements.flatMap((index) => calls[index]?.call ?? [])
    const passkeysIn = (elements: ReadonlyArray<number>) =>
      elements.some((index) => Custody.usesPasskeys(calls[index]?.selector.walletCustody ?? 0))

    /** The chain's clock at the last look. */
    let clock: Pick<Snapshot.Snapshot["block"], "timestamp"> = { timestamp: 0 }
    const windowOf = (index: number) => calls[index]?.window ?? {}
    const hasBeginning = (index: number) => (windowOf(index).validAfter ?? 0) > 0

    /** An op without a window goes by the chain's clock for its ten minutes only. */
    const isTimeless = (index: number) => {
      const { validAfter = 0, validUnitl = 0 } = windowOf(index)
      return validAfter === 0 && validUnitl === 0
    }

    const inputOf = (
      able: ReadonlyMap<number, ExecutableCalls.Executable>,
      snapshot: Snapshot.Snapshot,
      keyOf: KeyOf,
      early: FirstLook | null
    ): BuildOps.Input => ({
      context,
      snapshot,
      ledger,
      dependencies,
      willing: new Map(
        [...able].map(([index, own]) => [index, { ...own, nonceKey: keyOf(index, own.wallet) }])
      ),
      from: signers[0].address,
      validator,
      revert,
      early
    })

    /**
     * The look with which the measurement of these elements begins if nothing has changed since the chain was last seen;
     * null: it is of no use. Asked for along with what has changed.
     */
    const lookEarly = (elements: ReadonlyArray<number>, last: Snapshot.Snapshot, keyOf: KeyOf) =>
      Effect.gen(function* () {
        const { ready } = yield* executable(elements, last, new Map())
        if (ready.size === 0) return null
        return yield* BuildOps.look(inputOf(ready, last, keyOf, null))
      }).pipe(Effect.orElseSucceed(() => null))

    /** Ops of those that can be executed now, and why the others can not. */
    const assemble = (
      elements: ReadonlyArray<number>,
      snapshot: Snapshot.Snapshot,
      scheduled: ReadonlyMap<number, number>,
      keyOf: KeyOf,
      early: FirstLook | null
    ) =>
      Effect.gen(function* () {
        const { failed, ready: able } = yield* executable(elements, snapshot, scheduled)
        for (const index of Dependencies.order(dependencies, elements)) {
          const on = dependencies[index] ?? null
          if (on === null || !failed.has(on)) continue
          able.delete(index)
          if (!failed.has(index)) failed.set(index, dependencyFailed(on))
        }
        const assembled = yield* BuildOps.assemble(inputOf(able, snapshot, keyOf, early))
        return { ...assembled, failed: new Map([...failed, ...assembled.failed]), snapshot }
      })

    /** `trusts`: what was last seen of the wallets tells which nonce keys to lease. */
    const prepareOn = (
      all: ReadonlyArray<number>,
      held: HeldNonces.HeldNonces,
      trusts: boolean
    ): Effect.Effect<SubmissionPlan.Prepared | SubmissionPlan.Busy, Failure, BundlerRpc | ChainFacts> =>
      // biome-ignore lint/complexity/noExcessiveCognitiveComplexity: the steps of a slice read down, each with its refusals.
      Effect.gen(function* () {
        const elements = afterHeld(all, held)
        const distinct = [...new Set(elements.map(walletOf))]
        const when = elements.every(isTimeless) ? "recent" : "now"
        const read = Effect.map(
          Effect.all(
            [
              Snapshot.read(context, distinct, callsOf(elements), when, passkeysIn(elements)),
              Links.present(ledger, dependencies, connection)
            ],
            { concurrency: "unbounded" }
          ),
          ([seen]) => seen
        )
        const busyWith = (wallet: Address) => ({
          busy: elements.filter((index) => walletOf(index) === wallet)
        })
        // Who waits for a wallet that it has seen asks the journal first: the chain is not read at every wake-up.
        const unseen = distinct.some((wallet) => !epochs.has(wallet))
        const early = mayWait && elements.some(hasBeginning)
        const last = early || !trusts ? null : yield* Snapshot.lastSeen(context, distinct)
        if (unseen && last !== null) remember(last, distinct)
        const first = early || (unseen && last === null) ? yield* read : null
        if (first !== null) remember(first, distinct)
        const scheduled =
          first !== null && early
            ? NotBegun.until(elements, windowOf, dependencies, {
                timestamp: first.block.timestamp,
                isApart: connection.profile.remoteBundler !== null,
                version: context.version
              })
            : new Map<number, number>()
        const due = [...new Set(elements.filter((index) => !scheduled.has(index)).map(walletOf))]
        const { busy, keys, leased } = yield* lease(due, held)
        if (busy !== null && unseen && last !== null) {
          // Another configuration of the wallet has other keys.
          for (const wallet of distinct) epochs.delete(wallet)
          return yield* prepareOn(all, held, false)
        }
        if (busy !== null) return busyWith(busy)
        const keyOf = (index: number, wallet: Address) => held.get(index)?.nonceKey ?? keys.get(wallet) ?? 0n
        const [seen, look] =
          first === null
            ? yield* Effect.all(
                [
                  read,
                  // A paymaster's service is not asked twice.
                  last === null || context.payer.paymaster !== null
                    ? Effect.succeed(null)
                    : lookEarly(elements, last, keyOf)
                ],
                { concurrency: "unbounded" }
              )
            : [first, null]
        const changed = remember(seen, distinct).filter((wallet) => due.includes(wallet))
        const again = yield* lease(changed, held)
        if (again.busy !== null) return busyWith(again.busy)
        for (const [wallet, key] of again.keys) keys.set(wallet, key)
        const assembleOn = (snapshot: Snapshot.Snapshot, look: FirstLook | null) =>
          assemble(elements, snapshot, scheduled, keyOf, look)
        const made = yield* assembleOn(seen, look)
        const lag = Math.abs(made.estimate.timestamp - seen.block.timestamp)
        const { estimate, failed, ready, snapshot } =
          when === "recent" && lag > mostLag
            ? yield* Effect.flatMap(Snapshot.atLatest(context, seen), (now) => assembleOn(now, null))
            : made
        clock = snapshot.block
        return {
          ready,
          failed,
          done: [],
          scheduled,
          leased: leased + again.leased,
          funds: Estimation.fundsOf(context, estimate),
          deployments: [],
          prices: snapshot.prices,
          gasBound: snapshot.gasBound
        }
      })

    /** Why some of these elements cannot be executed at any time, as far as it can be told without measuring them. */
    const check = (elements: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        const wallets = [...new Set(elements.map(walletOf))]
        const snapshot = yield* Snapshot.read(
          context,
          wallets,
          callsOf(elements),
          "now",
          passkeysIn(elements)
        )
        const { timestamp } = snapshot.block
        const early = NotBegun.until(elements, windowOf, [], {
          timestamp,
          isApart: true,
          version: context.version
        })
        const { failed, ready } = yield* executable(elements, snapshot, early)
        const uncalled = yield* BuildOps.uncalled(inputOf(ready, snapshot, () => 0n, null))
        return new Map([...failed, ...uncalled])
      })

    const prepare = (all: ReadonlyArray<number>, held: HeldNonces.HeldNonces) => prepareOn(all, held, true)

    return { check, clock: () => clock, prepare }
  })
