import { describe, expect, it } from "@effect/vitest"
import * as Elements from "../../../../src/application/intake/submission/SubmissionElements.js"
import { elementFailure } from "../../../../src/application/request/Elements.js"
import * as Make from "../../../support/journal/Make.js"

const failure = elementFailure("wallet_busy")
const later = elementFailure("node_refused")
const nonce = { space: Make.space(1), nonceKey: 1n, sequence: 2n }
const outcome = {
  success: true,
  txHash: Make.word(1),
  revertData: null,
  userOpHash: Make.word(2),
  returned: null
}

const elements = {
  open: { _tag: "open" },
  held: { _tag: "held", nonce },
  underWay: { _tag: "underWay" },
  landed: { _tag: "landed", outcome },
  failed: { _tag: "failed", failure, isNoted: false },
  noted: { _tag: "failed", failure, isNoted: true },
  done: { _tag: "done" },
  failedLater: { _tag: "failed", failure: later, isNoted: false },
  landedLater: { _tag: "landed", outcome: { ...outcome, txHash: Make.word(3) } },
  heldLater: { _tag: "held", nonce: { ...nonce, sequence: 3n } }
} as const satisfies Readonly<Record<string, Elements.Element>>

const changes = {
  fail: { _tag: "fail", failure: later },
  cancel: { _tag: "cancel", failure: later },
  accept: { _tag: "accept" },
  include: { _tag: "include", outcome: elements.landedLater.outcome },
  return: { _tag: "return" },
  hold: { _tag: "hold", nonce: elements.heldLater.nonce },
  free: { _tag: "free" },
  note: { _tag: "note" },
  do: { _tag: "do" }
} as const satisfies Readonly<Record<string, Elements.Change>>

type Known = "open" | "held" | "underWay" | "landed" | "failed" | "noted" | "done"

const table: Readonly<Record<Known, Readonly<Record<keyof typeof changes, keyof typeof elements>>>> = {
  open: {
    fail: "failedLater",
    cancel: "failedLater",
    accept: "underWay",
    include: "landedLater",
    return: "open",
    hold: "heldLater",
    free: "open",
    note: "open",
    do: "done"
  },
  held: {
    fail: "failedLater",
    cancel: "held",
    accept: "underWay",
    include: "landedLater",
    return: "open",
    hold: "heldLater",
    free: "open",
    note: "held",
    do: "done"
  },
  underWay: {
    fail: "failedLater",
    cancel: "underWay",
    accept: "underWay",
    include: "landedLater",
    return: "open",
    hold: "underWay",
    free: "underWay",
    note: "underWay",
    do: "underWay"
  },
  landed: {
    fail: "landed",
    cancel: "landed",
    accept: "landed",
    include: "landedLater",
    return: "landed",
    hold: "landed",
    free: "landed",
    note: "landed",
    do: "landed"
  },
  failed: {
    fail: "failed",
    cancel: "failed",
    accept: "failed",
    include: "landedLater",
    return: "failed",
    hold: "failed",
    free: "failed",
    note: "noted",
    do: "failed"
  },
  noted: {
    fail: "noted",
    cancel: "noted",
    accept: "noted",
    include: "landedLater",
    return: "noted",
    hold: "noted",
    free: "noted",
    note: "noted",
    do: "noted"
  },
  done: {
    fail: "done",
    cancel: "done",
    accept: "done",
    include: "done",
    return: "done",
    hold: "done",
    free: "done",
    note: "done",
    do: "done"
  }
}

const names = <K extends string>(record: Readonly<Record<K, unknown>>) => Object.keys(record) as Array<K>

describe("an element that is", () => {
  for (const element of names(table))
    for (const change of names(table[element]))
      it(`${element} is ${table[element][change]} after ${change}`, () => {
        expect(Elements.step(elements[element], changes[change])).toEqual(elements[table[element][change]])
      })

  it("waits as long as it is open or held", () => {
    expect(names(table).filter((name) => Elements.isWaiting(elements[name]))).toEqual(["open", "held"])
  })
})
