import * as Effect from "effect/Effect"
import * as CancelRequest from "../../application/endpoints/operations/CancelRequest.js"
import type { Lane } from "../../application/ports/journal/Transactions.js"
import { maxReason, type OperatorAct } from "../../application/ports/operator/OperatorLog.js"
import type { Pause } from "../../application/ports/TenantStore.js"
import * as KnownKeys from "../../application/tenants/KnownKeys.js"
import type { Data, View } from "./Data.js"
import { laneOf } from "./pages/Lanes.js"

/** Actions of operators' forms. The operator log records the reason before the action runs. */

/** Shortest and longest reason, characters. */
const reasonLength = { least: 5, most: maxReason }

/** Redirect after an action, and the name of its confirmation. */
export interface Done {
  readonly path: string
  readonly said: string
}

interface Refused {
  readonly message: string
}

type Task = Effect.Effect<Done, Refused>

const kinds: ReadonlyArray<string> = ["account", "signer", "chain"] satisfies ReadonlyArray<Pause["kind"]>

const isKind = (text: string): text is Pause["kind"] => kinds.includes(text)

const refusal = (message: string): Effect.Effect<never, Refused> => Effect.fail({ message })

/** Confirmations, by the name that the redirect carries. */
export const confirmations: ReadonlyMap<string, string> = new Map([
  ["paused", "Paused: from the next second on no process accepts new work for it."],
  ["resumed", "Resumed."],
  ["cancelled", "Cancelled: unsigned work is never executed."],
  ["released", "Released: the service continues the request within a few seconds."],
  ["dropped", "Dropped: unsigned work is never executed."],
  ["revoked", "Revoked: the key stops within a second."]
])

const logAct = (
  data: Data,
  { operator }: View,
  form: URLSearchParams,
  act: OperatorAct["act"],
  subject: string,
  task: Task
): Task => {
  const reason = (form.get("reason") ?? "").replaceAll("\0", "").trim()
  if (reason.length < reasonLength.least || reason.length > reasonLength.most)
    return refusal(`reason: expected ${reasonLength.least} to ${reasonLength.most} characters`)
  return Effect.andThen(data.operators.record({ operator, act, subject, reason }), task)
}

const pause = (data: Data, view: View, form: URLSearchParams, act: "pause" | "resume"): Task => {
  const kind = form.get("kind") ?? ""
  const subject = form.get("subject") ?? ""
  if (!isKind(kind) || subject === "") return refusal("kind, subject: not of this console")
  const isPause = act === "pause"
  return logAct(
    data,
    view,
    form,
    act,
    `${kind} ${subject}`,
    Effect.as(
      isPause ? data.tenants.pause({ kind, subject, since: view.now }) : data.tenants.resume(kind, subject),
      { path: kind === "account" ? "/accounts" : "/rules", said: isPause ? "paused" : "resumed" }
    )
  )
}

const ofRequest = (data: Data, view: View, form: URLSearchParams, act: "cancel" | "drop" | "release"): Task =>
  Effect.gen(function* () {
    const requestId = form.get("request") ?? ""
    const record = yield* data.requests.request(requestId)
    if (record === null) return yield* refusal("There is no such request, or it is not kept any more.")
    if (act === "cancel" && !CancelRequest.isCancellable(record.endpoint))
      return yield* refusal("A request that replaces transactions of others cannot be cancelled.")
    if (act !== "cancel" && record.held == null) return yield* refusal("The request is not held any more.")
    const [task, confirmation] = {
      cancel: [data.cancel(requestId, "request_cancelled"), "cancelled"] as const,
      drop: [data.cancel(requestId, "request_dropped"), "dropped"] as const,
      release: [data.recovery.unhold(requestId), "released"] as const
    }[act]
    const path = `/requests/${encodeURIComponent(requestId)}`
    const done = Effect.flatMap(
      task,
      (isDone): Task =>
        isDone
          ? Effect.succeed({ path, said: confirmation })
          : refusal("The request is not what it was: load its page again.")
    )
    return yield* logAct(data, view, form, act, requestId, done)
  })

const revoke = (data: Data, view: View, form: URLSearchParams): Task =>
  Effect.gen(function* () {
    const id = form.get("key") ?? ""
    const keys = KnownKeys.of(data.accounts, yield* data.tenants.content, new Map())
    const key = keys.find((each) => each.id === id)
    if (key === undefined) return yield* refusal("There is no such key.")
    if (form.get("typed") !== id) return yield* refusal(`typed: expected ${id}`)
    return yield* logAct(
      data,
      view,
      form,
      "revoke",
      `key ${id} of ${key.accountId}`,
      Effect.as(data.tenants.endKey(key, view.now), { path: "/accounts", said: "revoked" })
    )
  })

/** The lane of a form that re-prices pending transactions. The log records it, except for a dry run. */
export const unstick = (
  data: Data,
  view: View,
  form: URLSearchParams
): Effect.Effect<{ readonly lane: Lane; readonly dryRun: boolean }, Refused> => {
  const lane = laneOf(form.get("chain") ?? "", form.get("signer") ?? "")
  if (lane === null) return refusal("chain, signer: not of this console")
  // A dry run unless dryRun=false.
  if (form.get("dryRun") !== "false") return Effect.succeed({ lane, dryRun: true })
  const subject = `lane ${lane.chainId} ${lane.signer}`
  return Effect.as(logAct(data, view, form, "unstick", subject, Effect.succeed({ path: "", said: "" })), {
    lane,
    dryRun: false
  })
}

/** Performs the form's action; null: no form has this path. */
export const run = (data: Data, view: View, path: string, form: URLSearchParams): Task | null => {
  switch (path) {
    case "/pause":
    case "/resume":
      return pause(data, view, form, path === "/pause" ? "pause" : "resume")
    case "/cancel":
      return ofRequest(data, view, form, "cancel")
    case "/drop":
      return ofRequest(data, view, form, "drop")
    case "/release":
      return ofRequest(data, view, form, "release")
    case "/revoke":
      return revoke(data, view, form)
    default:
      return null
  }
}
