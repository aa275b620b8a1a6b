import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as RequestState from "../../../../src/application/lanes/requests/RequestState.js"
import * as Cells from "../../../support/Cells.js"

type State = RequestState.State<string>
type Event = RequestState.Event<string>

const through = (begun: State, ...events: ReadonlyArray<Event>): State =>
  events.reduce((state, event) => RequestState.step(state, event), begun)

const fresh = RequestState.begin<string>(false)
const resumed = RequestState.begin<string>(true)
const attempted = (attempt: RequestState.Attempted<string>, lastedMillis = 0): Event => ({
  _tag: "attempted",
  attempted: attempt,
  lastedMillis
})
const done = attempted({ _tag: "done", answer: "yes" })
const failed = attempted({ _tag: "failed", answer: "no" })
const fenced = attempted({ _tag: "fenced" })
const broken = attempted({ _tag: "broken" })
const [offered, accepted, ours] = (["offered", "accepted", "ours"] as const).map((_tag) => ({ _tag })) as [
  Event,
  Event,
  Event
]

const states = {
  attempting: fresh,
  offered: through(fresh, offered),
  accepted: through(fresh, offered, accepted),
  concluded: through(fresh, offered, accepted, { _tag: "concluded" }),
  doubting: through(fresh, offered, broken),
  claiming: resumed,
  judging: through(fresh, offered, accepted, broken, ours),
  finishing: through(fresh, offered, accepted, done),
  pausing: through(fresh, offered, accepted, broken, ours, { _tag: "open" }),
  ended: through(fresh, done)
} as const satisfies Readonly<Record<string, State>>

const events = {
  offered,
  notAccepted: { _tag: "notAccepted" },
  accepted,
  concluded: { _tag: "concluded" },
  left: { _tag: "left" },
  unwanted: { _tag: "unwanted" },
  done,
  failed,
  attemptFenced: fenced,
  scheduled: attempted({ _tag: "scheduled" }),
  broken,
  declined: { _tag: "declined" },
  doubtLasts: { _tag: "doubtLasts" },
  ours,
  notOurs: { _tag: "notOurs" },
  open: { _tag: "open" },
  final: { _tag: "final" },
  stored: { _tag: "stored" },
  notStored: { _tag: "notStored" },
  paused: { _tag: "paused" },
  journalFailed: { _tag: "journalFailed" },
  fenced: { _tag: "fenced" }
} as const satisfies Readonly<Record<string, Event>>

/** The phase, or how it has ended. */
const nameOf = ({ phase }: State): string => (phase._tag === "ended" ? phase.as : phase._tag)

/** What is done next; "." changes nothing but, perhaps, what is known. */
const table = `
                attempting   offered    accepted   concluded  doubting    claiming    judging    finishing  pausing    ended
offered         .            .          .          .          .           .           .          .          .          .
notAccepted     .            .          .          .          .           .           .          .          .          .
accepted        .            .          .          .          claiming    .           .          .          .          .
concluded       .            .          .          .          .           .           .          .          .          .
left            .            .          .          .          .           .           .          .          .          .
unwanted        .            .          .          .          .           .           .          .          .          .
done            unaccepted   doubting   finishing  finishing  .           .           .          .          .          .
failed          unaccepted   doubting   claiming   finishing  .           .           .          .          .          .
attemptFenced   unaccepted   doubting   fenced     fenced     .           .           .          .          .          .
scheduled       unaccepted   doubting   scheduled  scheduled  .           .           .          .          .          .
broken          unaccepted   doubting   claiming   claiming   .           .           .          .          .          .
declined        .            .          .          .          unaccepted  .           .          .          .          .
doubtLasts      .            .          .          .          unknown     .           .          .          .          .
ours            .            .          .          .          .           attempting  .          .          .          .
notOurs         .            .          .          .          .           elsewhere   .          .          .          .
open            .            .          .          .          .           .           pausing    .          .          .
final           .            .          .          .          .           .           elsewhere  .          .          .
stored          .            .          .          .          .           .           .          answered   .          .
notStored       .            .          .          .          .           .           .          claiming   .          .
paused          .            .          .          .          .           .           .          .          claiming   .
journalFailed   pausing      pausing    pausing    pausing    pausing     pausing     pausing    pausing    pausing    .
fenced          fenced       fenced     fenced     fenced     fenced      fenced      fenced     fenced     fenced     .
`

