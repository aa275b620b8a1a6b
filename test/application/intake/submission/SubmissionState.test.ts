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
import { dependencyFailed, elementFailure } from "../../../../src/application/request/Elements.js"
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
  /** What is done next, and what has become of each element: its code where it failed. */
  const told = ({ action, state }: Step) => {
    const codes = codesOf(state)
    const elements = [...state.elements].map(([index, { _tag }]) => codes[index] ?? _tag)
    return `${action._tag}: ${elements.join(" ")}`
  }
  const paused: Event = { _tag: "paused" }
  const noted: Event = { _tag: "noted" }
  const yielded: Event = { _tag: "yielded" }
  const delayed = (by = away): Event => ({ _tag: "delayed", by })
  const nothing = { ...events.nothingReady, failed: none }
  const failing = (...indexes: ReadonlyArray<number>) => new Map(indexes.map((index) => [index, wrong]))
  const returned = (carrier: Carrier) => follow({ returned: new Map([[0, carrier]]) })

  it("are prepared, accepted, sent and followed, one transaction after the other", () => {
    expect(steps.preparing.action).toEqual({ _tag: "prepare", elements: [0, 1], held: none })
    expect(steps.offering.action).toEqual({ _tag: "accept", failed: none })
    expect(told(steps.sending)).toBe("send: underWay underWay")
    expect(steps.sending.action).toEqual({ _tag: "send", place: 0 })
    expect(steps.following.action).toEqual({ _tag: "follow", elements: [0] })
    const second = through(steps.following, follow({ landed: landed(0) }))
    expect(second.action).toEqual({ _tag: "send", place: 1 })
    expect(told(steps.over)).toBe("end: landed landed")
  })

  it("whose windows have not begun keep nothing, and end the attempt once the others are over", () => {
    const begun = through(fresh(), { ...prepared([0]), scheduled: new Map([[1, 2_000]]) })
    expect(told(begun)).toBe("accept: open scheduled")
    const end = through(begun, accepted, sent({}), follow({ landed: landed(0) }))
    expect(told(end)).toBe("end: landed scheduled")
    expect(SubmissionProgress.scheduledOf(end.state)).toEqual(new Map([[1, 2_000]]))
    const both = new Map([0, 1].map((index) => [index, 9]))
    expect(told(through(fresh(), { ...nothing, scheduled: both }))).toBe("end: scheduled scheduled")
  })

  it("whose windows have not begun fail with what they depend on, and with a cancellation", () => {
    const both = { ...events.nothingReady, scheduled: new Map([[1, 2_000]]) }
    const step = through(fresh([0, 1], { dependencies: [null, 0] }), both)
    expect(told(step)).toBe("end: execution_failed dependency_failed")
    const waiting = { _tag: "scheduled", until: 2_000 } as const
    expect(Elements.step(waiting, { _tag: "cancel", failure: cancelled })).toMatchObject({
      failure: cancelled
    })
    expect(Elements.step(waiting, { _tag: "free" })).toBe(waiting)
  })

  it("are prepared again beside a key whose nonce was used, eight times at most", () => {
    let step = fresh()
    for (const millis of [100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000]) {
      step = through(step, prepared([0, 1]), events.nonceUsed)
      expect(step.action).toEqual({ _tag: "pause", millis, releases: false })
      step = through(step, paused)
    }
    const end = through(step, prepared([0, 1]), events.nonceUsed)
    expect(codesOf(end.state)).toEqual({ 0: "wallet_busy" })
  })

  it("of which nothing is to be done end at once", () => {
    expect(fresh([]).action).toEqual({ _tag: "end" })
    expect(told(through(fresh(), { ...nothing, done: [0, 1] }))).toBe("end: done done")
  })

  it("that came back are asked for in the journal, and prepared under the nonces that they are held to", () => {
    const step = through(steps.asking, asked([0]))
    expect(steps.asking.action).toEqual({ _tag: "ask", elements: [0, 1] })
    expect(step.action).toEqual({ _tag: "prepare", elements: [0, 1], held: new Map([[0, nonceOf(0)]]) })
    expect(told(step)).toBe("prepare: held open")
  })

  it("are not offered under another nonce than the one that they are held to; behind an earlier one they fail", () => {
    const moved = (sequence: bigint): Event => ({
      ...prepared(),
      transfers: [[ready(0, sequence)], [ready(1)]]
    })
    const ahead = through(steps.asking, asked([0]), moved(1n))
    const { firstMillis: millis } = SubmissionState.backoff
    expect(ahead.action).toEqual({ _tag: "pause", millis, releases: true })
    expect(told(ahead)).toBe("pause: held open")
    const later: Event = { ...asked(), held: new Map([[0, nonceOf(0, 1n)]]) }
    const behind = through(steps.asking, later, moved(0n), noted)
    expect(behind.action).toEqual({ _tag: "pause", millis: 0, releases: true })
    expect(told(behind)).toBe("pause: execution_failed open")
  })

  it("that were refused, and may land all the same, are not waited for by the others", () => {
    const both = through(fresh(), prepared([0, 1]), accepted)
    const one = through(both, sent({ failed: failing(0) }), noted)
    expect(one.action).toEqual({ _tag: "follow", elements: [1] })
    expect(through(one, follow({ landed: landed(1) })).action).toEqual({ _tag: "end" })
  })

  it("that were accepted with another one which went otherwise are given up before anything else", () => {
    expect(steps.yielding.action).toEqual({ _tag: "yield", elements: [1] })
    expect(told(steps.yielding)).toBe("yield: open open")
    const forAll = through(
      steps.sending,
      sent({ failed: failing(0), forAll: wrong }),
      noted,
      follow({}),
      noted
    )
    expect(forAll.action).toEqual({ _tag: "yield", elements: [1] })
    expect(told(through(forAll, yielded))).toBe("end: execution_failed execution_failed")
  })

  it("are given up after three transactions of their own without them, and in shared ones never", () => {
    const once = (step: Step, carrier: Carrier) =>
      through(step, asked([0]), prepared([0]), accepted, sent({}), returned(carrier), noted, paused)
    let step: Step = through(steps.resuming, { ...events.resumed, landed: landed(1) })
    for (let n = 0; n < 5; n++) step = once(once(step, "shared"), "external")
    expect(step.state.shared.get(0)).toBe(5)
    step = once(once(step, "own"), "own")
    expect(tagsOf(step.state)).toEqual(["open", "landed"])
    expect(told(once(step, "own"))).toBe("end: execution_failed landed")
  })

  it("have their time anew when a transaction was mined without them", () => {
    const deadlineAfter = (carrier: Carrier) =>
      SubmissionState.step(steps.following.state, returned(carrier), now + 5_000).state.deadline
    expect(deadlineAfter("shared")).toBe(now + 5_000 + expiryMillis + patienceMillis)
    expect(deadlineAfter("external")).toBe(now + expiryMillis + patienceMillis)
  })

  it("expire when their time is over, with what stood in their way; before acceptance the time does not end them", () => {
    const late = now + expiryMillis + patienceMillis
    const at = (step: Step, event: Event, time: number) => SubmissionState.step(step.state, event, time)
    expect(at(steps.waiting, { _tag: "woken" }, late * 2).action._tag).toBe("prepare")
    const waiting = through(steps.yielding, yielded)
    expect(at(waiting, paused, late - 1).action._tag).toBe("ask")
    expect(told(at(waiting, paused, late))).toBe("note: request_expired request_expired")
    const given = at(through(steps.asking, delayed()), paused, late)
    for (const { message } of SubmissionProgress.failuresOf(given.state).values())
      expect(message).toBe("request expired: signer unavailable")
    expect(told(through(given, noted))).toBe("end: request_expired request_expired")
  })

  it("are tried again with twice the pause each time, whatever passes stands in their way, until they expire", () => {
    for (const by of [refusing, away]) {
      let step = steps.asking
      const pauses: Array<unknown> = []
      for (let n = 0; n < 11; n++) {
        step = through(step, delayed(by))
        pauses.push(step.action._tag === "pause" && step.action.millis)
        step = through(step, paused)
      }
      expect(pauses).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000])
      expect(codesOf(step.state)).toEqual({})
    }
    const { state } = steps.asking
    const { action } = SubmissionState.step(state, delayed(), state.deadline - 30)
    expect(action).toEqual({ _tag: "pause", millis: 30, releases: true })
  })

  it("that were accepted are delayed by what passes, alone and all together, and what depends on them too", () => {
    const dependencies = [null, 0, null, null]
    const known = { isAccepted: true, isResumed: false, now }
    const depending = SubmissionState.begin({ ...terms, dependencies }, [0, 1, 2, 3], known)
    const failed = new Map([
      [0, elementFailure("submission_limit")],
      [1, dependencyFailed(0)],
      [2, wrong]
    ])
    expect(told(through(depending, { ...prepared([3]), failed }))).toBe(
      "accept: open open execution_failed open"
    )
    const fees = new Map([0, 1].map((index) => [index, elementFailure("fees_above_cap")]))
    const step = through(steps.asking, asked(), { ...prepared(), failed: fees })
    expect(step.action).toEqual({ _tag: "pause", millis: 100, releases: true })
    expect(told(step)).toBe("pause: open open")
    // Nothing is promised yet.
    expect(told(through(fresh([0]), { ...prepared(), failed: fees }))).toBe("end: fees_above_cap")
  })

  it("that were accepted outlast busy wallets, used nonces and deployments of others", () => {
    const again = through(steps.asking, asked())
    const busy = through(again, { _tag: "busy", elements: [0] })
    expect(busy.action).toEqual({ _tag: "wait", deadline: now + SubmissionState.backoff.longestMillis })
    expect(told(through(busy, { _tag: "waitedInVain" }))).toBe("ask: open open")
    expect(told(through(again, prepared([0, 1]), events.deploymentPending))).toBe("wait: open open")
    let step = again
    for (let n = 0; n < 20; n++) step = through(step, prepared([0, 1]), events.nonceUsed, paused, asked())
    expect(codesOf(step.state)).toEqual({})
  })

  it("forget what stood in their way once something was sent", () => {
    const troubled = through(steps.asking, delayed(), paused, asked(), prepared([0, 1]), accepted)
    expect(troubled.state.delayed).toEqual({ by: away, times: 1 })
    expect(through(troubled, sent({})).state.delayed).toEqual({ by: null, times: 0 })
  })

  it("that were refused for what the chain has become go again after a pause, which grows", () => {
    const outdated = sent({ outdated: failing(0), isSent: false })
    const once = through(steps.sending, outdated, follow({}), yielded)
    expect(once.action).toEqual({ _tag: "pause", millis: 100, releases: true })
    const twice = through(once, paused, asked(), prepared([0, 1]), accepted, outdated, follow({}))
    expect(twice.action).toEqual({ _tag: "pause", millis: 200, releases: true })
    expect(codesOf(twice.state)).toEqual({})
  })

  it("fail with what they depend on: with one that fails, and with one that landed and reverted", () => {
    const begun = (isApart = false) => fresh([0, 1, 2], { dependencies: [null, 0, 1], isApart })
    for (const [step, outcome] of [
      [
        through(begun(), { _tag: "refused", failure: wrong }),
        "execution_failed execution_failed execution_failed"
      ],
      [through(begun(), events.nothingReady), "execution_failed dependency_failed dependency_failed"],
      [
        through(
          begun(true),
          prepared([0]),
          accepted,
          sent({}),
          follow({ landed: new Map([[0, landing(0, false)]]) })
        ),
        "landed dependency_failed dependency_failed"
      ],
      [
        through(begun(), prepared([0, 1, 2]), accepted, sent({ failed: failing(0, 1) })),
        "execution_failed dependency_failed underWay"
      ]
    ] as const)
      expect(told(step)).toMatch(new RegExp(`: ${outcome}$`))
  })

  it("that fail beside or after what they depend on name it, and no others do", () => {
    const under = through(fresh([0, 1], { dependencies: [null, 0] }), prepared([0, 1]), accepted)
    const codeOf = ({ state }: Step, ...together: ReadonlyArray<number>) =>
      SubmissionProgress.named(state, failing(...together)).get(1)?.code
    expect(codeOf(under, 0, 1)).toBe("dependency_failed")
    expect(codeOf(through(under, sent({ failed: failing(0) })), 1)).toBe("dependency_failed")
    expect(codeOf(under, 1)).toBe("execution_failed")
    expect(codeOf(through(fresh(), prepared([0, 1]), accepted), 0, 1)).toBe("execution_failed")
  })

  it("go to another bundler once what they depend on has landed, and have its time", () => {
    const begun = fresh([0, 1, 2], { dependencies: [null, 0, null], isApart: true })
    expect(begun.action).toMatchObject({ elements: [0, 2] })
    const under = through(begun, prepared([0, 2]), accepted, sent({}))
    const { state } = SubmissionState.step(under.state, follow({ landed: landed(0, 2) }), now + 7)
    expect(state.deadline).toBe(now + 7 + expiryMillis + patienceMillis)
    expect(SubmissionState.step(state, paused, now + 7).action).toMatchObject({ elements: [1] })
  })

  it("are cancelled, but for those that are held to a nonce", () => {
    const step = through(steps.asking, asked([0]), prepared([0, 1]), events.cancelled)
    expect(told(step)).toMatch(/: held request_cancelled$/)
    const held = new Map([[1, nonceOf(1)]])
    const resumed = through(steps.resuming, { ...events.resumed, landed: none, held, cancelled })
    expect(told(resumed)).toBe("note: request_cancelled held")
  })

  it("have their failures noted before anything that follows from them, once, and with the acceptance", () => {
    const offered = through(fresh(), { ...prepared([1]), failed: failing(0) })
    expect(offered.action).toEqual({ _tag: "accept", failed: failing(0) })
    expect(through(offered, accepted).action).toEqual({ _tag: "send", place: 0 })
    const failed = through(steps.sending, sent({ failed: failing(0) }))
    expect(failed.action).toEqual({ _tag: "note", failed: failing(0) })
    // Its op may be at a bundler that refused it: the others of its transfer are followed, not this one.
    expect(through(failed, noted).action).toEqual({ _tag: "follow", elements: [] })
  })

  it("that were noted as failed before a restart are included when the chain says so", () => {
    const resumed = through(steps.resuming, { ...events.resumed, failed: failing(0, 1) })
    expect(told(resumed)).toBe("end: landed execution_failed")
    expect(told(through(steps.over, events.foundLanded))).toBe("end: landed landed")
    expect(told(through(resumed, { _tag: "foundLanded", landed: landed(1) }))).toBe("end: landed landed")
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
        // Nothing delays what is not accepted: its caller hears of it at once.
        ...(state.isAccepted ? [away, refusing] : []).map((by): Event => ({ _tag: "delayed", by }))
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
      // So much at least that any round that repeats itself is over before the steps are.
      time += event._tag === "waitedInVain" ? Math.max(state.deadline - time, 0) : 100 + pick(3) * 4_000
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
