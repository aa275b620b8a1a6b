import { describe, expect, it } from "@effect/vitest"
import type { Element } from "../../../../src/application/intake/submission/SubmissionElements.js"
import type { State } from "../../../../src/application/intake/submission/SubmissionPhases.js"
import * as SubmissionProgress from "../../../../src/application/intake/submission/SubmissionProgress.js"
import { elementFailure } from "../../../../src/application/request/Elements.js"
import * as Make from "../../../support/journal/Make.js"

const now = 1_000_000
const patienceMillis = 60_000

const wrong = elementFailure("execution_failed")
const other = elementFailure("node_refused")

const outcome = {
  success: true,
  txHash: Make.word(100),
  revertData: null,
  userOpHash: Make.word(1),
  returned: null
}
const nonce = { space: Make.space(1), nonceKey: 0n, sequence: 0n }

const open: Element = { _tag: "open" }
const underWay: Element = { _tag: "underWay" }
const landed: Element = { _tag: "landed", outcome }
const failed: Element = { _tag: "failed", failure: wrong, isNoted: false }
const held: Element = { _tag: "held", nonce }

/** A request with these elements; `dependencies` says by index what each depends on. */
const request = (
  elements: ReadonlyArray<Element>,
  dependencies: State["terms"]["dependencies"] = []
): State => ({
  terms: { dependencies, isApart: false, patienceMillis, expiryMillis: 0 },
  elements: new Map(elements.entries()),
  phase: { _tag: "asking" },
  isAccepted: true,
  deadline: now,
  mayHold: false,
  tries: new Map(),
  shared: new Map(),
  usedNonces: 0,
  delayed: { by: null, times: 0 }
})

const tagsOf = ({ elements }: State) => [...elements.values()].map(({ _tag }) => _tag)
const codesOf = (failures: ReadonlyMap<number, { readonly code: string }>) =>
  Object.fromEntries([...failures].map(([index, { code }]) => [index, code]))

describe("the elements of a request", () => {
  it("that landed are told with their outcomes, and no others", () => {
    expect(SubmissionProgress.landedOf(request([open, landed, failed]))).toEqual(new Map([[1, outcome]]))
  })

  it("that wait fail with what they depend on; what is under way does not, nor what depends on no element of them", () => {
    expect(tagsOf(SubmissionProgress.failDependants(request([failed, open], [null, 0])))).toEqual([
      "failed",
      "failed"
    ])
    expect(tagsOf(SubmissionProgress.failDependants(request([failed, underWay], [null, 0])))).toEqual([
      "failed",
      "underWay"
    ])
    expect(tagsOf(SubmissionProgress.failDependants(request([open, open], [null, 7])))).toEqual([
      "open",
      "open"
    ])
  })

  it("that fail together name the one of them, or the one before, that they depend on", () => {
    const both = new Map([
      [0, wrong],
      [1, other]
    ])
    const second = new Map([[1, other]])
    const dependent = [null, 0]
    expect(codesOf(SubmissionProgress.named(request([underWay, underWay], dependent), both))).toEqual({
      0: wrong.code,
      1: "dependency_failed"
    })
    expect(codesOf(SubmissionProgress.named(request([failed, underWay], dependent), second))).toEqual({
      1: "dependency_failed"
    })
    expect(codesOf(SubmissionProgress.named(request([underWay, underWay], dependent), second))).toEqual({
      1: other.code
    })
    expect(codesOf(SubmissionProgress.named(request([open, underWay], [null, 7]), second))).toEqual({
      1: other.code
    })
    expect(codesOf(SubmissionProgress.named(request([underWay, underWay]), both))).toEqual({
      0: wrong.code,
      1: other.code
    })
  })

  it("are those of the request: what is said of others changes nothing", () => {
    const after = SubmissionProgress.failed(request([open]), new Map([[7, wrong]]))
    expect([...after.elements]).toEqual([[0, open]])
  })

  it("that came back are open again, and the journal is asked for their nonces; one whose nonce was used elsewhere has not tried", () => {
    const returned = new Map([[0, "external" as const]])
    const after = SubmissionProgress.settled(request([underWay]), { landed: new Map(), returned }, now)
    expect([tagsOf(after), after.mayHold, after.tries.size, after.shared.size]).toEqual([
      ["open"],
      true,
      0,
      0
    ])
  })

  it("are held to the nonces that the journal names, and to none any more where it names none", () => {
    expect(tagsOf(SubmissionProgress.held(request([open, held]), new Map([[0, nonce]])))).toEqual([
      "held",
      "open"
    ])
  })
})
