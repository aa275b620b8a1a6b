import type * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Words from "../../primitives/Words.js"

const selector = Keccak.selector("measureEach(bytes[])")

/**
 * One call to the lens instead of several of `GasLens.encodeCall`: each finds the state and the cold accounts of a
 * separate call. Only the gas left for it differs.
 */
export const encode = (calls: ReadonlyArray<Hex.Hex>): Hex.Hex =>
  Words.call(selector, [Words.array(calls.map(Words.bytes))])

/**
 * The lens's answers to `count` calls, as `GasLens.decode` takes them; otherwise null. The node may be hostile: the
 * answers together are never longer than the data.
 */
export const decode = (result: Hex.Hex, count: number): ReadonlyArray<Hex.Hex> | null => {
  const answer = Words.read(result)
  const { count: told, elements } = Words.readArray(answer, 0)
  if (told !== count) return null
  // Offsets that lead to the same bytes make much of little.
  let left = answer.digits.length
  const answers: Array<Hex.Hex> = []
  for (let place = 0; place < count; place += 1) {
    const each = Words.readBytes(elements, 32 * place)
    left -= each.length
    if (left < 0) return null
    answers.push(each)
  }
  return answers
}
