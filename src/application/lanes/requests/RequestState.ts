import * as Backoff from "../../runtime/Backoff.js"

/**
 * The state machine of a request: whether it is accepted, who works on it, and what is done for it next. Pure, so that
 * every pair of a phase and an event is tested; `RequestWork` does what the phase says. `A` is an answer.
 */
export interface State<A> {
  readonly phase: Phase<A>
  /**
   * `offered`: the journal was asked to accept it and has not answered: whether it is durable is not known. From
   * `accepted` on it goes on to a stored answer, whatever fails on the way.
   */
  readonly acceptance: "none" | "offered" | "accepted"
  /** All its elements have come to an end: how the attempt fails is its answer. */
  readonly isConcluded: boolean
  /** Another process works on its lane. */
  readonly isElsewhere: boolean
  /** Its caller has gone. */
  readonly isUnwanted: boolean
  /** How often it could not go on, since an attempt lasted long. */
  readonly failures: number
}

/** What an attempt has come to. `failed`: with a failure that is its answer, once it is concluded. */
export type Attempted<A> =
  | { readonly _tag: "done"; readonly answer: A }
  | { readonly _tag: "failed"; readonly answer: A }
  /** The journal says that another process works on the lane. */
  | { readonly _tag: "fenced" }
  /** What is left of it waits in the journal until it is due. */
  | { readonly _tag: "scheduled" }
  | { readonly _tag: "broken" }

export type Phase<A> =
  | { readonly _tag: "attempting"; readonly isResumed: boolean }
  /** Has the journal accepted it? It decides now. */
  | { readonly _tag: "doubting"; readonly attempted: Attempted<A> }
  /** Is its lane this process's? Then the attempt comes, or what it has come to is judged. */
  | { readonly _tag: "claiming"; readonly next: "attempt" | "judge" }
  /** Has something else given it a final answer? */
  | { readonly _tag: "judging" }
  | { readonly _tag: "finishing"; readonly answer: A }
  | { readonly _tag: "pausing"; readonly millis: number }
  | { readonly _tag: "ended"; readonly as: End }

/**
 * - `unaccepted`: nothing of it is durable; its caller is told what the attempt came to
 * - `unknown`: whether it was accepted is not known
 * - `elsewhere`: another process works on it, or its answer is another one's
 * - `fenced`: the same, as the journal said when this process wrote to it
 * - `scheduled`: it is taken up again when it is due
 * - `answered`: its answer is stored
 */
export type End = "unaccepted" | "unknown" | "elsewhere" | "fenced" | "scheduled" | "answered"

export type Event<A> =
  /** Of the attempt, while it runs. */
  | { readonly _tag: "offered" }
  | { readonly _tag: "notAccepted" }
  | { readonly _tag: "accepted" }
  | { readonly _tag: "concluded" }
  /** From outside, at any time. */
  | { readonly _tag: "left" }
  | { readonly _tag: "unwanted" }
  /** What came of what the phase says. */
  | { readonly _tag: "attempted"; readonly attempted: Attempted<A>; readonly lastedMillis: number }
  | { readonly _tag: "declined" }
  | { readonly _tag: "doubtLasts" }
  | { readonly _tag: "ours" }
  | { readonly _tag: "notOurs" }
  | { readonly _tag: "open" }
  | { readonly _tag: "final" }
  | { readonly _tag: "stored" }
  /** The chain has undone something of it in the meantime. */
  | { readonly _tag: "notStored" }
  | { readonly _tag: "paused" }
  /** The journal can not be read or written. */
  | { readonly _tag: "journalFailed" }
  | { readonly _tag: "fenced" }

/** Pauses before an accepted request that could not go on is tried again. */
export const backoff: Backoff.Backoff = { firstMillis: 250, longestMillis: 30_000 }

const attempting = <A>(state: State<A>, isResumed: boolean): State<A> => ({
  ...state,
  isConcluded: false,
  phase: { _tag: "attempting", isResumed }
})

const ended = <A>(state: State<A>, as: End): State<A> => ({ ...state, phase: { _tag: "ended", as } })

/** Who works on the lane is asked, unless it is known that another process does. */
const claiming = <A>(state: State<A>, next: "attempt" | "judge"): State<A> =>
  state.isElsewhere ? ended(state, "elsewhere") : { ...state, phase: { _tag: "claiming", next } }

