import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import { expect } from "vitest"
import type { Sent } from "../../support/http/Bodies.js"
import { untruths } from "../../support/http/OpenApiDocument.js"
import * as LoopMonitor from "../../support/LoopMonitor.js"

/** Random requests by the hundred, and the properties that every answer must have. */

/** Number of concurrent requests. */
const crowd = 20

/** A request that takes longer hangs, in milliseconds: no node is slow here. */
export const patience = 20_000

export interface Got {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export const byFetch =
  (url: string) =>
  ({ body, headers, method, target }: Sent): Effect.Effect<Got, Error> =>
    Effect.tryPromise({
      try: async () => {
        const named = Object.fromEntries(
          Object.entries(headers).filter(([, value]) => /^[\x20-\xff]*$/.test(value))
        )
        const answer = await fetch(`${url}${target}`, {
          method,
          headers: named,
          ...(method === "POST" ? { body } : {}),
          signal: AbortSignal.timeout(patience)
        })
        return { status: answer.status, headers: answer.headers, text: await answer.text() }
      },
      catch: (error) => new Error(`it broke off: ${String(error)}`)
    })

const show = ({ body, headers, method, target }: Sent): string =>
  `${method} ${target.slice(0, 100)} ${headers["content-type"] ?? ""} ${body.toString().slice(0, 1_500)}`

/** Problems of an answer to any request; empty if none. */
const wrong = (sent: Sent, { headers, status, text }: Got): ReadonlyArray<string> => {
  const { body, method, target } = sent
  const problems = [...untruths({ method, target, sent: body.toString(), status, headers, text })]
  if (status >= 500) problems.push(`answered ${status}`)
  if (text === "") problems.push("answered with nothing")
  if (status !== 200 && text.length > 100_000) problems.push("refused at great length")
  return problems
}

/** Number of answers by path and status: `/predict 200`, `/webhooks/* 404`. */
export type Statuses = Map<string, number>

/** Fixed, so that runs repeat; `FUZZ_SEED=$RANDOM` covers other requests. */
export const seed = Number(process.env.FUZZ_SEED ?? 4_337)

export interface Campaign {
  readonly count: number
  readonly requests: fc.Arbitrary<Sent>
  readonly send: (sent: Sent) => Effect.Effect<Got, Error>
  readonly run: <A>(effect: Effect.Effect<A>) => Promise<A>
  /** Complaints of the service since the last call. */
  readonly complaints: () => ReadonlyArray<string>
  /** Receives the number of sent requests from time to time. */
  readonly after?: (sent: number) => void
}

/** Longest hold of the event loop during a crowd, in milliseconds of CPU time. */
const mostHeld = 100

/**
 * Sends `count` requests in crowds. It fails at the first crowd with a wrong answer, a complaint or a hold of the event
 * loop. It judges answers after the crowd, so that judging does not count as a hold.
 */
export const campaign = async (plan: Campaign): Promise<Statuses> => {
  const statuses: Statuses = new Map()
  const judge = (sent: Sent, answer: Result.Result<Got, Error>): ReadonlyArray<string> => {
    if (Result.isFailure(answer)) return [`${answer.failure.message} <- ${show(sent)}`]
    const got = answer.success
    const path = sent.target
      .replace(/\?.*$/s, "")
      .replace(/^\/(requests|webhooks|watches|policies(?!\/evaluate)|topups)\/[^/]*/, "/$1/*")
    const name = `${path} ${got.status}`
    statuses.set(name, (statuses.get(name) ?? 0) + 1)
    return wrong(sent, got).map((problem) => `${problem} <- ${show(sent)}`)
  }
  const answered = async (batch: ReadonlyArray<Sent>) => {
    // Requests that never wait would starve timers and the test runner.
    await new Promise((resolve) => setImmediate(resolve))
    const monitor = LoopMonitor.start()
    const answers = await plan.run(
      Effect.forEach(batch, (sent) => Effect.result(plan.send(sent)), { concurrency: "unbounded" })
    )
    monitor.stop()
    return { answers, longest: monitor.longest() }
  }
  for (let sent = 0; sent < plan.count; ) {
    const numRuns = Math.min(500, plan.count - sent)
    const sample = fc.sample(plan.requests, { numRuns, seed: seed + sent })
    for (let at = 0; at < sample.length; at += crowd) {
      const batch = sample.slice(at, at + crowd)
      const { answers, longest } = await LoopMonitor.leastOf(mostHeld, () => answered(batch))
      const problems = batch.flatMap((one, n) => {
        const answer = answers[n]
        return answer === undefined ? [] : judge(one, answer)
      })
      if (longest >= mostHeld) problems.push(`${longest} ms together <- ${batch.map(show).join("\n")}`)
      expect([...problems, ...plan.complaints()]).toEqual([])
    }
    sent += sample.length
    plan.after?.(sent)
  }
  return statuses
}

/** Formats the statuses for the log of a run. */
export const told = (statuses: Statuses): string =>
  [...statuses]
    .sort()
    .map(([name, count]) => `${name}: ${count}`)
    .join("; ")
