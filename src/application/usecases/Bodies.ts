import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Offer } from "../intake/Intake.js"
import type { Body } from "../ports/journal/Records.js"
import type { Signer } from "../ports/Signers.js"
import * as GivenOps from "../prepare/given/GivenOps.js"
import * as SignerAuthorization from "../prepare/SignerAuthorization.js"
import type { Caller } from "../request/Caller.js"
import { type Failure, unprocessable } from "../request/Failure.js"
import * as ExecuteEncoded from "./operations/ExecuteEncoded.js"
import * as ExecuteOperations from "./operations/ExecuteOperations.js"
import * as ExecutePasskey from "./operations/ExecutePasskey.js"
import * as Offers from "./operations/Offers.js"
import * as TransactSigner from "./operations/TransactSigner.js"
import * as Unstuck from "./operations/Unstuck.js"
import * as CreateWallets from "./wallets/CreateWallets.js"

/** Accepted requests, read again from the bodies that the journal keeps, as their endpoints read them when they came. */

/** A request as it was offered, and the keys that its settings name. */
export interface Reopened extends Offer {
  readonly keys: ReadonlyArray<Signer>
}

const callerOf = (
  { accountId, requestId }: Pick<Body, "accountId" | "requestId">,
  chainId: bigint
): Caller => ({
  principal: { accountId, name: accountId, tier: "free", scopes: new Set(["write"]), paused: false },
  requestId,
  resumed: true,
  chainId
})

/** This version, or this key, can not read it; another one may. */
const unreadable = unprocessable("outcome_unknown")

const decode = <A, I>(schema: Schema.Codec<A, I>, body: string): Effect.Effect<A, Failure> =>
  Effect.mapError(Schema.decodeUnknownEffect(Schema.fromJsonString(schema))(body), () => unreadable)

const offerFrom = (
  caller: Caller,
  endpoint: string,
  body: string
): Effect.Effect<Offers.Offered<unknown>, Failure, Offers.Surroundings> =>
  Effect.gen(function* () {
    switch (endpoint) {
      case ExecuteOperations.kind.endpoint:
        return yield* Offers.execute(caller, yield* decode(ExecuteOperations.Request, body), body)
      case CreateWallets.kind.endpoint:
        return yield* Offers.create(caller, yield* decode(CreateWallets.Request, body), body)
      case ExecuteEncoded.kind.endpoint: {
        const { operations, settings } = yield* decode(ExecuteEncoded.Request, body)
        const read = (where: GivenOps.Where) => GivenOps.encoded(operations, where)
        const by = settings.signer === undefined ? "service" : "signer"
        return yield* Offers.given(caller, { endpoint, settings, read }, by, body)
      }
      case ExecutePasskey.kind.endpoint: {
        const { operations, settings } = yield* decode(ExecutePasskey.Request, body)
        const read = (where: GivenOps.Where) => GivenOps.asserted(operations, where)
        return yield* Offers.given(caller, { endpoint, settings, read }, "service", body)
      }
      case TransactSigner.kind.endpoint:
        return yield* Offers.transact(caller, yield* decode(TransactSigner.Request, body), body)
      case Unstuck.kind.endpoint:
        return yield* Offers.unstuck(caller, yield* decode(Unstuck.Request, body), body)
      default:
        return yield* Effect.fail(unreadable)
    }
  })

/** `chainId` is that of the request's lane. */
export const offerOf = (
  record: Pick<Body, "accountId" | "body" | "endpoint" | "requestId">,
  chainId: bigint
): Effect.Effect<Offers.Offered<unknown>, Failure, Offers.Surroundings> =>
  record.body === null
    ? Effect.fail(unreadable)
    : offerFrom(callerOf(record, chainId), record.endpoint, record.body)

/** See `offerOf`. */
export const read = (record: Body, chainId: bigint): Effect.Effect<Reopened, Failure, Offers.Surroundings> =>
  Effect.gen(function* () {
    const offer = yield* offerOf(record, chainId)
    const { caller, context } = offer
    const keys = context.kind === "ops" ? yield* SignerAuthorization.signersOf(caller, context.settings) : []
    return { ...offer, keys }
  })
