import * as Effect from "effect/Effect"
import { RecoveryJournal } from "../../../src/application/ports/journal/RecoveryJournal.js"
import { Address, type Runtime, type Stack } from "./Stack.js"

/**
 * What the stack's own engine has done with the key before is known to the journal of this life. Else it is a past that the
 * journal has lost, and what may have been done in it waits until that can land no more.
 */
export const past = (stack: Pick<Stack, "anvil" | "nonce" | "signer">, life: Runtime): Promise<void> =>
  life.runPromise(
    Effect.gen(function* () {
      const { explain } = yield* RecoveryJournal
      const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(stack.signer.address) }
      yield* explain(lane, BigInt(yield* Effect.promise(() => stack.nonce())))
    })
  )
