import * as Nonce from "../../../domain/erc4337/Nonce.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import * as Reasons from "../../request/Reasons.js"

/**
 * Ops of one key follow each other: those whose nonce the EntryPoint has consumed may have landed elsewhere, those with a
 * nonce that is not the next one fail.
 */
export const of = <
  A extends { readonly index: number; readonly op: Pick<UserOperation, "nonce" | "sender"> }
>(
  todo: ReadonlyArray<A>,
  sequences: ReadonlyMap<number, bigint>,
  failed: ReadonlyMap<number, ElementFailure>
) => {
  const next = new Map<string, bigint>()
  const consumed: Array<A> = []
  const misplaced = new Map<number, ElementFailure>()
  for (const each of todo) {
    const sequence = sequences.get(each.index)
    if (sequence === undefined) continue
    const nonceKey = `${each.op.sender}:${Nonce.keyOf(each.op.nonce)}`
    const expected = next.get(nonceKey) ?? sequence
    const own = Nonce.sequenceOf(each.op.nonce)
    if (own < sequence) consumed.push(each)
    else if (own === expected && !failed.has(each.index)) next.set(nonceKey, expected + 1n)
    else if (!failed.has(each.index))
      misplaced.set(each.index, elementFailure("invalid_nonce", Reasons.text("nonceOrder", { expected })))
  }
  return { consumed, misplaced }
}
