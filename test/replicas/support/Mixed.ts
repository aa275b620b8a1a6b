import { cpus } from "node:os"
import { id as hashOf } from "ethers"
import * as Random from "../../faults/support/Random.js"
import type { Answer, Fleet, Unanswered } from "./Fleet.js"

export interface Options {
  readonly callers: number
  readonly seconds: number
  readonly wallets: number
  readonly name: string
}

export interface Report {
  /** Milliseconds of the answers of each endpoint, the shortest first. */
  readonly latencies: ReadonlyMap<string, ReadonlyArray<number>>
  /** Failed answers and their counts. */
  readonly refusals: ReadonlyMap<string, number>
  /** Ids reported as executed. */
  readonly executed: ReadonlyArray<string>
  /** Resident memory of each replica, in bytes, at even intervals. */
  readonly memory: ReadonlyArray<ReadonlyArray<number>>
  /** Milliseconds until a 503, the shortest first. */
  readonly refusedAfter: ReadonlyArray<number>
  /** Processors in use on average: of each replica, of the clients, of the whole machine. */
  readonly processors: {
    readonly replicas: ReadonlyArray<number>
    readonly clients: number
    readonly machine: number
  }
  readonly seconds: number
}

/** CPU time of the machine's processors so far, in seconds. */
const machineSeconds = (): number =>
  cpus().reduce((sum, { times: { irq, nice, sys, user } }) => sum + irq + nice + sys + user, 0) / 1_000

const clientSeconds = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1_000_000
}

/** Executions among ten requests; the others are spread over the endpoints that only read. */
const executionsOfTen = 4
const looks = 20

/** Callers in a closed loop, each at a random replica: executions, their look-ups, and reads. */
export const run = async (fleet: Fleet, { callers, name, seconds, wallets }: Options): Promise<Report> => {
  const latencies = new Map<string, Array<number>>()
  const refusals = new Map<string, number>()
  const executed: Array<string> = []
  const memory: Array<ReadonlyArray<number>> = []
  const refusedAfter: Array<number> = []
  const used = () => ({
    replicas: fleet.replicas.map((replica) => replica.cpuSeconds()),
    clients: clientSeconds(),
    machine: machineSeconds()
  })
  const before = used()
  const began = performance.now()
  const end = began + seconds * 1_000
  const paths = Object.keys(fleet.reads)

  const timed = async (
    dice: Random.Random,
    endpoint: string,
    question: Parameters<Fleet["exchange"]>[1]
  ): Promise<Answer | Unanswered> => {
    const at = performance.now()
    const answer = await fleet.exchange(dice.pick(fleet.replicas), question)
    const millis = performance.now() - at
    if (typeof answer !== "string" && answer.status === 200) {
      const all = latencies.get(endpoint) ?? []
      all.push(millis)
      latencies.set(endpoint, all)
    } else {
      const what = typeof answer === "string" ? answer : `${answer.status} ${answer.body.code ?? ""}`.trim()
      refusals.set(`${endpoint} ${what}`, (refusals.get(`${endpoint} ${what}`) ?? 0) + 1)
      if (typeof answer !== "string" && answer.status === 503) {
        refusedAfter.push(millis)
        await new Promise((resolve) => setTimeout(resolve, 1_000 * (answer.retryAfter ?? 0)))
      }
    }
    return answer
  }

  const caller = async (own: number): Promise<void> => {
    const dice = Random.make(`${name} caller ${own}`)
    let known: { readonly requestId: string; readonly account: string } | null = null
    for (let n = 0; performance.now() < end; n += 1) {
      const account = `${name} ${own} ${n}`
      const wallet = dice.int(0, wallets - 1)
      if (dice.int(0, 9) < executionsOfTen) {
        const id = hashOf(account)
        const key = account.replaceAll(" ", "-")
        const answer = await timed(dice, "/execute", {
          path: "/execute",
          account,
          key,
          body: fleet.hit(wallet, id)
        })
        if (typeof answer === "string" || answer.status !== 200 || answer.body.status !== 1) continue
        executed.push(id)
        known = { requestId: answer.requestId, account }
      } else if (known !== null && dice.chance(0.3)) {
        await timed(dice, "/requests/{requestId}", {
          method: "GET",
          path: `/requests/${known.requestId}`,
          account: known.account
        })
      } else {
        const path = dice.pick(paths)
        await timed(dice, path, { path, account, body: fleet.reads[path]?.(wallet) })
      }
    }
  }
  const watch = async () => {
    for (let look = 0; look < looks; look += 1) {
      memory.push(fleet.replicas.map((replica) => replica.memory()))
      await new Promise((resolve) => setTimeout(resolve, (seconds * 1_000) / looks))
    }
  }
  await Promise.all([...Array.from({ length: callers }, (_, own) => caller(own)), watch()])
  for (const all of [...latencies.values(), refusedAfter]) all.sort((one, other) => one - other)
  const took = (performance.now() - began) / 1_000
  const after = used()
  const processors = {
    replicas: after.replicas.map((sum, n) => (sum - (before.replicas[n] ?? 0)) / took),
    clients: (after.clients - before.clients) / took,
    machine: (after.machine - before.machine) / took
  }
  return { latencies, refusals, executed, memory, refusedAfter, processors, seconds: took }
}
