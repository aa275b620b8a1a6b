import * as Result from "effect/Result"
import type { Address } from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"

/** One call that a wallet makes. */
export interface Call {
  readonly target: Address
  /** Wei, uint256. */
  readonly value: bigint
  readonly data: Hex.Hex
}

const executeSelector = Keccak.selector("execute(address,uint256,bytes)")
const executeBatchSelector = Keccak.selector("executeBatch((address,uint256,bytes)[])")

const members = (target: Address, value: bigint, data: Hex.Hex): ReadonlyArray<Words.Part> => [
  Words.address(target),
  Words.uint(value),
  Words.bytes(data)
]

/** Calldata of `execute(address target,uint256 value,bytes data) returns (bytes)`; `value` in wei. */
export const execute = (target: Address, value: bigint, data: Hex.Hex): Hex.Hex =>
  Words.call(executeSelector, members(target, value, data))

/** Calldata of `executeBatch((address target,uint256 value,bytes data)[] calls) returns (bytes[])`: all or none. */
export const executeBatch = (calls: ReadonlyArray<Call>): Hex.Hex =>
  Words.call(executeBatchSelector, [
    Words.array(calls.map(({ target, value, data }) => Words.dynamic(members(target, value, data))))
  ])

/** The calls that `execute` or `executeBatch` calldata makes, in order, as far as it reads; none for other calldata. */
export const read = (callData: Hex.Hex): ReadonlyArray<Call> => {
  const parameters = Words.read(Hex.unsafe(`0x${callData.slice(10)}`))
  const at = (cursor: Words.Cursor): Call => ({
    target: Words.readAddress(cursor, 0),
    value: Words.readUint(cursor, 32),
    data: Words.readBytes(cursor, 64)
  })
  if (callData.startsWith(executeSelector)) return [at(parameters)]
  if (!callData.startsWith(executeBatchSelector)) return []
  const { count, elements } = Words.readArray(parameters, 0)
  const calls: Array<Call> = []
  // Elements that overlap would multiply hostile data.
  let room = callData.length
  for (let index = 0; index < count && room >= 0; index += 1) {
    const call = at(Words.readTail(elements, index * 32))
    room -= call.data.length
    calls.push(call)
  }
  return calls
}

/**
 * Whether `execute` or `executeBatch` calldata is the canonical ABI encoding of its calls, without an extra byte. True for
 * other calldata, which has no such form.
 */
export const isCanonical = (callData: Hex.Hex): boolean => {
  const calls = read(callData)
  const [only] = calls
  if (callData.startsWith(executeSelector))
    return only !== undefined && execute(only.target, only.value, only.data) === callData
  return !callData.startsWith(executeBatchSelector) || executeBatch(calls) === callData
}

/**
 * Wei that the calls of `execute` or `executeBatch` calldata send together, those back to the wallet included; 0 for
 * other calldata. May exceed 256 bits.
 */
export const valueOf = (callData: Hex.Hex): bigint => {
  const parameters = Words.read(Hex.unsafe(`0x${callData.slice(10)}`))
  if (callData.startsWith(executeSelector)) return Words.readUint(parameters, 32)
  if (!callData.startsWith(executeBatchSelector)) return 0n
  const { count, elements } = Words.readArray(parameters, 0)
  let sum = 0n
  for (let index = 0; index < count; index += 1)
    sum += Words.readUint(Words.readTail(elements, index * 32), 32)
  return sum
}

/** Calldata of `configuration() view returns (Config config, uint64 configNonce)`: see `WalletConfig.decode`. */
export const configuration: Hex.Hex = Keccak.selector("configuration()")

/** Calldata of `validator() view returns (address)`. */
export const validator: Hex.Hex = Keccak.selector("validator()")

/** The return data of the inner call out of the return data of `execute`. `Failure` when it is not `abi.encode(bytes)`. */
export const decodeExecuteResult = (returnData: Hex.Hex): Result.Result<Hex.Hex, string> => {
  const inner = Words.readBytes(Words.read(returnData), 0)
  return Words.encode([Words.bytes(inner)]) === returnData
    ? Result.succeed(inner)
    : Result.fail("expected abi.encode(bytes)")
}

/** The return data of every inner call out of the return data of `executeBatch`. `Failure` when it is not `abi.encode(bytes[])`. */
export const decodeExecuteBatchResult = (
  returnData: Hex.Hex
): Result.Result<ReadonlyArray<Hex.Hex>, string> => {
  const { count, elements } = Words.readArray(Words.read(returnData), 0)
  const results: Array<Hex.Hex> = []
  // Elements that overlap cannot be canonical: without this bound they would multiply hostile data.
  let room = returnData.length
  for (let index = 0; index < count && room >= 0; index += 1) {
    const result = Words.readBytes(elements, index * 32)
    room -= result.length
    results.push(result)
  }
  return Words.encode([Words.array(results.map(Words.bytes))]) === returnData
    ? Result.succeed(results)
    : Result.fail("expected abi.encode(bytes[])")
}
