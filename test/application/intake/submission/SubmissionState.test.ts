import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { HeldNonce } from "../../../../src/application/intake/submission/HeldNonces.js"
import type { Landed } from "../../../../src/application/intake/submission/SubmissionElements.js"
import * as Elements from "../../../../src/application/intake/submission/SubmissionElements.js"
import type {
  Action,
  Carrier,
  Event,
  Phase,
  State,
  Step,
  Terms
} from "../../../../src/application/intake/submission/SubmissionPhases.js"
import * as SubmissionProgress from "../../../../src/application/intake/submission/SubmissionProgress.js"
import * as SubmissionState from "../../../../src/application/intake/submission/SubmissionState.js"
import { elementFailure } from "../../../../src/application/request/Elements.js"
import * as Make from "../../../support/journal/Make.js"

const now = 1_000_000
const patienceMillis = 60_000
const expiryMillis = 600_000
const terms: Terms = { dependencies: [], isApart: false, patienceMillis, expiryMillis }

const wrong = elementFailure("execution_failed")
const cancelled = elementFailure("request_cancelled")
const refusing = elementFailure("node_refused")
const away = elementFailure("signer_unavailable")

const landing = (index: number, success = true): Landed => ({
  success,
  txHash: Make.word(100 + index),
  revertData: null,
  userOpHash: Make.word(index),
  returned: null
})
const landed = (...indexes: ReadonlyArray<number>) => new Map(indexes.map((index) => [index, landing(index)]))
const nonceOf = (index: number, sequence = 0n): HeldNonce => ({
  space: Make.space(1),
  nonceKey: BigInt(index),
  sequence
})
const ready = (index: number, sequence = 0n) => ({ index, nonceKey: BigInt(index), sequence })
const none = new Map<number, never>()

const follow = (seen: Partial<Extract<Event, { _tag: "followed" }>>): Event => ({
  _tag: "followed",
  landed: none,
  returned: none,
  ...seen
})
const sent = (result: Partial<Extract<Event, { _tag: "sent" }>>): Event => ({
  _tag: "sent",
  failed: none,
  outdated: none,
  forAll: null,
  delay: null,
  isSent: true,
  ...result
})
const prepared = (
  ...transfers: ReadonlyArray<ReadonlyArray<number>>
): Extract<Event, { _tag: "prepared" }> => ({
  _tag: "prepared",
  failed: none,
  done: [],
  scheduled: none,
  transfers: transfers.map((ops) => ops.map((index) => ready(index)))
})
const asked = (held: ReadonlyArray<number> = []): Extract<Event, { _tag: "asked" }> => ({
  _tag: "asked",
  landed: none,
  held: new Map(held.map((index) => [index, nonceOf(index)])),
  isUndecided: false
})
const accepted: Event = { _tag: "accepted" }

const through = (begun: Step, ...events: ReadonlyArray<Event>): Step =>
  events.reduce(({ state }, event) => SubmissionState.step(state, event, now), begun)

const fresh = (elements: ReadonlyArray<number> = [0, 1], of: Partial<Terms> = {}) =>
  SubmissionState.begin({ ...terms, ...of }, elements, { isAccepted: false, isResumed: false, now })

const tagsOf = ({ elements }: State) => [...elements.values()].map(({ _tag }) => _tag)
const codesOf = (state: State) =>
  Object.fromEntries([...SubmissionProgress.failuresOf(state)].map(([index, { code }]) => [index, code]))

/** A request of two elements, each in a transaction of its own, in every phase. */
const steps = {
  resuming: SubmissionState.begin(terms, [0, 1], { isAccepted: true, isResumed: true, now }),
  preparing: fresh(),
  offering: through(fresh(), prepared([0], [1])),
  sending: through(fresh(), prepared([0], [1]), accepted),
  following: through(fresh(), prepared([0], [1]), accepted, sent({})),
  yielding: through(
    fresh(),
    prepared([0], [1]),
    accepted,
    sent({}),
    follow({ returned: new Map([[0, "own"]]) })
  ),
  asking: through(
    fresh(),
    prepared([0], [1]),
    accepted,
    sent({}),
    follow({ returned: new Map([[0, "own"]]) }),
    { _tag: "yielded" },
    { _tag: "paused" }
  ),
  waiting: through(fresh(), { _tag: "busy", elements: [0] }),
  pausing: through(fresh(), { _tag: "delayed", by: away }),
  over: through(
    fresh(),
    prepared([0], [1]),
    accepted,
    sent({}),
    follow({ landed: landed(0) }),
    sent({}),
    follow({ landed: landed(1) })
  )
} as const satisfies Readonly<Record<Phase["_tag"], Step>>

