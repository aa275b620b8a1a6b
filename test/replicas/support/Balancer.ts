import type * as Random from "../../faults/support/Random.js"
import type { Replica } from "./Replica.js"

/** Distributes requests over the replicas that were ready a moment ago. */
export interface Balancer {
  /** Null: no replica is in service. */
  readonly pick: (dice: Random.Random) => Replica | null
  readonly stop: () => Promise<void>
}

const checkMillis = 1_000
/** Share of requests sent to an unready replica in service: some balancers check seldom. */
const regardless = 0.1

/** Whether the replica reports that it is ready. */
export const isReady = async (replica: Replica, patienceMillis: number): Promise<boolean> => {
  const url = replica.url()
  if (url === null) return false
  const health = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(patienceMillis) }).catch(
    () => null
  )
  await health?.body?.cancel()
  return health?.status === 200
}

export const start = (replicas: ReadonlyArray<Replica>): Balancer => {
  const unready = new Set<Replica>()
  let isStopped = false
  const watch = async (replica: Replica) => {
    while (!isStopped) {
      if (await isReady(replica, 2 * checkMillis)) unready.delete(replica)
      else unready.add(replica)
      await new Promise((resolve) => setTimeout(resolve, checkMillis))
    }
  }
  const watching = Promise.all(replicas.map(watch))
  return {
    pick: (dice) => {
      const inService = replicas.filter((replica) => replica.url() !== null)
      const well = inService.filter((replica) => !unready.has(replica))
      const among = well.length === 0 || dice.chance(regardless) ? inService : well
      return among.length === 0 ? null : dice.pick(among)
    },
    stop: async () => {
      isStopped = true
      await watching
    }
  }
}
