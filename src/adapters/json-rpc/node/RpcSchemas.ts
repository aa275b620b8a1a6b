import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"
import type {
  Block,
  FoundLog,
  KnownTransaction,
  SimulatedCall
} from "../../../application/ports/chain/ChainRpc.js"
import type { RawLog } from "../../../domain/evm/RawLog.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import { isRecord } from "../transport/JsonRpc.js"

/** Results of the Ethereum JSON-RPC (execution-apis), decoded from untrusted replies. */

const quantityShape = /^0x[0-9a-fA-F]{1,64}$/

const FromQuantity = <A>(to: Schema.Codec<A>, from: (text: string) => A | undefined) =>
  Schema.String.pipe(
    Schema.decodeTo(to, {
      decode: SchemaGetter.transformEffect((text) => {
        const value = quantityShape.test(text) ? from(text) : undefined
        return value === undefined
          ? Effect.fail(new SchemaIssue.InvalidValue({ message: "expected a quantity" }))
          : Effect.succeed(value)
      }),
      encode: SchemaGetter.forbidden(() => "answers are read only")
    })
  )

/** 0x and hex digits; accepts the leading zeros that some nodes write. */
export const Quantity: Schema.Codec<bigint, string> = FromQuantity(Schema.BigInt, BigInt)

/** Gas of a transaction or a block, below 2^40: sums of many stay exact as JavaScript numbers. */
export const GasUsed: Schema.Codec<bigint, string> = FromQuantity(Schema.BigInt, (text) => {
  const value = BigInt(text)
  return value < 2n ** 40n ? value : undefined
})

/** At most 8 bytes, as in block headers. */
export const BlockNumber: Schema.Codec<bigint, string> = FromQuantity(Schema.BigInt, (text) => {
  const value = BigInt(text)
  return value < 2n ** 64n ? value : undefined
})

/** A quantity that a JavaScript number holds exactly. */
export const Count: Schema.Codec<number, string> = FromQuantity(Schema.Number, (text) => {
  const value = Number(BigInt(text))
  return Number.isSafeInteger(value) ? value : undefined
})

export const Topics = Schema.Array(Hex.schema32).check(Schema.isMaxLength(4))

/** Decodes a value that may be absent or malformed, to null then. */
export const readOrNull = <A, I>(schema: Schema.Codec<A, I>) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (value: unknown): A | null => Option.getOrNull(decode(value))
}

const absent = <A, I>(schema: Schema.Codec<A, I>) => Schema.optional(Schema.NullOr(schema))

const LogMembers = {
  address: Address.schema,
  topics: Topics,
  data: Hex.schema
}

/** Stands for the hash of a pending block, which some nodes leave out. */
export const zeroHash = Hex.unsafe32(`0x${"00".repeat(32)}`)

const BlockAnswer = Schema.Struct({
  number: Quantity,
  hash: Schema.NullOr(Hex.schema32),
  timestamp: Count,
  gasLimit: Quantity,
  baseFeePerGas: absent(Quantity)
})

export const MaybeBlock = Schema.NullOr(BlockAnswer)

export const toBlock = (answer: typeof BlockAnswer.Type): Block => ({
  number: answer.number,
  hash: answer.hash ?? zeroHash,
  timestamp: answer.timestamp,
  gasLimit: answer.gasLimit,
  baseFeePerGas: answer.baseFeePerGas ?? null
})

/** Null for a pending block, which has no hash. */
export const MaybeHeader = Schema.NullOr(
  Schema.Struct({ number: BlockNumber, hash: Hex.schema32, parentHash: Hex.schema32 })
)

/** The elements of each block are decoded separately. */
export const FeeHistory = Schema.Struct({
  /**
   * Of the requested blocks and the next one. Nodes may return fewer blocks; the last element is still the next block's. It
   * is the only element until anvil has recorded the fees of the block just mined.
   */
  baseFeePerGas: Schema.Array(Schema.Unknown).pipe(
    Schema.check(Schema.isMinLength(1)),
    Schema.check(Schema.isMaxLength(1_025))
  ),
  /** Of each block; 0 marks an empty block. */
  gasUsedRatio: absent(Schema.Array(Schema.Unknown)),
  reward: absent(Schema.Array(Schema.Unknown).check(Schema.isMaxLength(1_024)))
})