const events = {
  resumed: {
    _tag: "resumed",
    failed: none,
    held: none,
    cancelled: null,
    landed: landed(0),
    returned: none
  },
  asked: asked(),
  askedInDoubt: { _tag: "asked", landed: none, held: none, isUndecided: true },
  prepared: prepared([0, 1]),
  nothingReady: { _tag: "prepared", failed: new Map([[0, wrong]]), done: [], scheduled: none, transfers: [] },
  busy: { _tag: "busy", elements: [0] },
  refused: { _tag: "refused", failure: wrong },
  delayed: { _tag: "delayed", by: away },
  accepted,
  occupied: { _tag: "occupied", index: 0 },
  nonceUsed: { _tag: "nonceUsed", index: 0 },
  deploymentPending: { _tag: "deploymentPending", index: 0 },
  cancelled: { _tag: "cancelled", failure: cancelled },
  sent: sent({}),
  followed: follow({ landed: landed(0) }),
  yielded: { _tag: "yielded" },
  woken: { _tag: "woken" },
  waitedInVain: { _tag: "waitedInVain" },
  paused: { _tag: "paused" },
  noted: { _tag: "noted" },
  foundLanded: { _tag: "foundLanded", landed: landed(0) }
} as const satisfies Readonly<Record<string, Event>>

type Phases = Phase["_tag"]

/** The action that follows; every other event of every phase changes nothing. */
const table: Readonly<Record<Phases, Readonly<Partial<Record<keyof typeof events, Action["_tag"]>>>>> = {
  resuming: { resumed: "ask" },
  asking: { asked: "prepare", askedInDoubt: "pause", delayed: "pause" },
  preparing: { prepared: "accept", nothingReady: "prepare", busy: "wait", refused: "end", delayed: "pause" },
  offering: {
    accepted: "send",
    occupied: "wait",
    nonceUsed: "pause",
    deploymentPending: "pause",
    cancelled: "end"
  },
  sending: { sent: "follow" },
  following: { followed: "send" },
  yielding: { yielded: "pause" },
  waiting: { woken: "prepare", waitedInVain: "prepare" },
  pausing: { paused: "prepare" },
  over: { foundLanded: "end" }
}

describe("a request", () => {
  it.each(Object.keys(steps) as Array<Phases>)(
    "that is %s heeds what it waits for, and nothing else",
    (phase) => {
      const { action, state } = steps[phase]
      expect(state.phase._tag).toBe(phase)
      for (const event of Object.keys(events) as Array<keyof typeof events>) {
        const expected = table[phase][event]
        const step = SubmissionState.step(state, events[event], now)
        if (expected === undefined) expect(step, event).toEqual({ state, action })
        else expect(step.action._tag, event).toBe(expected)
      }
    }
  )
})

