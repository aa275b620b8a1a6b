import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Failure, unprocessable } from "../failures/Failure.js"
import type { Body } from "../ports/journal/Records.js"
import type { Signer } from "../ports/Signers.js"
import type { Offer } from "../prepare/Offer.js"
import * as SignerAuthorization from "../prepare/SignerAuthorization.js"
import type { Caller } from "../request/Caller.js"
import type { Kind, Offered } from "./Offers.js"
import * as ExecuteEncoded from "./operations/ExecuteEncoded.js"
import * as ExecuteOperations from "./operations/ExecuteOperations.js"
import * as ExecutePasskey from "./operations/ExecutePasskey.js"
import * as TopUp from "./operations/TopUp.js"
import * as TransactSigner from "./operations/TransactSigner.js"
import * as Unstuck from "./operations/Unstuck.js"
import * as CreateWallets from "./wallets/CreateWallets.js"

/** Reads accepted requests again from their stored bodies, as their endpoints read them at first. */

/** A request's offer, and the keys that its settings name. */
export interface Reopened extends Offer {
  readonly keys: ReadonlyArray<Signer>
}

const callerOf = (
  { accountId, requestId }: Pick<Body, "accountId" | "requestId">,
  chainId: bigint,
  keyId: string | null
): Caller => ({
  principal: {
    accountId,
    name: accountId,
    tier: "free",
    scopes: new Set(["write"]),
    paused: false,
    keyId
  },
  requestId,
  resumed: true,
  chainId
})

/** This version, or this key, cannot read it; another one may. */
const unreadable = unprocessable("outcome_unknown")

const decode = <A, I>(schema: Schema.Codec<A, I>, body: string): Effect.Effect<A, Failure> =>
  Effect.mapError(Schema.decodeUnknownEffect(Schema.fromJsonString(schema))(body), () => unreadable)

/** The key of the request, which its endpoint's own fields follow. */
const Author = Schema.Struct({ keyId: Schema.optionalKey(Schema.NullOr(Schema.String)) })

/** The services that reading any endpoint's body needs. */
export type Surroundings = CreateWallets.Surroundings

const reader =
  <Q, I, A, R>({ Request, offerOf }: Kind<Q, I, Offered<A>, R>) =>
  (caller: Caller, body: string): Effect.Effect<Offered<unknown>, Failure, R> =>
    Effect.flatMap(decode(Request, body), (request) => offerOf(caller, request, body))

const readers: ReadonlyMap<
  string,
  (caller: Caller, body: string) => Effect.Effect<Offered<unknown>, Failure, Surroundings>
> = new Map([
  [ExecuteOperations.kind.endpoint, reader(ExecuteOperations.kind)],
  [CreateWallets.kind.endpoint, reader(CreateWallets.kind)],
  [ExecuteEncoded.kind.endpoint, reader(ExecuteEncoded.kind)],
  [ExecutePasskey.kind.endpoint, reader(ExecutePasskey.kind)],
  [TopUp.kind.endpoint, reader(TopUp.kind)],
  [TransactSigner.kind.endpoint, reader(TransactSigner.kind)],
  [Unstuck.kind.endpoint, reader(Unstuck.kind)]
])

/** `chainId` is that of the request's lane. */
export const offerOf = (
  record: Pick<Body, "accountId" | "body" | "endpoint" | "requestId">,
  chainId: bigint
): Effect.Effect<Offered<unknown>, Failure, Surroundings> =>
  Effect.suspend(() => {
    const read = readers.get(record.endpoint)
    return record.body === null || read === undefined
      ? Effect.fail(unreadable)
      : Effect.flatMap(decode(Author, record.body), ({ keyId = null }) =>
          read(callerOf(record, chainId, keyId), record.body ?? "")
        )
  })

/** Reads the offer and the keys, see `offerOf`. */
export const read = (record: Body, chainId: bigint): Effect.Effect<Reopened, Failure, Surroundings> =>
  Effect.gen(function* () {
    const offer = yield* offerOf(record, chainId)
    const { caller, context } = offer
    const keys = context.kind === "ops" ? yield* SignerAuthorization.signersOf(caller, context.settings) : []
    return { ...offer, keys }
  })