const pausing = <A>(state: State<A>): State<A> => {
  const failures = state.failures + 1
  return { ...state, failures, phase: { _tag: "pausing", millis: Backoff.pauseMillis(backoff, failures) } }
}

/** Of a request that is accepted by now, what its attempt has come to. */
const judged = <A>(state: State<A>, attempted: Attempted<A>): State<A> => {
  switch (attempted._tag) {
    case "done":
      return { ...state, phase: { _tag: "finishing", answer: attempted.answer } }
    case "failed":
      return state.isConcluded
        ? { ...state, phase: { _tag: "finishing", answer: attempted.answer } }
        : claiming(state, "judge")
    case "fenced":
    case "scheduled":
      return ended(state, attempted._tag)
    case "broken":
      return claiming(state, "judge")
  }
}

/** What an attempt that lasted longer than any pause ran into has nothing to do with what the ones before it did. */
const refreshed = <A>(state: State<A>, lastedMillis: number): State<A> =>
  lastedMillis > backoff.longestMillis ? { ...state, failures: 0 } : state

const ofAttempted = <A>(state: State<A>, attempted: Attempted<A>): State<A> => {
  switch (state.acceptance) {
    case "none":
      return ended(state, "unaccepted")
    case "offered":
      return { ...state, phase: { _tag: "doubting", attempted } }
    case "accepted":
      return judged(state, attempted)
  }
}

/** What the phase was to find out, or to do. */
const ofPhase = <A>(state: State<A>, { _tag }: Event<A>): State<A> => {
  const { phase } = state
  switch (phase._tag) {
    case "claiming":
      if (_tag === "notOurs") return ended({ ...state, isElsewhere: true }, "elsewhere")
      if (_tag !== "ours") return state
      return phase.next === "attempt" ? attempting(state, true) : { ...state, phase: { _tag: "judging" } }
    case "judging":
      if (_tag === "final") return ended(state, "elsewhere")
      return _tag === "open" ? pausing(state) : state
    case "finishing":
      if (_tag === "stored") return ended(state, "answered")
      return _tag === "notStored" ? claiming(state, "attempt") : state
    case "doubting":
      if (_tag === "declined") return ended(state, "unaccepted")
      return _tag === "doubtLasts" ? ended(state, "unknown") : state
    case "pausing":
      return _tag === "paused" ? claiming(state, "attempt") : state
    case "attempting":
    case "ended":
      return state
  }
}

/** The state after an event; one that does not fit the phase changes nothing. */
export const step = <A>(state: State<A>, event: Event<A>): State<A> => {
  const { acceptance, phase } = state
  if (phase._tag === "ended") return state
  switch (event._tag) {
    case "offered":
      return acceptance === "accepted" ? state : { ...state, acceptance: "offered" }
    case "notAccepted":
      return acceptance === "accepted" ? state : { ...state, acceptance: "none" }
    case "accepted": {
      const accepted: State<A> = { ...state, acceptance: "accepted" }
      return phase._tag === "doubting" ? judged(accepted, phase.attempted) : accepted
    }
    case "concluded":
      return { ...state, isConcluded: true }
    case "left":
      return { ...state, isElsewhere: true }
    case "unwanted":
      return { ...state, isUnwanted: true }
    case "attempted":
      return phase._tag === "attempting"
        ? ofAttempted(refreshed(state, event.lastedMillis), event.attempted)
        : state
    case "fenced":
      return ended({ ...state, isElsewhere: true }, "fenced")
    case "journalFailed":
      return pausing(state)
    default:
      return ofPhase(state, event)
  }
}

/** Whether an attempt ends before it has come to anything: nobody wants it, or another process has it. */
export const isStopped = <A>({ acceptance, isElsewhere, isUnwanted }: State<A>): boolean =>
  isElsewhere || (isUnwanted && acceptance !== "accepted")

export const begin = <A>(isAccepted: boolean): State<A> => ({
  phase: isAccepted ? { _tag: "claiming", next: "attempt" } : { _tag: "attempting", isResumed: false },
  acceptance: isAccepted ? "accepted" : "none",
  isConcluded: false,
  isElsewhere: false,
  isUnwanted: false,
  failures: 0
})