describe("a request", () => {
  it.each(Cells.of<keyof typeof events, keyof typeof states>(table))(
    "after %s of one that is %s goes on: %s",
    (event, state, next) => {
      const after = RequestState.step(states[state], events[event])
      if (next === ".") expect(after.phase).toEqual(states[state].phase)
      else expect(nameOf(after)).toBe(next)
    }
  )
})

describe("the work on a request", () => {
  it("goes on from the journal at every attempt after the first", () => {
    expect(fresh.phase).toEqual({ _tag: "attempting", isResumed: false })
    expect(through(resumed, ours).phase).toEqual({ _tag: "attempting", isResumed: true })
  })

  it("has the failure of an attempt as its answer only when all its elements had come to an end", () => {
    expect(through(states.concluded, failed).phase).toEqual({ _tag: "finishing", answer: "no" })
    const again = through(states.concluded, broken, ours, { _tag: "open" }, { _tag: "paused" }, ours)
    expect(nameOf(through(again, failed))).toBe("claiming")
  })

  it("that was in doubt and is accepted goes on with what the attempt came to", () => {
    const { phase } = through(fresh, offered, done, accepted)
    expect(phase).toEqual({ _tag: "finishing", answer: "yes" })
    expect(nameOf(through(fresh, offered, { _tag: "notAccepted" }, failed))).toBe("unaccepted")
  })

  it("is accepted for good", () => {
    expect(through(states.accepted, offered, { _tag: "notAccepted" }).acceptance).toBe("accepted")
  })

  it("pauses twice as long each time, up to half a minute; not when its end was undone by the chain", () => {
    let state: State = states.accepted
    const pauses: Array<number> = []
    for (let n = 0; n < 9; n++) {
      state = through(state, broken, ours, { _tag: "open" })
      if (state.phase._tag === "pausing") pauses.push(state.phase.millis)
      state = through(state, { _tag: "paused" }, ours)
    }
    expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    expect(nameOf(through(states.finishing, { _tag: "notStored" }, ours))).toBe("attempting")
  })

  it("pauses shortly again after an attempt that lasted longer than any pause", () => {
    const pauseAfter = (lastedMillis: number) => {
      let state: State = states.accepted
      for (let n = 0; n < 9; n++)
        state = through(state, broken, ours, { _tag: "open" }, { _tag: "paused" }, ours)
      return through(state, attempted({ _tag: "broken" }, lastedMillis), ours, { _tag: "open" }).phase
    }
    expect(pauseAfter(30_000)).toEqual({ _tag: "pausing", millis: 30_000 })
    expect(pauseAfter(30_001)).toEqual({ _tag: "pausing", millis: 250 })
  })

  it("asks nobody whose lane it is once it is known to be another process's", () => {
    const left = through(states.accepted, { _tag: "left" })
    expect(RequestState.isStopped(left)).toBe(true)
    expect(nameOf(through(left, broken))).toBe("elsewhere")
    expect(through(resumed, { _tag: "notOurs" }).isElsewhere).toBe(true)
  })

  it("ends with its caller as long as it is not accepted", () => {
    expect(RequestState.isStopped(through(fresh, { _tag: "unwanted" }))).toBe(true)
    expect(RequestState.isStopped(through(states.offered, { _tag: "unwanted" }))).toBe(true)
    expect(RequestState.isStopped(through(states.accepted, { _tag: "unwanted" }))).toBe(false)
    expect(RequestState.isStopped(states.offered)).toBe(false)
  })

  it("whatever happens: once accepted it ends with a stored answer, at another process or until its window begins, and never as if it were not", () => {
    const all = Object.values(events)
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...all), { maxLength: 60 }), (happening) => {
        let state: State = fresh
        for (const event of happening) {
          const before = state
          state = RequestState.step(state, event)
          if (before.acceptance === "accepted") {
            expect(state.acceptance).toBe("accepted")
            if (state.phase._tag === "ended" && before.phase._tag !== "ended")
              expect(["answered", "elsewhere", "fenced", "scheduled"]).toContain(state.phase.as)
          }
          if (state.phase._tag === "ended" && state.phase.as === "answered")
            expect(before.phase._tag === "finishing" || before.phase === state.phase).toBe(true)
        }
      })
    )
  })
})
