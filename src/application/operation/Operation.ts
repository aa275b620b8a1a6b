import * as Schema from "effect/Schema"
import * as Address from "../../domain/evm/Address.js"
import * as Uint from "../../domain/evm/Uint.js"
import * as WalletCustody from "../../domain/wallet/Custody.js"
import { codeAnnotation } from "../Catalogue.js"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** Custody values 0 to 5. */
export const Custody = WalletCustody.schema.annotations({
  description: "0 unspecified, 1 ECDSA, 2 ECDSA or passkey, 3 multisig, 4 multisig with passkeys, 5 passkey",
  message: () => ({ message: "expected an integer from 0 to 5", override: true }),
  [codeAnnotation]: "invalid_wallet_custody_type"
})

/** Unix seconds; 0 means no bound. */
export const UnixSeconds = Schema.Int.pipe(Schema.between(0, 2 ** 48 - 1)).annotations({
  identifier: "UnixSeconds",
  message: () => "expected Unix seconds: an integer from 0 to 2^48 - 1"
})

/** One call that a wallet shall make. */
export const Operation = Schema.Struct({
  wallet: optional(Schema.String).annotations({ description: "Wallet address. Required if salt is empty." }),
  salt: optional(Schema.String).annotations({
    description: "Salt of the wallet. Required if wallet is empty."
  }),
  walletCustody: Custody,
  to: Address.schema.annotations({ description: "Target contract." }),
  funcSignature: Schema.String.annotations({ description: "For example transfer(address,uint256)." }),
  funcParams: optional(Schema.Array(Schema.Unknown)).annotations({
    description: "Parameters as strings; arrays and tuples as JSON text or JSON arrays."
  }),
  value: optional(Uint.schema).annotations({ description: "Wei sent with the call, decimal or 0x hex." }),
  validAfter: optional(UnixSeconds),
  validUnitl: optional(UnixSeconds),
  dependsOn: optional(Schema.Int)
}).annotations({ identifier: "Operation" })
export type Operation = typeof Operation.Type