export const quantityOrNull = readOrNull(Quantity)

export const ReceiptLog = Schema.Struct({ ...LogMembers, logIndex: Count })

/** Some nodes return the calldata as `data`. */
const withInput = (answer: unknown): unknown =>
  isRecord(answer) && answer.input === undefined && answer.data !== undefined
    ? { ...answer, input: answer.data }
    : answer

export const transactionsOf = (list: ReadonlyArray<unknown>): ReadonlyArray<unknown> => list.map(withInput)

export const TransactionAnswer = Schema.Struct({
  hash: Hex.schema32,
  from: Address.schema,
  nonce: Quantity,
  to: absent(Address.schema),
  input: Hex.schema,
  value: Quantity,
  gas: Quantity,
  gasPrice: absent(Quantity),
  maxFeePerGas: absent(Quantity),
  maxPriorityFeePerGas: absent(Quantity),
  blockNumber: absent(BlockNumber)
})

export const MaybeTransaction = Schema.NullOr(TransactionAnswer)

export const MaybeFullBlock = Schema.NullOr(Schema.Struct({ transactions: Schema.Array(Schema.Unknown) }))

export const toTransaction = (answer: typeof TransactionAnswer.Type): KnownTransaction => ({
  txHash: answer.hash,
  from: answer.from,
  nonce: answer.nonce,
  to: answer.to ?? null,
  data: answer.input,
  value: answer.value,
  gasLimit: answer.gas,
  maxFeePerGas: answer.maxFeePerGas ?? answer.gasPrice ?? 0n,
  maxPriorityFeePerGas: answer.maxPriorityFeePerGas ?? answer.gasPrice ?? 0n,
  blockNumber: answer.blockNumber ?? null
})

export const LogAnswer = Schema.Struct({
  ...LogMembers,
  logIndex: Schema.NullOr(Count),
  transactionHash: Schema.NullOr(Hex.schema32),
  blockNumber: Schema.NullOr(Quantity),
  blockHash: Schema.NullOr(Hex.schema32),
  removed: absent(Schema.Boolean)
})

/** A list whose elements are decoded one by one. */
export const List = Schema.Array(Schema.Unknown)

/** Logs in a block: drops pending logs, which have no place yet, and removed logs, which have lost it. */
export const toFoundLogs = (answer: ReadonlyArray<typeof LogAnswer.Type>): ReadonlyArray<FoundLog> =>
  answer.flatMap(({ address, blockHash, blockNumber, data, logIndex, removed, topics, transactionHash }) =>
    blockNumber === null ||
    blockHash === null ||
    logIndex === null ||
    transactionHash === null ||
    removed === true
      ? []
      : [{ address, topics, data, logIndex, txHash: transactionHash, blockNumber, blockHash }]
  )

const SimulatedCallAnswer = Schema.Struct({
  status: Schema.Literals(["0x1", "0x0", "0x01", "0x00"]),
  returnData: Hex.schema,
  gasUsed: Quantity,
  logs: absent(Schema.Array(Schema.Unknown)),
  error: absent(Schema.Unknown)
})

/** A log of a simulated call, decoded separately: a reply may hold many. */
export const SimulatedLog = Schema.Struct({ ...LogMembers, logIndex: absent(Count) })

/** One block with one result per call. */
export const Simulated = Schema.Tuple([Schema.Struct({ calls: Schema.Array(SimulatedCallAnswer) })])

/** Some nodes put the data of a revert into `returnData`, some into the error. */
export const toSimulatedCall = (
  answer: typeof SimulatedCallAnswer.Type,
  found: ReadonlyArray<typeof SimulatedLog.Type>
): SimulatedCall => {
  const success = answer.status.endsWith("1")
  const inError = isRecord(answer.error) ? answer.error.data : undefined
  const data =
    !success && answer.returnData === "0x" && typeof inError === "string" && Hex.is(inError)
      ? Hex.unsafe(inError)
      : answer.returnData
  const logs: ReadonlyArray<RawLog> = found.map(({ address, data: bytes, logIndex, topics }, place) => ({
    address,
    topics,
    data: bytes,
    logIndex: logIndex ?? place
  }))
  return { success, data, gasUsed: answer.gasUsed, logs }
}
