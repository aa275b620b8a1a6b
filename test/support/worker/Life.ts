import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as Intake from "../../../src/application/intake/Intake.js"
import * as Claims from "../../../src/application/lanes/Claims.js"
import * as Lanes from "../../../src/application/lanes/worker/Lanes.js"
import * as PrepareAgain from "../../../src/application/lanes/worker/prepare/PrepareAgain.js"
import type { Payers } from "../../../src/application/payers/Payer.js"
import type { AbiStore } from "../../../src/application/ports/AbiStore.js"
import type { ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import { LaneJournal } from "../../../src/application/ports/journal/LaneJournal.js"
import { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import { RecoveryJournal } from "../../../src/application/ports/journal/RecoveryJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import type { Lane } from "../../../src/application/ports/journal/Transactions.js"
import type { Networks } from "../../../src/application/ports/Networks.js"
import type { Signers } from "../../../src/application/ports/Signers.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as SignerAuthorization from "../../../src/application/prepare/SignerAuthorization.js"
import type * as Journals from "../journal/Journals.js"
import { Address, type useStack } from "../stack/Stack.js"

type Stack = ReturnType<typeof useStack>

/**
 * One life of intake and lanes over a separate journal, on the chain of a stack. The stack's earlier acts with the key
 * count as known.
 */
export const begin = async (
  stack: Stack,
  journal: Layer.Layer<Journals.Ports>,
  bodies: Map<string, ReadonlyArray<Operation>>
) => {
  const scope = await stack.runtime.runPromise(Scope.make())
  const ports = await stack.runtime.runPromise(Layer.buildWithScope(journal, scope))
  const lane: Lane = {
    chainId: BigInt(stack.anvil.chainId),
    signer: Address.unsafe(stack.signer.address)
  }
  const told: Array<string> = []
  const made = await stack.runtime.runPromise(
    Effect.gen(function* () {
      const requestJournal = yield* RequestJournal
      const recoveryJournal = yield* RecoveryJournal
      if ((yield* recoveryJournal.knownTo(lane)) === null)
        yield* recoveryJournal.explain(lane, BigInt(yield* Effect.promise(() => stack.nonce())))
      const services = yield* Effect.context<AbiStore | ChainRpc | Networks | Payers | Signers>()
      const callerOf = (requestId: string) => ({ ...stack.caller(), requestId })
      const preparing = yield* PrepareAgain.make({
        offered: () => undefined,
        requestJournal,
        read: ({ requestId }) =>
          Effect.gen(function* () {
            const caller = callerOf(requestId)
            const operations = bodies.get(requestId) ?? []
            const offer = yield* ExecuteOperations.kind.offerOf(
              caller,
              { operations, settings: stack.settings },
              ""
            )
            const keys = yield* SignerAuthorization.signersOf(caller, stack.settings)
            return { ...offer, keys }
          }).pipe(Effect.provideContext(services)),
        deployer: Effect.die(new Error("nothing is deployed"))
      })
      const affected = (requestIds: ReadonlyArray<string>) => Effect.sync(() => void told.push(...requestIds))
      const following = yield* Lanes.follow({
        reopened: Effect.void,
        wakeUps: { notify: () => Effect.void, notifyEvents: Effect.void }
      })
      const lanes = yield* Lanes.make({
        following,
        claims: Claims.make(yield* LaneJournal, {
          process: randomUUID(),
          owns: () => true,
          independent: Effect.succeed([]),
          tell: () => Effect.void,
          assigned: Stream.never,
          signals: Stream.never
        }),
        preparing,
        refused: () => Effect.void,
        affected
      })
      following.listen({
        affected: (of, requestIds) => Effect.andThen(affected(requestIds), lanes.wake(of)),
        mined: lanes.mined
      })
      const intake = yield* Intake.make({
        requestJournal,
        opJournal: yield* OpJournal,
        enterWaiting: () => Effect.void,
        wakeLane: lanes.accepted,
        broadcastUndone: () => Effect.void
      })
      return { intake, lanes }
    }).pipe(Effect.provide(ports), Scope.provide(scope))
  )
  return { ...made, ports, scope, lane, told }
}