describe("the elements of a request", () => {
  it("are prepared, accepted, sent and followed, one transaction after the other", () => {
    expect(steps.preparing.action).toEqual({ _tag: "prepare", elements: [0, 1], held: none })
    expect(steps.offering.action).toEqual({ _tag: "accept", failed: none })
    expect(tagsOf(steps.sending.state)).toEqual(["underWay", "underWay"])
    expect(steps.sending.action).toEqual({ _tag: "send", place: 0 })
    expect(steps.following.action).toEqual({ _tag: "follow", elements: [0] })
    const second = through(steps.following, follow({ landed: landed(0) }))
    expect(second.action).toEqual({ _tag: "send", place: 1 })
    expect(tagsOf(steps.over.state)).toEqual(["landed", "landed"])
    expect(steps.over.action).toEqual({ _tag: "end" })
  })

  it("whose windows have not begun keep nothing, and end the attempt once the others are over", () => {
    const later = { ...prepared([0]), scheduled: new Map([[1, 2_000]]) }
    const begun = through(fresh(), later)
    expect([begun.action._tag, tagsOf(begun.state)]).toEqual(["accept", ["open", "scheduled"]])
    const end = through(begun, accepted, sent({}), follow({ landed: landed(0) }))
    expect([end.action._tag, tagsOf(end.state)]).toEqual(["end", ["landed", "scheduled"]])
    expect(SubmissionProgress.scheduledOf(end.state)).toEqual(new Map([[1, 2_000]]))
    const alone = through(fresh(), {
      ...events.nothingReady,
      failed: none,
      scheduled: new Map([
        [0, 9],
        [1, 5]
      ])
    })
    expect([alone.action._tag, tagsOf(alone.state)]).toEqual(["end", ["scheduled", "scheduled"]])
  })

  it("whose windows have not begun fail with what they depend on, and with a cancellation", () => {
    const both = { ...events.nothingReady, scheduled: new Map([[1, 2_000]]) }
    const failing = through(fresh([0, 1], { dependencies: [null, 0] }), both)
    expect([failing.action._tag, codesOf(failing.state)]).toEqual([
      "end",
      { 0: "execution_failed", 1: "dependency_failed" }
    ])
    const waiting = { _tag: "scheduled", until: 2_000 } as const
    expect(Elements.step(waiting, { _tag: "cancel", failure: cancelled })).toEqual({
      _tag: "failed",
      failure: cancelled,
      isNoted: false
    })
    expect(Elements.step(waiting, { _tag: "free" })).toBe(waiting)
  })

  it("are prepared again beside a key whose nonce was used, eight times at most", () => {
    let step = fresh()
    for (const millis of [100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000]) {
      step = through(step, prepared([0, 1]), events.nonceUsed)
      expect(step.action).toEqual({ _tag: "pause", millis, releases: false })
      step = through(step, events.paused)
    }
    const end = through(step, prepared([0, 1]), events.nonceUsed)
    expect(codesOf(end.state)).toEqual({ 0: "wallet_busy" })
  })

  it("of which nothing is to be done end at once", () => {
    expect(fresh([]).action).toEqual({ _tag: "end" })
    const done = through(fresh(), { ...events.nothingReady, failed: none, done: [0, 1] })
    expect([done.action._tag, tagsOf(done.state)]).toEqual(["end", ["done", "done"]])
  })

  it("that came back are asked for in the journal, and prepared under the nonces that they are held to", () => {
    const { action, state } = through(steps.asking, asked([0]))
    expect(steps.asking.action).toEqual({ _tag: "ask", elements: [0, 1] })
    expect(action).toEqual({ _tag: "prepare", elements: [0, 1], held: new Map([[0, nonceOf(0)]]) })
    expect(tagsOf(state)).toEqual(["held", "open"])
  })

  it("are not offered under another nonce than the one that they are held to; behind an earlier one they fail", () => {
    const held = through(steps.asking, asked([0]))
    const moved = (sequence: bigint): Event => ({
      ...prepared(),
      transfers: [[ready(0, sequence)], [ready(1)]]
    })
    const ahead = through(held, moved(1n))
    expect([ahead.action, tagsOf(ahead.state)]).toEqual([
      { _tag: "pause", millis: SubmissionState.backoff.firstMillis, releases: true },
      ["held", "open"]
    ])
    const holding: Step = through(steps.asking, {
      ...asked(),
      held: new Map([[0, nonceOf(0, 1n)]])
    })
    const behind = through(holding, moved(0n), { _tag: "noted" })
    expect(behind.action).toEqual({ _tag: "pause", millis: 0, releases: true })
    expect(codesOf(behind.state)).toEqual({ 0: "execution_failed" })
  })

  it("that were refused, and may land all the same, are not waited for by the others", () => {
    const both = through(fresh(), prepared([0, 1]), accepted)
    const one = through(both, sent({ failed: new Map([[0, wrong]]) }), { _tag: "noted" })
    expect(one.action).toEqual({ _tag: "follow", elements: [1] })
    expect(through(one, follow({ landed: landed(1) })).action).toEqual({ _tag: "end" })
  })

  it("that were accepted with another one which went otherwise are given up before anything else", () => {
    expect(steps.yielding.action).toEqual({ _tag: "yield", elements: [1] })
    expect(tagsOf(steps.yielding.state)).toEqual(["open", "open"])
    const forAll = through(steps.sending, sent({ failed: new Map([[0, wrong]]), forAll: wrong }), {
      _tag: "noted"
    })
    const given = through(forAll, follow({}), { _tag: "noted" })
    expect(given.action).toEqual({ _tag: "yield", elements: [1] })
    expect(codesOf(given.state)).toEqual({ 0: "execution_failed", 1: "execution_failed" })
    expect(through(given, { _tag: "yielded" }).action).toEqual({ _tag: "end" })
  })

  it("are given up after three transactions of their own without them, and in shared ones never", () => {
    const once = (step: Step, carrier: Carrier) =>
      through(
        step,
        asked([0]),
        prepared([0]),
        accepted,
        sent({}),
        follow({ returned: new Map([[0, carrier]]) }),
        { _tag: "noted" },
        { _tag: "paused" }
      )
    let step = steps.resuming
    step = through(step, { ...events.resumed, landed: landed(1) })
    for (let n = 0; n < 5; n++) step = once(once(step, "shared"), "external")
    expect(step.state.shared.get(0)).toBe(5)
    expect(tagsOf(step.state)).toEqual(["open", "landed"])
    step = once(once(step, "own"), "own")
    expect(tagsOf(step.state)).toEqual(["open", "landed"])
    step = once(step, "own")
    expect(codesOf(step.state)).toEqual({ 0: "execution_failed" })
    expect(step.action).toEqual({ _tag: "end" })
  })

  it("have their time anew when a transaction was mined without them", () => {
    const { state } = SubmissionState.step(
      steps.following.state,
      follow({ returned: new Map([[0, "shared"]]) }),
      now + 5_000
    )
    expect(state.deadline).toBe(now + 5_000 + expiryMillis + patienceMillis)
    const foreign = SubmissionState.step(
      steps.following.state,
      follow({ returned: new Map([[0, "external"]]) }),
      now + 5_000
    )
    expect(foreign.state.deadline).toBe(now + expiryMillis + patienceMillis)
  })

  it("expire when their time is over, with what stood in their way; before acceptance the time does not end them", () => {
    expect(
      SubmissionState.step(steps.waiting.state, { _tag: "woken" }, now + expiryMillis * 2).action._tag
    ).toBe("prepare")
    const late = now + expiryMillis + patienceMillis
    const yielded = through(steps.yielding, { _tag: "yielded" })
    const early = SubmissionState.step(yielded.state, { _tag: "paused" }, late - 1)
    expect(early.action._tag).toBe("ask")
    const overdue = SubmissionState.step(yielded.state, { _tag: "paused" }, late)
    expect(codesOf(overdue.state)).toEqual({ 0: "request_expired", 1: "request_expired" })
    const troubled = through(steps.asking, { _tag: "delayed", by: away })
    const given = SubmissionState.step(troubled.state, { _tag: "paused" }, late)
    expect([...SubmissionProgress.failuresOf(given.state).values()].map(({ message }) => message)).toEqual([
      "request expired: signer unavailable",
      "request expired: signer unavailable"
    ])
    expect(given.action._tag).toBe("note")
    expect(through(given, { _tag: "noted" }).action).toEqual({ _tag: "end" })
  })

  it("are tried again with twice the pause each time, whatever passes stands in their way, until they expire", () => {
    for (const by of [refusing, away]) {
      let step = steps.asking
      const pauses: Array<unknown> = []
      for (let n = 0; n < 11; n++) {
        step = through(step, { _tag: "delayed", by })
        pauses.push(step.action._tag === "pause" && step.action.millis)
        step = through(step, { _tag: "paused" })
      }
      expect(pauses).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000])
      expect(codesOf(step.state)).toEqual({})
    }
    const { state } = steps.asking
    const { action } = SubmissionState.step(state, { _tag: "delayed", by: away }, state.deadline - 30)
    expect(action).toEqual({ _tag: "pause", millis: 30, releases: true })
  })

  it("that were accepted are delayed by what passes, alone and all together, and what depends on them too", () => {
    const depending = through(
      SubmissionState.begin({ ...terms, dependencies: [null, 0, null, null] }, [0, 1, 2, 3], {
        isAccepted: true,
        isResumed: false,
        now
      }),
      {
        ...prepared([3]),
        failed: new Map([
          [0, elementFailure("submission_limit")],
          [1, Elements.dependencyFailed(0)],
          [2, wrong]
        ])
      }
    )
    expect([depending.action._tag, codesOf(depending.state)]).toEqual(["accept", { 2: "execution_failed" }])
    expect(tagsOf(depending.state)).toEqual(["open", "open", "failed", "open"])
    const nothing = through(steps.asking, asked(), {
      ...prepared(),
      failed: new Map([0, 1].map((index) => [index, elementFailure("fees_above_cap")]))
    })
    expect([nothing.action, codesOf(nothing.state)]).toEqual([
      { _tag: "pause", millis: 100, releases: true },
      {}
    ])
    // Nothing is promised yet.
    const fresher = through(fresh([0]), {
      ...prepared(),
      failed: new Map([[0, elementFailure("submission_limit")]])
    })
    expect(codesOf(fresher.state)).toEqual({ 0: "submission_limit" })
  })

  it("that were accepted outlast busy wallets, used nonces and deployments of others", () => {
    const again = through(steps.asking, asked())
    const busy = through(again, { _tag: "busy", elements: [0] })
    expect(busy.action).toEqual({ _tag: "wait", deadline: now + SubmissionState.backoff.longestMillis })
    const vain = through(busy, { _tag: "waitedInVain" })
    expect([vain.action._tag, codesOf(vain.state)]).toEqual(["ask", {}])
    const pending = through(again, prepared([0, 1]), events.deploymentPending)
    expect([pending.action._tag, codesOf(pending.state)]).toEqual(["wait", {}])
    let step = again
    for (let n = 0; n < 20; n++)
      step = through(step, prepared([0, 1]), events.nonceUsed, { _tag: "paused" }, asked())
    expect(codesOf(step.state)).toEqual({})
  })

  it("forget what stood in their way once something was sent", () => {
    const troubled = through(
      steps.asking,
      { _tag: "delayed", by: away },
      { _tag: "paused" },
      asked(),
      prepared([0, 1]),
      accepted
    )
    expect(troubled.state.delayed).toEqual({ by: away, times: 1 })
    expect(through(troubled, sent({})).state.delayed).toEqual({ by: null, times: 0 })
  })

  it("that were refused for what the chain has become go again after a pause, which grows", () => {
    const outdated = new Map([[0, wrong]])
    const once = through(steps.sending, sent({ outdated, isSent: false }), follow({}), { _tag: "yielded" })
    expect(once.action).toEqual({ _tag: "pause", millis: 100, releases: true })
    const twice = through(
      once,
      { _tag: "paused" },
      asked(),
      prepared([0, 1]),
      accepted,
      sent({ outdated, isSent: false }),
      follow({})
    )
    expect([twice.action, codesOf(twice.state)]).toEqual([{ _tag: "pause", millis: 200, releases: true }, {}])
  })

  it("fail with what they depend on: with one that fails, and with one that landed and reverted", () => {
    const dependencies = [null, 0, 1]
    const failing = through(fresh([0, 1, 2], { dependencies }), { _tag: "refused", failure: wrong })
    expect(codesOf(failing.state)).toEqual({
      0: "execution_failed",
      1: "execution_failed",
      2: "execution_failed"
    })
    const alone = through(fresh([0, 1, 2], { dependencies }), { ...events.nothingReady })
    expect(codesOf(alone.state)).toEqual({
      0: "execution_failed",
      1: "dependency_failed",
      2: "dependency_failed"
    })
    const reverted = through(
      fresh([0, 1, 2], { dependencies, isApart: true }),
      prepared([0]),
      accepted,
      sent({}),
      follow({ landed: new Map([[0, landing(0, false)]]) })
    )
    expect(codesOf(reverted.state)).toEqual({ 1: "dependency_failed", 2: "dependency_failed" })
    const together = through(
      fresh([0, 1, 2], { dependencies }),
      prepared([0, 1, 2]),
      accepted,
      sent({ failed: new Map([0, 1].map((index) => [index, wrong])) })
    )
    expect(codesOf(together.state)).toEqual({ 0: "execution_failed", 1: "dependency_failed" })
  })

  it("go to another bundler once what they depend on has landed, and have its time", () => {
    const begun = fresh([0, 1, 2], { dependencies: [null, 0, null], isApart: true })
    expect(begun.action).toMatchObject({ elements: [0, 2] })
    const under = through(begun, prepared([0, 2]), accepted, sent({}))
    const { state } = SubmissionState.step(under.state, follow({ landed: landed(0, 2) }), now + 7)
    expect(state.deadline).toBe(now + 7 + expiryMillis + patienceMillis)
    expect(SubmissionState.step(state, { _tag: "paused" }, now + 7).action).toMatchObject({ elements: [1] })
  })

  it("are cancelled, but for those that are held to a nonce", () => {
    const { state } = through(steps.asking, asked([0]), prepared([0, 1]), {
      _tag: "cancelled",
      failure: cancelled
    })
    expect([tagsOf(state), codesOf(state)]).toEqual([["held", "failed"], { 1: "request_cancelled" }])
    const resumed = through(steps.resuming, {
      ...events.resumed,
      landed: none,
      held: new Map([[1, nonceOf(1)]]),
      cancelled
    })
    expect(codesOf(resumed.state)).toEqual({ 0: "request_cancelled" })
    expect(resumed.action._tag).toBe("note")
  })

  it("have their failures noted before anything that follows from them, once, and with the acceptance", () => {
    const partly: Event = { ...prepared([1]), failed: new Map([[0, wrong]]) }
    const offered = through(fresh(), partly)
    expect(offered.action).toEqual({ _tag: "accept", failed: new Map([[0, wrong]]) })
    expect(through(offered, accepted).action).toEqual({ _tag: "send", place: 0 })
    const failed = through(steps.sending, sent({ failed: new Map([[0, wrong]]) }))
    expect(failed.action).toEqual({ _tag: "note", failed: new Map([[0, wrong]]) })
    // Its op may be at a bundler that refused it: the others of its transfer are followed, not this one.
    expect(through(failed, { _tag: "noted" }).action).toEqual({ _tag: "follow", elements: [] })
  })

  it("that were noted as failed before a restart are included when the chain says so", () => {
    const { action, state } = through(steps.resuming, {
      ...events.resumed,
      failed: new Map([0, 1].map((index) => [index, wrong]))
    })
    expect([action._tag, tagsOf(state)]).toEqual(["end", ["landed", "failed"]])
    expect(tagsOf(through(steps.over, events.foundLanded).state)).toEqual(["landed", "landed"])
    const found = through({ action, state }, { _tag: "foundLanded", landed: landed(1) })
    expect(tagsOf(found.state)).toEqual(["landed", "landed"])
  })
})

