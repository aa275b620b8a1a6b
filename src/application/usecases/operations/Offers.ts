import * as Effect from "effect/Effect"
import type { Offer } from "../../intake/Intake.js"
import type { Payers } from "../../pay/Payers.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers } from "../../ports/Signers.js"
import * as Call from "../../prepare/Call.js"
import * as EncodeCall from "../../prepare/EncodeCall.js"
import * as Links from "../../prepare/Links.js"
import * as OpContext from "../../prepare/OpContext.js"
import type { Operation } from "../../prepare/Operation.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import type { Failure } from "../../request/Failure.js"
import type { ForSubmission } from "../../request/Settings.js"

/** What requests ask for, as intake takes it: everything that a request can be wrong about by itself ends here. */

export const execute = (
  caller: Caller,
  {
    operations,
    settings
  }: { readonly operations: ReadonlyArray<Operation>; readonly settings: ForSubmission },
  body: string
): Effect.Effect<Offer, Failure, AbiStore | ChainRpc | Networks | Payers | Signers> =>
  Effect.gen(function* () {
    const encoded = yield* EncodeCall.encodeAll(operations)
    const dependencies = yield* Effect.fromResult(Links.dependencies(operations))
    const { revert } = yield* Decoding.load(caller, settings.useABI)
    const context = yield* OpContext.load(caller, settings)
    yield* Effect.fromResult(Links.ledger(dependencies, context.connection))
    const { requestId } = caller
    const calls = yield* Effect.fromResult(Call.ofOperations(requestId, encoded, dependencies, context))
    const mayWait = caller.isAsynchronous === true
    return { requestId, caller, endpoint: "/execute", context, calls, body, revert, mayWait }
  })
