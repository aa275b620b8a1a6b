import * as Effect from "effect/Effect"
import * as Bytecode from "../../../domain/evm/Bytecode.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import type { CallResult, ChainClient } from "../../ports/chain/ChainRpc.js"

/** Finds why a call failed without return data, as far as its target's code and repeated calls show. */

export interface FailedCall {
  readonly from?: Address
  readonly to: Address
  readonly data: Hex.Hex
  /** Wei. */
  readonly value?: bigint
}

export const outOfGas = "ran out of gas"
export const withoutReason = "reverted without a reason"

export const isSilent = ({ data, success }: CallResult): boolean => !success && data === Hex.empty

/** Queries the node once for the code, and at most twice for the call. Never fails. */
export const reason = (
  chain: ChainClient,
  facts: ChainFacts,
  { from, ...call }: FailedCall
): Effect.Effect<string> =>
  Effect.gen(function* () {
    const { data, to, value = 0n } = call
    const code = yield* facts.code(chain, to)
    if (code === null) return withoutReason
    if (data === Hex.empty)
      return value > 0n
        ? `the contract at ${to} takes no value without a call: it has no receive()`
        : `${withoutReason}: the contract at ${to} was called without data`
    const selector = data.slice(0, 10)
    if (Bytecode.lacks(code, selector))
      return `the contract at ${to} has no function with the selector ${selector}: check the signature`
    const asked = (value: bigint) => chain.call({ ...call, ...(from !== undefined && { from }), value })
    const [again, free] = yield* Effect.all([asked(value), value > 0n ? asked(0n) : Effect.succeed(null)], {
      concurrency: "unbounded"
    })
    if (again.outOfGas === true) return outOfGas
    return free !== null && isSilent(again) && !isSilent(free)
      ? `the function ${selector} of the contract at ${to} takes no value: it is not payable`
      : withoutReason
  }).pipe(Effect.orElseSucceed(() => withoutReason))
