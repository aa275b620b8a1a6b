import { describe, expect, it } from "@effect/vitest"
import * as HeldNonces from "../../../../src/application/intake/submission/HeldNonces.js"
import type { OpRecord } from "../../../../src/application/ports/journal/Requests.js"
import * as Make from "../../../support/journal/Make.js"

const record = (index: number, over: Partial<OpRecord> = {}): OpRecord => ({
  ...Make.op({ index, nonceKey: 3n, sequence: 7n, userOpHash: Make.word(index) }),
  accountId: Make.alice,
  requestId: "r",
  state: "accepted",
  txHash: null,
  success: null,
  revertData: null,
  ...over
})
const indexes = (held: HeldNonces.HeldNonces) => [...held.keys()]

describe("the nonces that elements are held to", () => {
  it("are those of accepted ops for which something was signed", () => {
    const ops = [record(0), record(1), record(2, { state: "sent" }), record(3, { state: "settled" })]
    const held = HeldNonces.of({ ops, signed: [record(0), record(2), record(3)] }, [0, 1, 2, 3])
    expect(indexes(held)).toEqual([0])
    expect(held.get(0)).toMatchObject({ space: Make.space(1), nonceKey: 3n, sequence: 7n })
  })

  it("are those of the elements that are asked for", () => {
    const ops = [record(0), record(1)]
    expect(indexes(HeldNonces.of({ ops, signed: ops }, [1]))).toEqual([1])
  })

  it("are held by what was signed for the same element under the same nonce, and by nothing else", () => {
    const ops = [record(0)]
    for (const other of [
      record(1),
      record(0, { nonceKey: 4n }),
      record(0, { sequence: 8n }),
      record(0, { space: Make.space(2) }),
      record(0, { space: Make.space(1, { entryPoint: Make.otherEntryPoint }) })
    ])
      expect(indexes(HeldNonces.of({ ops, signed: [other] }, [0]))).toEqual([])
    const version = record(0, { userOpHash: Make.word(99) })
    expect(indexes(HeldNonces.of({ ops, signed: [version] }, [0]))).toEqual([0])
  })
})

describe("an op that has another nonce than its element is held to", () => {
  const held = HeldNonces.of({ ops: [record(0), record(1)], signed: [record(0), record(1)] }, [0, 1])
  const ready = (index: number, nonceKey: bigint, sequence: bigint) => ({ index, nonceKey, sequence })

  it("is one of another key or sequence, and an element that is held to none has any", () => {
    const ops = [ready(0, 3n, 7n), ready(1, 4n, 7n), ready(2, 9n, 9n)]
    expect(HeldNonces.displaced(ops, held)).toEqual({ moved: [ready(1, 4n, 7n)], behind: [] })
    expect(HeldNonces.displaced([ready(0, 3n, 8n)], held)).toEqual({ moved: [ready(0, 3n, 8n)], behind: [] })
  })

  it("is behind when an earlier one of its key is not used: it can not get its own", () => {
    const earlier = ready(0, 3n, 6n)
    expect(HeldNonces.displaced([earlier], held)).toEqual({ moved: [earlier], behind: [earlier] })
    const other = ready(0, 4n, 6n)
    expect(HeldNonces.displaced([other], held)).toEqual({ moved: [other], behind: [] })
  })
})
