import * as Schema from "effect/Schema"
import * as Address from "../../domain/primitives/Address.js"
import * as Uint from "../../domain/primitives/Uint.js"
import { Custody, FunctionText, optional, SaltText, shown, UnixSeconds } from "../request/Fields.js"

/** One call of a wallet. */
export const Operation = Schema.Struct({
  wallet: optional(Schema.String).annotateKey({ description: "Wallet address. Required if salt is empty." }),
  salt: optional(SaltText).annotateKey({
    description: "Salt of the wallet. Required if wallet is empty."
  }),
  walletCustody: Custody,
  to: shown(Address.schema, { description: "Target contract." }),
  funcSignature: FunctionText,
  funcParams: optional(Schema.Array(Schema.Unknown), []).annotateKey({
    description: "Parameters as strings; arrays and tuples as JSON text or JSON arrays."
  }),
  value: shown(optional(Uint.schema, 0n), {
    description: "Wei sent with the call, decimal or 0x hex."
  }),
  validAfter: optional(UnixSeconds, 0),
  validUnitl: optional(UnixSeconds, 0),
  dependsOn: optional(Schema.Int)
}).annotate({ identifier: "Operation" })
export type Operation = typeof Operation.Type
