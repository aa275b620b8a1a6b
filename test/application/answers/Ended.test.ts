import { describe, expect, it } from "vitest"
import * as Ended from "../../../src/application/answers/Ended.js"
import type { OpRecord, RequestRecord } from "../../../src/application/ports/journal/Requests.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"

const hashOf = (n: number): Hex.Bytes32 => Hex.unsafe32(`0x${n.toString(16).padStart(64, "0")}`)

const opOf = (index: number, over: Partial<OpRecord> = {}): OpRecord =>
  ({
    index,
    state: "settled",
    userOpHash: hashOf(index + 1),
    txHash: hashOf(100),
    success: true,
    revertData: null,
    returned: "0x01",
    ...over
  }) as OpRecord

const failure = (index: number) => ({ index, code: "execution_failed", message: "no", figures: {} })

const of = (over: Partial<RequestRecord>): Ended.Ended =>
  Ended.of({ cancelled: null, elements: 2, failed: [], note: null, ops: [], txHashes: [], ...over })

describe("a request that is at its end", () => {
  it("has landed only with settled ops", () => {
    const { failed, landed } = of({ ops: [opOf(0), opOf(1, { state: "abandoned" })], failed: [failure(1)] })
    expect([...landed.keys()]).toEqual([0])
    expect(landed.get(0)).toMatchObject({ success: true, txHash: hashOf(100), returned: "0x01" })
    expect([...failed.keys()]).toEqual([1])
  })

  it("has not failed when its ops landed", () => {
    const { failed, landed } = of({ ops: [opOf(0, { success: false })], failed: [failure(0)] })
    expect(landed.get(0)?.success).toBe(false)
    expect(failed.size).toBe(0)
  })

  it("has not failed when its elements were found done", () => {
    const { existing, failed } = of({ cancelled: "request_cancelled", note: '{"existing":[1]}' })
    expect([...existing]).toEqual([1])
    expect([...failed.keys()]).toEqual([0])
  })

  it("was cancelled with every element that neither landed nor failed before", () => {
    const { failed } = of({
      elements: 3,
      cancelled: "request_cancelled",
      ops: [opOf(0)],
      failed: [failure(1)]
    })
    expect([...failed].map(([index, { code }]) => [index, code])).toEqual([
      [1, "execution_failed"],
      [2, "request_cancelled"]
    ])
  })

  it("concerns its own transactions and the ones that landed its ops, each once", () => {
    const ended = of({ ops: [opOf(0), opOf(1, { txHash: hashOf(7) })], txHashes: [hashOf(100)] })
    expect(ended.txHashes).toEqual([hashOf(100), hashOf(7)])
    expect(Ended.mayBeUnmined(ended)).toBe(false)
  })

  it("may have a transaction that waits for a block while its ops landed in others", () => {
    expect(Ended.mayBeUnmined(of({ ops: [opOf(0, { txHash: hashOf(7) })], txHashes: [hashOf(100)] }))).toBe(
      true
    )
  })
})