/** What the executor, the journal and the chain may answer to an action. */
const answers = (action: Action, state: State, pick: (most: number) => number, time: number): Event => {
  const some = <A>(all: ReadonlyArray<A>) => all.filter(() => pick(2) === 0)
  const failures = (all: ReadonlyArray<number>) => new Map(all.map((index) => [index, wrong]))
  const faults = [null, null, away, refusing]
  switch (action._tag) {
    case "resume":
      return { ...events.resumed, landed: landed(...some([...state.elements.keys()])) }
    case "ask": {
      const held = new Map(some(action.elements).map((index) => [index, nonceOf(index)]))
      const answer = { ...asked(), held, isUndecided: pick(6) === 0 }
      return pick(6) === 0 ? { _tag: "delayed", by: away } : answer
    }
    case "prepare": {
      const failed = pick(4) === 0 ? some(action.elements) : []
      const done = pick(8) === 0 ? some(action.elements) : []
      const rest = action.elements.filter((index) => !failed.includes(index) && !done.includes(index))
      // Now and then under a nonce that is not the held one.
      const ops = rest.map((index) => ready(index, pick(12) === 0 ? 1n : 0n))
      const at = pick(ops.length + 1)
      const transfers = [ops.slice(0, at), ops.slice(at)].filter(({ length }) => length > 0)
      const all: ReadonlyArray<Event> = [
        { _tag: "prepared", failed: failures(failed), done, scheduled: none, transfers },
        { _tag: "busy", elements: some(action.elements) },
        { _tag: "delayed", by: away },
        { _tag: "delayed", by: refusing }
      ]
      return all[Math.max(pick(10) - 6, 0)] ?? events.refused
    }
    case "accept":
      return (
        [events.accepted, events.accepted, events.accepted, events.occupied, events.cancelled][pick(5)] ??
        accepted
      )
    case "send": {
      const ops = state.phase._tag === "sending" ? (state.phase.transfers[action.place] ?? []) : []
      return sent({
        failed: failures(some(some(ops))),
        outdated: failures(some(some(ops))),
        forAll: pick(6) === 0 ? wrong : null,
        delay: faults[pick(4)] ?? null
      })
    }
    case "follow": {
      const gone = some(action.elements)
      const rest = some(action.elements.filter((index) => !gone.includes(index)))

      return follow({
        landed: new Map(gone.map((index) => [index, landing(index, pick(4) > 0)])),
        returned: new Map(
          rest.map((index): [number, Carrier] => {
            // What came to nothing in two shared transactions goes by itself.
            const carriers: ReadonlyArray<Carrier> =
              (state.shared.get(index) ?? 0) < 2 ? ["own", "external", "shared"] : ["own", "external"]
            return [index, carriers[pick(carriers.length)] ?? "own"]
          })
        )
      })
    }
    case "yield":
      return { _tag: "yielded" }
    case "wait":
      return pick(2) === 0 && time < action.deadline ? { _tag: "woken" } : { _tag: "waitedInVain" }
    case "pause":
      return { _tag: "paused" }
    case "note":
      return { _tag: "noted" }
    case "end":
      return events.foundLanded
  }
}

