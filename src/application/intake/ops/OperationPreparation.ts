import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import * as Submitter from "../../pay/Submitter.js"
import type { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import type { Signer } from "../../ports/Signers.js"
import { CurrentRequest } from "../../request/CurrentRequest.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import * as Together from "../../runtime/Together.js"
import * as Estimation from "../estimate/Estimation.js"
import * as Preparation from "../Preparation.js"
import * as SignerAuthorization from "../SignerAuthorization.js"
import type * as HeldNonces from "../submission/HeldNonces.js"
import { dependencyFailed } from "../submission/SubmissionElements.js"
import type * as SubmissionPlan from "../submission/SubmissionPlan.js"
import * as Wallets from "../Wallets.js"
import * as BuildOps from "./BuildOps.js"
import type { EncodedCall } from "./Calls.js"
import * as Links from "./Links.js"
import * as NotBegun from "./NotBegun.js"
import * as OwnedWallets from "./OwnedWallets.js"
import * as Windows from "./Windows.js"

/** Seconds between a recent block and the one of the measurement; beyond that the chain's clock has leapt. */
const mostLag = 60

/** The operations of a request, and all that is known of them before the chain is looked at. */
export interface Input {
  readonly calls: ReadonlyArray<EncodedCall>
  readonly dependencies: Dependencies.Dependencies
  readonly walletOf: (index: number) => Address
  /** The first one submits. */
  readonly signers: readonly [Signer, ...ReadonlyArray<Signer>]
  readonly context: Preparation.OpContext
  readonly ledger: Address | null
  /** The validator that the request expects. */
  readonly validator: Address | undefined
  readonly revert: (data: Hex.Hex) => string
  /** Whose the leased nonce keys are. */
  readonly holder: string
  /** What is too early waits for its window, instead of failing. */
  readonly mayWait: boolean
}

type Able = Omit<BuildOps.AuthorizedCall, "nonceKey">
type KeyOf = (index: number, wallet: Address) => bigint

/**
 * Looks at the chain for elements of a request, and makes ops of those that can be executed. Long, since its steps share
 * what was seen at the last look.
 */
export const make = ({
  calls,
  context,
  dependencies,
  holder,
  ledger,
  mayWait,
  revert,
  signers,
  validator,
  walletOf
}: Input) =>
  Effect.gen(function* () {
    const { connection, spaceOf } = context
    const { profile } = connection
    const [signer] = signers
    const opJournal = yield* OpJournal
    const current = yield* CurrentRequest

    /** The epochs of the wallets as they were last seen: keys are leased anew when one has changed. */
    const epochs = new Map<Address, bigint>()
    const remember = (
      snapshot: Preparation.ChainSnapshot,
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
        const known = keys.size
        for (const wallet of [...distinct].sort()) {
          if (keys.has(wallet)) continue
          const leased = yield* Effect.orDie(
            opJournal.lease({
              ...spaceOf(wallet),
              holder,
              keys: Nonce.inEpoch(Nonce.serviceKeys, epochs.get(wallet) ?? 0n),
              count: 1,
              ttlMillis: Preparation.leaseMillis
            })
          )
          const [key] = leased ?? []
          if (key === undefined) return { keys, leased: keys.size - known, busy: wallet }
          keys.set(wallet, key)
        }
        return { keys, leased: keys.size - known, busy: null }
      })

    /** Others of a wallet wait for those of it that have a nonce already, unless one of those depends on them. */
    const afterHeld = (elements: ReadonlyArray<number>, held: HeldNonces.HeldNonces) => {
      const wallets = new Set([...held.values()].map(({ space }) => space.wallet))
      const first = elements.filter((index) => held.has(index) || !wallets.has(walletOf(index)))
      const waiting = elements.filter((index) => !first.includes(index))
      return first.some((index) => waiting.includes(dependencies[index] ?? -1)) ? elements : first
    }

    /** The chain's clock at the last look. */
    let clock: Pick<Preparation.ChainSnapshot["block"], "timestamp"> = { timestamp: 0 }
    const windowOf = (index: number) => calls[index]?.window ?? {}
    const hasBeginning = (index: number) => (windowOf(index).validAfter ?? 0) > 0

    /** Who of these can be executed now, as far as wallets, windows and signers go. */
    const willing = (
      elements: ReadonlyArray<number>,
      snapshot: Preparation.ChainSnapshot,
      scheduled: ReadonlyMap<number, number>
    ) =>
      Effect.gen(function* () {
        const todo = elements.flatMap((index) => calls[index] ?? [])
        const found = yield* OwnedWallets.find(
          todo.map(({ index, selector: { walletCustody } }) => ({
            index,
            wallet: walletOf(index),
            walletCustody
          })),
          snapshot.wallets
        )
        const failed = new Map<number, ElementFailure>(found.failed)
        const ready = new Map<number, Able>()
        for (const call of todo) {
          const { index } = call
          const bounds = Windows.check(call.window, `operations[${index}]`, snapshot.block)
          // Once the request is accepted, a window that has ended is the operation's own affair.
          if (Either.isLeft(bounds) && "_tag" in bounds.left && !current.accepted())
            return yield* Effect.fail(bounds.left)
          const config = found.configs.get(index)
          if (config === undefined) continue
          const consent = SignerAuthorization.bySigners(config, signers)
          if (Either.isLeft(bounds) && scheduled.has(index) && !("_tag" in bounds.left)) {
            if (Either.isLeft(consent)) failed.set(index, consent.left)
          } else if (Either.isLeft(bounds))
            failed.set(index, "_tag" in bounds.left ? elementFailure("window_passed") : bounds.left)
          else if (Either.isLeft(consent)) failed.set(index, consent.left)
          else if (!scheduled.has(index)) {
            const { validAfter, validUntil } = bounds.right
            ready.set(index, {
              call,
              wallet: walletOf(index),
              consent: consent.right,
              conditions: {
                validUntil: validUntil === 0 ? Preparation.validUntil(snapshot.block) : validUntil,
                validAfter,
                bundler: Submitter.boundTo(profile, signer.address)
              }
            })
          }
        }
        return { failed, ready }
      })

    /** An op without a window goes by the chain's clock for its ten minutes only. */
    const isTimeless = (index: number) => {
      const { validAfter = 0, validUnitl = 0 } = windowOf(index)
      return validAfter === 0 && validUnitl === 0
    }

    const inputOf = (
      able: ReadonlyMap<number, Able>,
      snapshot: Preparation.ChainSnapshot,
      keyOf: KeyOf,
      early: Estimation.Look | null
    ): BuildOps.Input => ({
      context,
      snapshot,
      ledger,
      dependencies,
      willing: new Map(
        [...able].map(([index, own]) => [index, { ...own, nonceKey: keyOf(index, own.wallet) }])
      ),
      from: signer.address,
      validator,
      revert,
      early
    })

    /**
     * The look with which the measurement of these elements begins if nothing has changed since the chain was last seen;
     * null: it is of no use. Asked for along with what has changed.
     */
    const lookEarly = (elements: ReadonlyArray<number>, last: Preparation.ChainSnapshot, keyOf: KeyOf) =>
      Effect.gen(function* () {
        const { ready } = yield* willing(elements, last, new Map())
        if (ready.size === 0) return null
        const look = yield* BuildOps.look(inputOf(ready, last, keyOf, null))
        return Number(look.report.block.timestamp) > Preparation.validUntil(last.block) ? null : look
      }).pipe(Effect.orElseSucceed(() => null))

    /** Ops of those that can be executed now, and why the others can not. */
    const assemble = (
      elements: ReadonlyArray<number>,
      snapshot: Preparation.ChainSnapshot,
      scheduled: ReadonlyMap<number, number>,
      keyOf: KeyOf,
      early: Estimation.Look | null
    ) =>
      Effect.gen(function* () {
        const { failed, ready: able } = yield* willing(elements, snapshot, scheduled)
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
      Effect.gen(function* () {
        const elements = afterHeld(all, held)
        const distinct = [...new Set(elements.map(walletOf))]
        const when = elements.every(isTimeless) ? "recent" : "now"
        const read = Effect.map(
          Together.all([
            Preparation.snapshot(context, distinct, when),
            Links.present(ledger, dependencies, connection)
          ]),
          ([seen]) => seen
        )
        const busyWith = (wallet: Address) => ({
          busy: elements.filter((index) => walletOf(index) === wallet)
        })
        // Who waits for a wallet that it has seen asks the journal first: the chain is not read at every wake-up.
        const unseen = distinct.some((wallet) => !epochs.has(wallet))
        const early = mayWait && elements.some(hasBeginning)
        const last = early || !trusts ? null : yield* Preparation.lastSeen(context, distinct)
        if (unseen && last !== null) remember(last, distinct)
        const first = early || (unseen && last === null) ? yield* read : null
        if (first !== null) remember(first, distinct)
        const scheduled =
          first !== null && early
            ? NotBegun.until(elements, windowOf, dependencies, {
                timestamp: first.block.timestamp,
                isApart: profile.remoteBundler !== null
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
            ? yield* Together.all([
                read,
                last === null ? Effect.succeed(null) : lookEarly(elements, last, keyOf)
              ])
            : [first, null]
        const changed = remember(seen, distinct).filter((wallet) => due.includes(wallet))
        const again = yield* lease(changed, held)
        if (again.busy !== null) return busyWith(again.busy)
        for (const [wallet, key] of again.keys) keys.set(wallet, key)
        const assembleOn = (snapshot: Preparation.ChainSnapshot, look: Estimation.Look | null) =>
          assemble(elements, snapshot, scheduled, keyOf, look)
        const made = yield* assembleOn(seen, look)
        const lag = Math.abs(made.estimate.timestamp - seen.block.timestamp)
        const { estimate, failed, ready, snapshot } =
          when === "recent" && lag > mostLag
            ? yield* Effect.flatMap(Preparation.atLatest(context, seen), (now) => assembleOn(now, null))
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
        const snapshot = yield* Preparation.snapshot(context, [...new Set(elements.map(walletOf))])
        const { timestamp } = snapshot.block
        const early = NotBegun.until(elements, windowOf, [], { timestamp, isApart: true })
        return (yield* willing(elements, snapshot, early)).failed
      })

    const prepare = (all: ReadonlyArray<number>, held: HeldNonces.HeldNonces) => prepareOn(all, held, true)

    return { check, clock: () => clock, prepare }
  })
