import * as Effect from "effect/Effect"
import type * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Keccak from "../../../domain/primitives/Keccak.js"
import * as Words from "../../../domain/primitives/Words.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import type { ElementFailure } from "../../failures/Elements.js"
import type { Failure } from "../../failures/Failure.js"
import * as CalledContracts from "./CalledContracts.js"
import * as InitialSimulation from "./InitialSimulation.js"
import * as LensEstimation from "./LensEstimation.js"

/** Contracts that operations of a request call, and that earlier ones of it create. */

/** A sender for the lens, at an unused address. */
const eye = Address.fromWord(Keccak.hashText("castellan.lens.eye"))

/**
 * Returns the size of the code at the address in the first word of its calldata. In a validation's calldata that word
 * is the zero address, and the returned 0 is a successful validation.
 */
const eyeCode = Hex.unsafe("0x6000353b60005260206000f3")

/** An op that returns the size of the code at an address. */
const codeQuery = (target: Address.Address): UserOperation.UserOperation => ({
  sender: eye,
  nonce: 0n,
  initCode: Hex.empty,
  callData: Words.encode([Words.address(target)]),
  callGasLimit: 0n,
  verificationGasLimit: 0n,
  preVerificationGas: 0n,
  maxFeePerGas: 0n,
  maxPriorityFeePerGas: 0n,
  paymasterAndData: Hex.empty,
  signature: Hex.empty
})

interface Doubt {
  readonly index: number
  readonly target: Address.Address
}

/** The ops in order, each one between the probes of doubtful addresses that go before and after it. */
type Step = { readonly op: UserOperation.UserOperation; readonly doubt: Doubt | null }

/** Doubts that are unfounded: an earlier step has put a contract at the target. */
const created = (
  view: LensEstimation.View,
  steps: ReadonlyArray<Step>
): Effect.Effect<ReadonlySet<Doubt>, Failure, ChainFacts> =>
  Effect.gen(function* () {
    const cap = view.context.connection.profile.caps.transactionGas
    const seeing = { ...view, declared: false, extra: { [eye]: { code: eyeCode } } }
    const simulate = (grant: LensEstimation.Grant) =>
      Effect.map(
        LensEstimation.simulate(seeing, { trials: steps.map(({ op }) => ({ op, prefund: 0n, ...grant })) }),
        ({ measures }) => measures
      )
    const plenty = yield* simulate(InitialSimulation.generous(cap))
    const measures = plenty.some(LensEstimation.isStarved)
      ? yield* simulate(InitialSimulation.modest(cap))
      : plenty
    return new Set(
      steps.flatMap(({ doubt }, position) => {
        const seen = measures[position]
        return doubt !== null && seen?.stage === "ok" && BigInt(seen.data) > 0n ? [doubt] : []
      })
    )
  })

/**
 * Finds the ops that call an address without a contract. An earlier op of the request, or an earlier call of the same
 * op, may have created the contract. `codeless` are addresses without code on the chain. The node is queried only if
 * such an address is called after a step that could have created a contract there.
 */
export const missing = (
  view: LensEstimation.View,
  drafts: ReadonlyArray<Pick<InitialSimulation.Draft, "index" | "op">>,
  codeless: ReadonlySet<Address.Address>
): Effect.Effect<Map<number, ElementFailure>, Failure, ChainFacts> =>
  Effect.gen(function* () {
    const failed = new Map<number, ElementFailure>()
    if (codeless.size === 0) return failed
    const { profile } = view.context.connection
    const steps: Array<Step> = []
    /** Whether an earlier call has run code; nothing else creates contracts. */
    let active = false
    for (const { index, op } of drafts) {
      const before: Array<Step> = []
      const behind: Array<Step> = []
      for (const [place, call] of WalletCalls.read(op.callData).entries()) {
        const { target } = call
        if (!codeless.has(target) || !CalledContracts.needsOne(call, profile)) active = true
        else if (!active) failed.set(index, CalledContracts.failureAt(target, profile))
        else (place === 0 ? before : behind).push({ op: codeQuery(target), doubt: { index, target } })
      }
      steps.push(...before, { op: { ...op, paymasterAndData: Hex.empty }, doubt: null }, ...behind)
    }
    const doubts = steps.flatMap(({ doubt }) => (doubt === null || failed.has(doubt.index) ? [] : [doubt]))
    if (doubts.length === 0) return failed
    const unfounded = yield* created(view, steps)
    for (const doubt of doubts)
      if (!unfounded.has(doubt)) failed.set(doubt.index, CalledContracts.failureAt(doubt.target, profile))
    return failed
  })
