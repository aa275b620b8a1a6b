import * as Schema from "effect/Schema"
import * as WalletCustody from "../../domain/wallet/Custody.js"
import { codeAnnotation } from "../failures/Catalogue.js"

/** A field with its documentation, which describes its form on the wire and which a codec does not carry over. */
export const shown = <S extends Schema.Top>(
  field: S,
  annotations: Schema.Annotations.Key<S["Encoded"]>
): S["Rebuild"] => field.rebuild(Schema.flip(Schema.flip(field).annotateKey(annotations)).ast)

/**
 * An optional field; `null` and `undefined` are not accepted as values. Its absence means `byDefault`, which the
 * documentation shows and the use case fills in.
 */
export const optional = <A, I>(schema: Schema.Codec<A, I>, byDefault?: NoInfer<A>) => {
  const field = Schema.optionalKey(schema)
  return byDefault === undefined ? field : shown(field, { default: Schema.encodeSync(schema)(byDefault) })
}

/** Custody values 0 to 5. */
export const Custody = WalletCustody.schema.annotate({
  description: "0 unspecified, 1 ECDSA, 2 ECDSA or passkey, 3 multisig, 4 multisig with passkeys, 5 passkey",
  message: "expected an integer from 0 to 5",
  [codeAnnotation]: "invalid_wallet_custody_type"
})

/** Custody values of wallets whose address can be derived: 1 to 5. */
export const StoredCustody = WalletCustody.storedSchema.annotate({
  message: "expected an integer from 1 to 5",
  [codeAnnotation]: "invalid_wallet_custody_type"
})

/** A wallet's salt. The use case checks the rules of a salt. */
export const SaltText = Schema.String.annotate({ [codeAnnotation]: "invalid_salt_format" })

/** A function signature as in Solidity. The use case parses it. */
export const FunctionText = Schema.String.annotate({
  description: "For example transfer(address,uint256).",
  [codeAnnotation]: "invalid_function_signature"
})

/** URL of a node. The use case connects to it. */
const RpcUrl = Schema.String.annotate({
  description:
    "URL of a JSON-RPC endpoint of the chain, http or https. Default: the operator's node of chainId, or of the only chain with an operator's node.",
  [codeAnnotation]: "invalid_rpc"
})

const ChainId = Schema.Int.check(Schema.isGreaterThan(0)).annotate({
  description: "The chain to work on. With rpc, the chain that its node must serve.",
  message: "expected a chain id: a positive integer"
})

/** The node of a request: the caller's, or the operator's of a chain. */
export const node = { rpc: optional(RpcUrl), chainId: optional(ChainId) }

/** The last second of the year 2200. Later values were meant in milliseconds: such windows never begin or end. */
const latestSecond = 7_289_654_399

/** Unix seconds; 0 means no bound. */
export const UnixSeconds = Schema.Int.pipe(
  Schema.check(Schema.isBetween({ minimum: 0, maximum: latestSecond }))
).annotate({
  identifier: "UnixSeconds",
  description: "Unix seconds up to the end of the year 2200, not milliseconds; 0 means no bound.",
  message: `expected Unix seconds and no milliseconds: an integer from 0 to ${latestSecond} (the end of the year 2200)`
})
