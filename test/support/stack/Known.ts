import * as Effect from "effect/Effect"
import { RecoveryJournal } from "../../../src/application/ports/journal/RecoveryJournal.js"
import { Address, type Runtime, type Stack } from "./Stack.js"

/**
 * Makes the stack's earlier acts with the key known to the journal of this life. Otherwise they are a lost past:
 * possibly executed work waits until it can no longer land.
 */
export const past = (stack: Pick<Stack, "anvil" | "nonce" | "signer">, life: Runtime): Promise<void> =>
  life.runPromise(
    Effect.gen(function* () {
      const { explain } = yield* RecoveryJournal
      const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(stack.signer.address) }
      yield* explain(lane, BigInt(yield* Effect.promise(() => stack.nonce())))
    })
  )
