import { id as hashOf } from "ethers"
import type * as Random from "../../faults/support/Random.js"
import type { Answer, Fleet, Unanswered } from "./Fleet.js"

/** One client's request and its final answer. */
export interface Op {
  readonly id: string
  /** Its idempotency key. */
  readonly name: string
  readonly said: "success" | "failure" | "nothing"
  /** Status and code of the final answer. */
  readonly answer: string
  readonly txHash: string | null
  /** Until the final answer. */
  readonly millis: number
}

/** Clients' answers before the final ones. */
export interface Met {
  /** Time of the request. */
  readonly at: number
  /** Until the answer or the loss of the connection. */
  readonly millis: number
  readonly what: string
}

export interface Load {
  readonly met: ReadonlyArray<Met>
  /** Number of ops with a final answer. */
  readonly done: () => number
  /** Number of all ops, as far as known. */
  readonly total: () => number
  /** Number of requested ops without a final answer. */
  readonly underWay: () => number
  readonly ops: Promise<ReadonlyArray<Op>>
  /** Clients without an answer give up. */
  readonly end: () => void
}

/**
 * Codes of unaccepted requests: a repeat with the same key gets another answer later, or at another replica. The answer
 * to an accepted one is fixed.
 */
const passing = new Set(["outcome_unknown", "invalid_rpc", "node_refused", "wallet_busy", "fees_above_cap"])

const isPassing = ({ body, status }: Answer): boolean =>
  status >= 500 || status === 429 || passing.has(body.code ?? "")

/** Requests under way may hang with their replica: others begin after this time, in ms. */
const lullMillis = 1_000

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const nameOf = (answer: Answer | Unanswered): string => {
  if (typeof answer === "string") return answer
  const { body, retryAfter, status } = answer
  const what = status === 503 && retryAfter === null ? "503 without Retry-After" : `${status}`
  return `${what} ${body.code ?? ""}`.trim()
}

export interface Options {
  readonly name: string
  /** Time that the ops are spread over, in ms; it grows with slower clients. */
  readonly overMillis: number
  readonly wallets: number
  /** Share of the ops that may have begun, 0 to 1. Default: all. */
  readonly share?: () => number
  /**
   * Whether a caller waits for an effect that only work brings: a lane is taken over when there is work for it. That op
   * comes in addition to the others, when none of them has begun for a while. Default: no.
   */
  readonly wants?: () => boolean
  /** Number of concurrent clients; the others wait for one of them to finish. */
  readonly clients: number
}

/**
 * Clients behind a balancer: each uses its assigned replica, and repeats lost or temporarily refused requests with the
 * same key. One in four does not wait and looks its request up instead.
 */
export const start = (
  fleet: Fleet,
  random: Random.Random,
  count: number,
  { clients, name, overMillis, share = () => 1, wallets, wants = () => false }: Options
): Load => {
  const met: Array<Met> = []
  let isOver = false
  let begun = 0
  let asking = 0
  let done = 0
  let extra = 0
  const beganAll = performance.now()
  let lastBegan = beganAll

  const asked = async (dice: Random.Random, question: Parameters<Fleet["exchange"]>[1]) => {
    const replica = fleet.balancer.pick(dice)
    if (replica === null) return null
    const at = performance.now()
    const answer = await fleet.exchange(replica, question)
    met.push({ at, millis: performance.now() - at, what: nameOf(answer) })
    return typeof answer === "string" ? null : answer
  }

  /** Outcome of a request that was answered when it was accepted. */
  const followed = async (
    dice: Random.Random,
    account: string,
    requestId: string
  ): Promise<Answer | null> => {
    while (!isOver) {
      const found = await asked(dice, { method: "GET", path: `/requests/${requestId}`, account })
      if (found !== null && found.status < 500 && found.status !== 200 && found.status !== 429) return found
      if (found?.status === 200 && found.body.answer != null)
        return { ...found, status: found.body.httpStatus ?? 0, retryAfter: null, body: found.body.answer }
      await pause(500)
    }
    return null
  }

  /** The answer to a request that was accepted, and then refused for a temporary cause; null: none. */
  const finalOf = async (dice: Random.Random, account: string, op: string): Promise<Answer | null> => {
    const path = `/requests?state=final&metadata=op:${op}`
    const [found] = (await asked(dice, { method: "GET", path, account }))?.body.requests ?? []
    return found === undefined ? null : followed(dice, account, found.requestId)
  }

  const one = async (n: number): Promise<Op> => {
    const dice = random.fork(`op ${n}`)
    const id = hashOf(`${name} op ${n}`)
    const wallet = dice.int(0, wallets - 1)
    const isAsync = dice.chance(0.25)
    const account = `op ${n}`
    const op = `${name}-${n}`
    const began = performance.now()
    const outcome = async (): Promise<Answer | null> => {
      while (!isOver) {
        const body = fleet.hit(wallet, id)
        const answer = await asked(dice, {
          path: "/execute",
          account,
          key: op,
          metadata: { op },
          body,
          isAsync
        })
        if (answer?.status === 202) return followed(dice, account, answer.body.requestId ?? "")
        if (answer !== null && !isPassing(answer)) return answer
        const final = answer?.status === 422 ? await finalOf(dice, account, op) : null
        if (final !== null) return final
        await pause(Math.min(1_000, 1_000 * (answer?.retryAfter ?? 0.1)))
      }
      return null
    }
    const answer = await outcome()
    done += 1
    const isSuccess = answer?.status === 200 && answer.body.status === 1
    return {
      id,
      name: op,
      said: answer === null ? "nothing" : isSuccess ? "success" : "failure",
      answer: answer === null ? "none" : `${nameOf(answer)} ${JSON.stringify(answer.body).slice(0, 300)}`,
      txHash: answer?.body.txHash ?? null,
      millis: performance.now() - began
    }
  }
  const ops: Array<Op> = []
  /** The number of the next op, once it may begin; null: none. */
  const next = async (): Promise<number | null> => {
    for (;;) {
      if (isOver) return begun < count + extra ? begun++ : null
      if (begun < Math.ceil(count * share()) + extra) return begun++
      if (wants() && performance.now() - lastBegan > lullMillis) extra += 2
      else if (begun >= count + extra && share() >= 1) return null
      await pause(100)
    }
  }
  const client = async (): Promise<void> => {
    for (let n = await next(); n !== null; n = await next()) {
      const early = beganAll + ((n - extra) * overMillis) / count - performance.now()
      if (early > 0 && !isOver) await pause(early)
      asking += 1
      lastBegan = performance.now()
      ops.push(await one(n))
    }
  }
  return {
    met,
    done: () => done,
    total: () => count + extra,
    underWay: () => asking - done,
    ops: Promise.all(Array.from({ length: clients }, client)).then(() => ops),
    end: () => {
      isOver = true
    }
  }
}
