import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Caller } from "../Caller.js"
import type { Failure } from "../Failure.js"
import { Custody } from "../operation/Operation.js"
import type { AbiStore } from "../ports/AbiStore.js"
import type { Bundler } from "../ports/Bundler.js"
import type { ChainRpc } from "../ports/ChainRpc.js"
import type { Journal } from "../ports/Journal.js"
import type { Networks } from "../ports/Networks.js"
import type { Signers, SystemSigners } from "../ports/Signers.js"
import * as Settings from "../Settings.js"
import { Created } from "../TransactionResult.js"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const Account = Schema.Struct({
  salt: optional(Schema.String).annotations({
    description: "Identifies the wallet. Required if wallet is empty."
  }),
  wallet: optional(Schema.String).annotations({ description: "Wallet address. Required if salt is empty." }),
  walletCustody: Custody,
  passkeyPubKey: optional(Schema.Array(Schema.String)).annotations({
    description: "Passkey public keys in base64. Required when custody is 2, 4 or 5."
  }),
  signers: optional(Schema.Array(Schema.Union(Schema.String, Settings.SignerRef))).annotations({
    description: "Signers of the validator. Required when custody is 3 or 4."
  }),
  threshold: optional(Schema.String).annotations({
    description: "Threshold of the validator. Required when custody is 3 or 4."
  }),
  legacyWallet: optional(Schema.Boolean)
}).annotations({ identifier: "Account" })

export const Request = Schema.Struct({
  accounts: Schema.Array(Account),
  settings: Settings.ForSubmission
}).annotations({ identifier: "CreateRequest" })
export type Request = typeof Request.Type

export const Response = Created
export type Response = Created

export declare const run: (
  caller: Caller,
  request: Request
) => Effect.Effect<
  Response,
  Failure,
  AbiStore | Bundler | ChainRpc | Journal | Networks | Signers | SystemSigners
>
