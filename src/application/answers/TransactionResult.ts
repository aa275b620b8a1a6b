import * as Schema from "effect/Schema"
import { optional } from "../request/Fields.js"

/** A log of the transaction: decoded when a definition fits, and always raw. */
export const DecodedLog = Schema.Struct({
  address: Schema.String,
  logIndex: Schema.Int,
  eventName: Schema.NullOr(Schema.String),
  eventDef: Schema.NullOr(Schema.String),
  args: Schema.Unknown,
  topics: Schema.Array(Schema.String),
  data: Schema.String
}).annotate({ identifier: "Log" })

/** Accompanies an error. */
export const RevertData = optional(Schema.String).annotateKey({
  description: "Revert data that no definition decodes, whole, in hex."
})

export const OperationResult = Schema.Struct({
  userOpHash: Schema.NullOr(Schema.String),
  success: Schema.Boolean,
  error: Schema.NullOr(Schema.String),
  result: Schema.Unknown,
  txHash: Schema.NullOr(Schema.String),
  data: RevertData
}).annotate({ identifier: "OperationResult" })
export type OperationResult = typeof OperationResult.Type

export const CreatedAccount = Schema.Struct({
  salt: Schema.String,
  wallet: Schema.String,
  error: optional(Schema.String),
  data: RevertData
}).annotate({ identifier: "CreatedAccount" })
export type CreatedAccount = typeof CreatedAccount.Type

/**
 * One object per element of the request, with its index as the only key. A record's type would have a string index, and
 * `returnData[0].error` would compile. The type is anonymous, so that programs need no name for answers.
 */
const keyBy = <A, I>(element: Schema.Codec<A, I>) =>
  Schema.make<Schema.Codec<{ readonly [index: number]: A }, { readonly [index: number]: I }>>(
    Schema.Record(Schema.String, element).ast
  )

const result = <A, I>(element: Schema.Codec<A, I>, statuses: string) =>
  Schema.Struct({
    status: Schema.Int.annotate({ description: statuses }),
    txHash: Schema.String.annotate({
      description:
        "Hash of the transaction, of the last one if there are several; empty when nothing was sent."
    }),
    cumulativeGasUsed: Schema.Int,
    gasUsed: Schema.Int.annotate({ description: "Gas used by all transactions together." }),
    effectiveGasPrice: Schema.String.annotate({ description: "Wei, decimal." }),
    returnData: Schema.Array(keyBy(element)).annotate({
      description: "One object per element of the request, in order, keyed by its index."
    }),
    logs: Schema.Array(DecodedLog),
    txHashes: Schema.Array(Schema.String)
  })

export const Executed = result(
  OperationResult,
  "0 failed, 1 success, 4 operations partially executed"
).annotate({
  identifier: "TransactionResult"
})
export type Executed = typeof Executed.Type

export const Created = result(
  CreatedAccount,
  "0 failed, 1 success, 2 account already created, 3 accounts partially created"
).annotate({ identifier: "CreateResult" })
export type Created = typeof Created.Type

/** A pending transaction with its new bytes. */
export const Replaced = Schema.Struct({
  nonce: Schema.Int,
  oldTxHash: Schema.NullOr(Schema.String).annotate({
    description: "Null for a transaction that the service did not send."
  }),
  newTxHash: Schema.NullOr(Schema.String).annotate({ description: "Null in a dry run." }),
  maxFeePerGas: Schema.String.annotate({ description: "Wei, decimal." }),
  maxPriorityFeePerGas: Schema.String.annotate({ description: "Wei, decimal." })
}).annotate({ identifier: "Replaced" })
export type Replaced = typeof Replaced.Type

export const Unstuck = Schema.Struct({
  ...Executed.fields,
  status: Schema.Int.annotate({ description: "0 failed, 1 success, 2 nothing was sent" }),
  replaced: Schema.Array(Replaced),
  unknown: Schema.Array(Schema.Int).annotate({
    description: "Nonces of waiting transactions that the service did not send, and that were left alone."
  })
}).annotate({ identifier: "UnstuckResult" })
export type Unstuck = typeof Unstuck.Type