describe("whatever the nodes, the journal and time do to a request", () => {
  const dependencies = fc.constantFrom([], [null, 0, 1, null], [null, null, 0, 2])
  const run = (
    of: Terms["dependencies"],
    isApart: boolean,
    isAccepted: boolean,
    choices: ReadonlyArray<number>,
    check: (before: Step, event: Event, next: Step) => void
  ) => {
    let time = now
    let at = 0
    const pick = (most: number) => (choices[at++ % choices.length] ?? 0) % Math.max(most, 1)
    let step = SubmissionState.begin(
      { dependencies: of, isApart, patienceMillis, expiryMillis },
      [0, 1, 2, 3],
      {
        isAccepted,
        isResumed: isAccepted,
        now
      }
    )
    for (let n = 0; n < 100_000 && step.action._tag !== "end"; n++) {
      const { action, state } = step
      if (action._tag === "pause") time += action.millis
      const event = answers(action, state, pick, time)
      time += event._tag === "waitedInVain" ? Math.max(state.deadline - time, 0) : 1 + pick(3) * 4_000
      const next = SubmissionState.step(state, event, time)
      check(step, event, next)
      step = next
    }
    return step
  }
  const property = (
    check: (before: Step, event: Event, next: Step) => void,
    end: (step: Step) => void = () => {}
  ) =>
    fc.assert(
      fc.property(
        dependencies,
        fc.boolean(),
        fc.boolean(),
        fc.array(fc.nat(1_000), { minLength: 40, maxLength: 400 }),
        (of, isApart, isAccepted, choices) => end(run(of, isApart, isAccepted, choices, check))
      ),
      { numRuns: 200 }
    )

  it("what has landed stays landed, and is in no later preparation, acceptance or transaction", () => {
    property(({ action, state }, _, next) => {
      const gone = new Set(SubmissionProgress.landedOf(state).keys())
      for (const index of gone) expect(next.state.elements.get(index)?._tag).toBe("landed")
      const concerned =
        action._tag === "prepare"
          ? action.elements
          : state.phase._tag === "offering"
            ? state.phase.transfers.flat()
            : action._tag === "send" && state.phase._tag === "sending"
              ? (state.phase.transfers[action.place] ?? [])
              : []
      expect(concerned.filter((index) => gone.has(index))).toEqual([])
    })
  })

  it("what is held to a nonce is offered under that nonce alone, and not cancelled", () => {
    property(({ action, state }, event, next) => {
      const of = state.terms.dependencies
      for (const [index, element] of state.elements) {
        if (element._tag !== "held") continue
        // What depends on a cancelled one comes to nothing with it.
        if (event._tag === "cancelled" && (of[index] ?? null) === null)
          expect(next.state.elements.get(index)?._tag).toBe("held")
        if (event._tag !== "prepared" || next.state.phase._tag !== "offering") continue
        const op = event.transfers.flat().find((each) => each.index === index)
        if (op !== undefined && next.state.phase.transfers.flat().includes(index))
          expect(op.sequence).toBe(element.nonce.sequence)
      }
      if (action._tag === "prepare")
        for (const [index] of action.held) expect(state.elements.get(index)?._tag).toBe("held")
    })
  })

  it("failures are noted before the next step of an accepted request", () => {
    property((_, __, { action, state }) => {
      const unnoted = [...state.elements.values()].some((each) => each._tag === "failed" && !each.isNoted)
      if (state.isAccepted && unnoted) expect(["note", "accept"]).toContain(action._tag)
    })
  })

  it("it ends, and every element has come to one end", () => {
    property(
      () => {},
      ({ action, state }) => {
        expect(action._tag).toBe("end")
        for (const tag of tagsOf(state)) expect(["landed", "failed", "done"]).toContain(tag)
      }
    )
  })
})
