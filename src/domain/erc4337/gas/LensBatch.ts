import type * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Words from "../../primitives/Words.js"

const selector = Keccak.selector("measureEach(bytes[])")

/**
 * One call to the lens in the place of several of `GasLens.encodeCall`: each finds the state, and the cold accounts, that
 * it would find alone. Only the gas that is left for it differs.
 */
export const encode = (calls: ReadonlyArray<Hex.Hex>): Hex.Hex =>
  Words.call(selector, [Words.array(calls.map(Words.bytes))])

/**
 * What the lens answered to each of `count` calls, as `GasLens.decode` takes it; null when it is no such answer. The
 * node may be anybody's: what is taken out is never longer than the answer.
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
