import type { Bytes32, Hex } from "../../domain/primitives/Hex.js"
import * as Elements from "../failures/Elements.js"
import type { OpRecord, RequestRecord } from "../ports/journal/Requests.js"

/** Outcomes of the elements of a request without remaining work, by the journal. Pure. */

export interface Landed {
  /** Null: a transaction of the signer. */
  readonly userOpHash: Bytes32 | null
  readonly success: boolean
  readonly txHash: Bytes32
  readonly revertData: Hex | null
  /** Its call's return data in the last simulation before it was sent; null: none was kept. */
  readonly returned: Hex | null
}

export interface Ended {
  readonly landed: ReadonlyMap<number, Landed>
  /** Failures of elements that have not landed. */
  readonly failed: ReadonlyMap<number, Elements.ElementFailure>
  readonly existing: ReadonlySet<number>
  /** The distinct transactions that concern it. */
  readonly txHashes: ReadonlyArray<Bytes32>
  readonly note: string | null
}

const landedOf = ({ returned, revertData, state, success, txHash, userOpHash }: OpRecord): Landed | null =>
  state === "settled" && txHash !== null
    ? { userOpHash, success: success === true, txHash, revertData, returned }
    : null

export const of = ({
  cancelled,
  elements,
  failed: failures,
  note,
  ops,
  txHashes
}: Pick<RequestRecord, "cancelled" | "elements" | "failed" | "note" | "ops" | "txHashes">): Ended => {
  const landed = new Map<number, Landed>()
  for (const op of ops) {
    const outcome = landedOf(op)
    if (outcome !== null) landed.set(op.index, outcome)
  }
  const existing = Elements.existingOf(note)
  const failed = new Map(Elements.ofJournal(failures).filter(([index]) => !landed.has(index)))
  for (let index = 0; cancelled !== null && index < elements; index += 1)
    if (!landed.has(index) && !failed.has(index) && !existing.has(index))
      failed.set(index, Elements.elementFailure(cancelled))
  return {
    landed,
    failed,
    existing,
    note,
    txHashes: [...new Set([...txHashes, ...[...landed.values()].map(({ txHash }) => txHash)])]
  }
}

/** Whether a transaction of it may be pending although all of its ops have ended, possibly elsewhere. */
export const mayBeUnmined = ({ landed, txHashes }: Ended): boolean => {
  const mined = new Set([...landed.values()].map(({ txHash }) => txHash))
  return txHashes.some((txHash) => !mined.has(txHash))
}

/** Whether every element has landed or failed; failed ones may still land. */
export const isDecided = (record: Parameters<typeof of>[0]): boolean => {
  const { failed, landed } = of(record)
  return failed.size + landed.size >= record.elements
}
