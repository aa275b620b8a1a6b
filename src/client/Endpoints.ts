import type * as GetReceipts from "../application/endpoints/chain/GetReceipts.js"
import type * as ReadContracts from "../application/endpoints/chain/ReadContracts.js"
import type * as FilterEvents from "../application/endpoints/events/FilterEvents.js"
import type * as GetEvents from "../application/endpoints/events/GetEvents.js"
import type * as EstimateGas from "../application/endpoints/operations/EstimateGas.js"
import type * as ExecuteEncoded from "../application/endpoints/operations/ExecuteEncoded.js"
import type * as ExecuteOperations from "../application/endpoints/operations/ExecuteOperations.js"
import type * as ExecutePasskey from "../application/endpoints/operations/ExecutePasskey.js"
import type * as PasskeyHash from "../application/endpoints/operations/PasskeyHash.js"
import type * as TransactSigner from "../application/endpoints/operations/TransactSigner.js"
import type * as Unstuck from "../application/endpoints/operations/Unstuck.js"
import type * as AddError from "../application/endpoints/registry/AddError.js"
import type * as AddEvent from "../application/endpoints/registry/AddEvent.js"
import type * as GetBundlerAddress from "../application/endpoints/signing/GetBundlerAddress.js"
import type * as GetSigner from "../application/endpoints/signing/GetSigner.js"
import type * as SignMessage from "../application/endpoints/signing/SignMessage.js"
import type * as SignMessages from "../application/endpoints/signing/SignMessages.js"
import type * as CheckWallets from "../application/endpoints/wallets/CheckWallets.js"
import type * as CreateWallets from "../application/endpoints/wallets/CreateWallets.js"
import type * as PredictWallets from "../application/endpoints/wallets/PredictWallets.js"

/** JSON types of an endpoint's schemas. */
interface Module {
  readonly Request: { readonly Encoded: unknown }
  readonly Response: { readonly Encoded: unknown }
}

interface Of<M extends Module> {
  readonly request: M["Request"]["Encoded"]
  readonly response: M["Response"]["Encoded"]
}

/**
 * An answer with `returnData`. The client adds `outcomes`: the same elements without the objects that carry their
 * indexes.
 */
type Flat<R> = R extends { readonly returnData: ReadonlyArray<{ readonly [index: number]: infer A }> }
  ? R & { readonly outcomes: ReadonlyArray<A> }
  : never

interface Writing<M extends Module> {
  readonly request: M["Request"]["Encoded"]
  readonly response: Flat<M["Response"]["Encoded"]>
}

/** Endpoints that write: each call has an idempotency key. */
export interface Writes {
  readonly create: Writing<typeof CreateWallets>
  readonly execute: Writing<typeof ExecuteOperations>
  readonly executeEncoded: Writing<typeof ExecuteEncoded>
  readonly executePasskey: Writing<typeof ExecutePasskey>
  readonly transactSigner: Writing<typeof TransactSigner>
  readonly unstuck: Writing<typeof Unstuck>
}

/** The `settings` of a request that signs. */
export type Settings = Writes["execute"]["request"]["settings"]
export type Account = Writes["create"]["request"]["accounts"][number]
export type Operation = Writes["execute"]["request"]["operations"][number]
export type CreateResult = Writes["create"]["response"]
export type ExecuteResult = Writes["execute"]["response"]
/** Outcome of one operation. */
export type Outcome = ExecuteResult["outcomes"][number]

/** Endpoints that are safe to repeat. */
export interface Reads {
  readonly predict: Of<typeof PredictWallets>
  readonly check: Of<typeof CheckWallets>
  readonly estimateGas: Of<typeof EstimateGas>
  readonly passkeyHash: Of<typeof PasskeyHash>
  readonly read: Of<typeof ReadContracts>
  readonly receipt: Of<typeof GetReceipts>
  readonly filterEvent: Of<typeof FilterEvents>
  readonly getEvents: Of<typeof GetEvents>
  readonly addEvent: Of<typeof AddEvent>
  readonly addError: Of<typeof AddError>
  readonly getSigner: Of<typeof GetSigner>
  readonly getbundleraddress: Of<typeof GetBundlerAddress>
}

/** Every signature is an entry of the audit log: retried only after a 429 or a 503. */
export interface Signing {
  readonly sign: Of<typeof SignMessages>
  readonly signMessage: Of<typeof SignMessage>
}

export const signing: ReadonlyArray<keyof Signing> = ["sign", "signMessage"]

export const writes: ReadonlyArray<keyof Writes> = [
  "create",
  "execute",
  "executeEncoded",
  "executePasskey",
  "transactSigner",
  "unstuck"
]

export const reads: ReadonlyArray<keyof Reads> = [
  "predict",
  "check",
  "estimateGas",
  "passkeyHash",
  "read",
  "receipt",
  "filterEvent",
  "getEvents",
  "addEvent",
  "addError",
  "getSigner",
  "getbundleraddress"
]
