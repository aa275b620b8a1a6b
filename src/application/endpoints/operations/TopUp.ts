import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import { Executed } from "../../answers/TransactionResult.js"
import * as Connection from "../../chain/Connection.js"
import * as Keys from "../../keys/Keys.js"
import { SystemSigners } from "../../ports/Signers.js"
import * as OpContext from "../../prepare/OpContext.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { SignerRef } from "../../request/Settings.js"
import * as TransactSigner from "./TransactSigner.js"

/**
 * A top-up by the treasury, or by a signer of the account. The service makes such requests itself (`topups/TopUps.ts`); no route accepts one.
 */

export const Request = Schema.Struct({
  chainId: Schema.Int,
  to: Address.schema,
  value: Uint.schema,
  data: Hex.schema,
  /** Highest gas limit: the reserved sum covers it. */
  gas: Uint.schema,
  /** The account's key that pays; absent: the operator's treasury. */
  signer: Schema.optionalKey(SignerRef)
})
export type Request = typeof Request.Type

const endpoint = "/topUp"

/** The key that pays for the account's top-ups; absent: the operator's treasury. */
export const payerOf = (caller: Caller, signer?: Request["signer"]) =>
  signer === undefined
    ? Effect.flatMap(SystemSigners, ({ treasury }) => Effect.mapError(treasury, Keys.refusal("treasury")))
    : Keys.resolve(caller, signer, "signer")

const offerOf = Effect.fnUntraced(function* (
  caller: Caller,
  { chainId, signer, ...transaction }: Request,
  body: string
) {
  const { address } = yield* payerOf(caller, signer)
  const settings = { chainId }
  const connection = yield* Connection.openOperator(caller, settings)
  const context = yield* OpContext.directOf(caller, {
    connection,
    submitter: address,
    key: signer ?? "treasury",
    settings
  })
  const decoding = yield* Decoding.load(caller, [])
  return TransactSigner.offer(
    { body, caller, context, decoding, endpoint },
    { ...transaction, signature: null }
  )
})

export const kind = { endpoint, Request, Response: Executed, offerOf }
