import { id as hashOf } from "ethers"
import type * as Random from "../faults/Random.js"
import type { Answer, Fleet, Unanswered } from "./Fleet.js"

/** What one client wanted, and what it was told in the end. */
export interface Op {
  readonly id: string
  readonly said: "success" | "failure" | "nothing"
  /** Status and code of the final answer. */
  readonly answer: string
  readonly txHash: string | null
  /** Until the final answer. */
  readonly millis: number
}

/** What clients met on their way to the final answers. */
export interface Met {
  /** When it was asked. */
  readonly at: number
  /** Until it was answered, or the connection was lost. */
  readonly millis: number
  readonly what: string
}

export interface Load {
  readonly met: ReadonlyArray<Met>
  /** How many have their final answer. */
  readonly done: () => number
  readonly ops: Promise<ReadonlyArray<Op>>
  /** Who has no answer yet gives up. */
  readonly end: () => void
}

/** The same request with the same key finds another answer later, or at another replica. */
const passing = new Set(["outcome_unknown", "invalid_rpc", "node_refused", "wallet_busy", "fees_above_cap"])

const isPassing = ({ body, status }: Answer): boolean =>
  status >= 500 || status === 429 || passing.has(body.code ?? "")

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const nameOf = (answer: Answer | Unanswered): string =>
  typeof answer === "string" ? answer : `${answer.status} ${answer.body.code ?? ""}`.trim()

/**
 * Clients as a balancer brings them: each asks a replica of those that are in service, by chance, and asks again with
 * the same key what was lost or refused for the moment. One in four does not wait and looks its request up instead.
 */
export const start = (
  fleet: Fleet,
  random: Random.Random,
  count: number,
  {
    name,
    overMillis,
    wallets
  }: { readonly name: string; readonly overMillis: number; readonly wallets: number }
): Load => {
  const met: Array<Met> = []
  let isOver = false
  let done = 0

  const asked = async (dice: Random.Random, question: Parameters<Fleet["exchange"]>[1]) => {
    const serving = fleet.replicas.filter((replica) => replica.url() !== null)
    if (serving.length === 0) return null
    const at = performance.now()
    const answer = await fleet.exchange(dice.pick(serving), question)
    met.push({ at, millis: performance.now() - at, what: nameOf(answer) })
    return typeof answer === "string" ? null : answer
  }

  /** What became of a request that was answered as soon as it was accepted. */
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

  const one = async (n: number): Promise<Op> => {
    const dice = random.fork(`op ${n}`)
    const id = hashOf(`${name} op ${n}`)
    const wallet = dice.int(0, wallets - 1)
    const isAsync = dice.chance(0.25)
    const account = `op ${n}`
    await pause((n * overMillis) / count)
    const began = performance.now()
    const outcome = async (): Promise<Answer | null> => {
      while (!isOver) {
        const body = fleet.hit(wallet, id)
        const answer = await asked(dice, { path: "/execute", account, key: `${name}-${n}`, body, isAsync })
        if (answer?.status === 202) return followed(dice, account, answer.body.requestId ?? "")
        if (answer !== null && !isPassing(answer)) return answer
        await pause(Math.min(1_000, 1_000 * (answer?.retryAfter ?? 0.1)))
      }
      return null
    }
    const answer = await outcome()
    done += 1
    const isSuccess = answer?.status === 200 && answer.body.status === 1
    return {
      id,
      said: answer === null ? "nothing" : isSuccess ? "success" : "failure",
      answer: answer === null ? "none" : `${nameOf(answer)} ${JSON.stringify(answer.body).slice(0, 300)}`,
      txHash: answer?.body.txHash ?? null,
      millis: performance.now() - began
    }
  }
  return {
    met,
    done: () => done,
    ops: Promise.all(Array.from({ length: count }, (_, n) => one(n))),
    end: () => {
      isOver = true
    }
  }
}
