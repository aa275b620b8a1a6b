import * as Outcome_ from "effect/Result"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"

/** Multicall3: many calls in one `eth_call`. Their `msg.sender` is the address at which its code runs. */

/** Its address, with the same code on nearly every chain. */
export const address: Address.Address = Address.unsafe("0xcA11bde05977b3631167028862bE2a173976CA11")

export interface Call {
  readonly to: Address.Address
  readonly data: Hex.Hex
}

export interface Result {
  readonly success: boolean
  /** Return data, or revert data. */
  readonly data: Hex.Hex
}

const aggregateSelector = Keccak.selector("aggregate3((address,bool,bytes)[])")

/**
 * A call that takes 45,000 gas and does nothing: the pairing check (EIP-197, EIP-1108) of no points. As the last calls
 * they prove how much gas the calls before them have left.
 */
export const toll: Call = {
  to: Address.unsafe("0x0000000000000000000000000000000000000008"),
  data: Hex.empty
}

/** Whether the toll was paid: the check of no points is true. */
export const isPaid = ({ data, success }: Result): boolean =>
  success && data === Words.encode([Words.bool(true)])

/** Calldata of `aggregate3((address target, bool allowFailure, bytes callData)[])`: a failed call fails no other. */
export const aggregate = (calls: ReadonlyArray<Call>): Hex.Hex =>
  Words.call(aggregateSelector, [
    Words.array(
      calls.map(({ data, to }) => Words.dynamic([Words.address(to), Words.bool(true), Words.bytes(data)]))
    )
  ])

const encodeResults = (results: ReadonlyArray<Result>): Hex.Hex =>
  Words.encode([
    Words.array(results.map(({ data, success }) => Words.dynamic([Words.bool(success), Words.bytes(data)])))
  ])

/**
 * The results of `aggregate3` for `count` calls: `(bool success, bytes returnData)[]`. `Failure` for anything else: an
 * address without code returns nothing, other code something else.
 */
export const decode = (returned: Hex.Hex, count: number): Outcome_.Result<ReadonlyArray<Result>, string> => {
  const { count: found, elements } = Words.readArray(Words.read(returned), 0)
  const results: Array<Result> = []
  // Elements that overlap cannot be canonical: without this bound they would multiply hostile data.
  let room = returned.length
  for (let index = 0; index < found && found === count && room >= 0; index += 1) {
    const element = Words.readTail(elements, index * 32)
    const data = Words.readBytes(element, 32)
    room -= data.length
    results.push({ success: Words.readUint(element, 0) === 1n, data })
  }
  return results.length === count && encodeResults(results) === returned
    ? Outcome_.succeed(results)
    : Outcome_.fail(`expected abi.encode of ${count} results`)
}
