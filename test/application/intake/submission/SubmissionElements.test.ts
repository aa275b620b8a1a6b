import { describe, expect, it } from "@effect/vitest"
import * as Elements from "../../../../src/application/intake/submission/SubmissionElements.js"
import { elementFailure } from "../../../../src/application/request/Elements.js"
import * as Cells from "../../../support/Cells.js"
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

/** What an element is after a change. */
const table = `
          open         held         underWay     landed       failed       noted        done
fail      failedLater  failedLater  failedLater  landed       failed       noted        done
cancel    failedLater  held         underWay     landed       failed       noted        done
accept    underWay     underWay     underWay     landed       failed       noted        done
include   landedLater  landedLater  landedLater  landedLater  landedLater  landedLater  done
return    open         open         open         landed       failed       noted        done
hold      heldLater    heldLater    underWay     landed       failed       noted        done
free      open         open         underWay     landed       failed       noted        done
note      open         held         underWay     landed       noted        noted        done
do        done         done         underWay     landed       failed       noted        done
`

describe("an element", () => {
  it.each(Cells.of<keyof typeof changes, keyof typeof elements>(table))(
    "after %s of one that is %s is %s",
    (change, element, next) => {
      expect(Elements.step(elements[element], changes[change])).toEqual(
        elements[next as keyof typeof elements]
      )
    }
  )

  it("waits as long as it is open or held", () => {
    const waiting = Object.entries(elements).filter(([, element]) => Elements.isWaiting(element))
    expect(waiting.map(([name]) => name)).toEqual(["open", "held", "heldLater"])
  })
})
