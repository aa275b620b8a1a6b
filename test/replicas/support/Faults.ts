import type { Build } from "../../faults/support/Build.js"
import type * as Random from "../../faults/support/Random.js"
import * as Balancer from "./Balancer.js"
import type { Fleet } from "./Fleet.js"
import type { Replica } from "./Replica.js"

/** Duration of each fault, in ms; faults that take a replica's lanes happen once per figure. */
export interface Durations {
  readonly killed: ReadonlyArray<number>
  readonly stopped: ReadonlyArray<number>
  readonly withoutDatabase: ReadonlyArray<number>
  readonly withoutNode: number
  readonly withoutRedis: number
}

export const full: Durations = {
  killed: [15_000, 12_000, 12_000],
  stopped: [60_000, 12_000, 12_000],
  withoutDatabase: [30_000, 12_000, 12_000],
  withoutNode: 30_000,
  withoutRedis: 15_000
}

/** Longer than a process without a sign of life keeps its lanes. */
export const short: Durations = {
  killed: [12_000],
  stopped: [15_000],
  withoutDatabase: [15_000],
  withoutNode: 6_000,
  withoutRedis: 4_000
}

export interface TakeOver {
  readonly fault: string
  /** Time until another replica had the lanes; null: no replica had them at the end of the fault. */
  readonly millis: number | null
}

/** A replica with lanes was suspended for a moment. */
export interface Pause {
  readonly isLost: boolean
}

export interface Phase {
  readonly name: string
  readonly from: number
  readonly to: number
}

export const rolling = "a rolling restart"

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Pause between two faults: the effects of the last one have ended. */
const calmMillis = 2_000
/** Longest start, and longest take-over, on a loaded machine. */
const readyMillis = 90_000
/** Like a garbage collection, or a machine that moves to another host. */
const heldUpMillis = 2_000
/** Longer than other replicas take to notice a lost one. */
const watchedMillis = 8_000

/** Approximate duration of all faults, in ms. */
export const lengthOf = (durations: Durations): number => {
  const all = Object.values(durations).flat()
  return (
    all.reduce((sum, millis) => sum + millis, 0) +
    (all.length + 3) * calmMillis +
    heldUpMillis +
    watchedMillis +
    20_000
  )
}

export interface Faults {
  /**
   * One after the other: first the rolling restart, without other faults; then the others, in an order set by the seed.
   */
  readonly run: () => Promise<void>
  readonly phases: ReadonlyArray<Phase>
  readonly takeOvers: ReadonlyArray<TakeOver>
  readonly pauses: ReadonlyArray<Pause>
  readonly current: () => string
  /** Share of the faults done including the present one, 0 to 1: on a slow machine each lasts longer than planned. */
  readonly share: () => number
  /** A failed replica still has its lanes: another takes them over when there is work for them. */
  readonly isWaiting: () => boolean
}

type Act = (name: string) => Promise<void>

/** `deadline`: no fault begins later. `next`: the build that replicas run after their replacement. */
export const make = (
  { holders, postgres, redis, replicas, signers }: Fleet,
  random: Random.Random,
  durations: Durations,
  {
    breaches,
    deadline,
    next
  }: { readonly breaches: Array<string>; readonly deadline: number; readonly next: Build | null }
): Faults => {
  const phases: Array<Phase> = []
  const takeOvers: Array<TakeOver> = []
  const pauses: Array<Pause> = []
  let current = "nothing yet"
  let begun = 0
  let isWaiting = () => false
  const ready = async (replica: Replica) => {
    const end = performance.now() + readyMillis
    while (performance.now() < end) {
      if (await Balancer.isReady(replica, readyMillis)) return
      await pause(100)
    }
    breaches.push(`${replica.name} is not ready ${readyMillis / 1_000} s after its fault`)
  }
  /**
   * The replica that has the lane of one of the signers now. The process in the journal may have ended: a live one
   * claims its lane when there is work for it.
   */
  const owner = async (): Promise<Replica> => {
    const first = random.pick(signers)
    const end = performance.now() + readyMillis
    isWaiting = () => true
    try {
      for (;;) {
        const held = [first, ...signers].map(({ address }) => holders.of(address))
        const living = held.flatMap(
          (process) => replicas.find(({ processes }) => processes().at(-1) === process) ?? []
        )
        if (living[0] !== undefined) return living[0]
        if (performance.now() > end) return random.pick(replicas)
        await pause(100)
      }
    } finally {
      isWaiting = () => false
    }
  }
  const ofOwner =
    (
      millis: number,
      begin: (replica: Replica) => Promise<void>,
      end: (replica: Replica) => Promise<void>
    ): Act =>
    async (name) => {
      const replica = await owner()
      const since = performance.now()
      const life = replica.processes().slice(-1)
      const isTaken = () => holders.takeOver(life, since) !== null
      await begin(replica)
      isWaiting = () => !isTaken()
      await pause(millis)
      // A loaded machine takes longer.
      while (!isTaken() && performance.now() < since + millis + readyMillis) await pause(100)
      isWaiting = () => false
      takeOvers.push({ fault: name, millis: holders.takeOver(life, since) })
      await end(replica)
      await ready(replica)
    }
  const sync =
    (act: (replica: Replica) => void) =>
    async (replica: Replica): Promise<void> =>
      act(replica)
  const restartAll: Act = async () => {
    for (const replica of replicas) {
      const how = await replica.drain()
      if (how !== 0) breaches.push(`${replica.name} ended with ${how} when it was replaced`)
      if (next !== null) replica.use(next)
      await replica.begin()
      await ready(replica)
    }
  }
  const others: ReadonlyArray<readonly [string, Act]> = [
    ...durations.killed.map(
      (millis) =>
        [
          "killed",
          ofOwner(
            millis,
            ({ kill }) => kill(),
            ({ begin }) => begin()
          )
        ] as const
    ),
    ...durations.stopped.map(
      (millis) =>
        [
          "stopped",
          ofOwner(
            millis,
            sync(({ hold }) => hold(true)),
            sync(({ hold }) => hold(false))
          )
        ] as const
    ),
    ...durations.withoutDatabase.map(
      (millis) =>
        [
          "without the database",
          ofOwner(
            millis,
            sync(({ database }) => database.cut()),
            sync(({ database }) => database.mend())
          )
        ] as const
    ),
    [
      "held up for 2 seconds",
      async () => {
        const replica = await owner()
        const life = replica.processes().slice(-1)
        const since = performance.now()
        replica.hold(true)
        await pause(heldUpMillis)
        replica.hold(false)
        await pause(watchedMillis)
        pauses.push({ isLost: holders.takeOver(life, since) !== null })
      }
    ],
    [
      "without the node",
      async () => {
        const replica = await owner()
        replica.node.cut()
        await pause(durations.withoutNode)
        replica.node.mend()
      }
    ],
    [
      "the database restarted",
      async () => {
        await postgres.crash()
        await Promise.all(replicas.map(ready))
      }
    ],
    [
      "Redis away",
      async () => {
        await redis.end()
        await pause(durations.withoutRedis)
        await redis.begin()
      }
    ]
  ]
  /** The rolling restart, each of the others, and the time after them: a replica still works during the last one. */
  const parts = others.length + 2
  const run = async () => {
    const left = [...others]
    const strike = async ([name, act]: readonly [string, Act]) => {
      current = "nothing"
      await pause(calmMillis)
      if (performance.now() > deadline) return void breaches.push(`no time was left for: ${name}`)
      current = name
      begun += 1
      const from = performance.now()
      await act(name)
      phases.push({ name, from, to: performance.now() })
    }
    await strike([rolling, restartAll])
    while (left.length > 0)
      for (const fault of left.splice(random.int(0, left.length - 1), 1)) await strike(fault)
    current = "nothing any more"
    begun = parts
  }
  return {
    run,
    phases,
    takeOvers,
    pauses,
    current: () => current,
    isWaiting: () => isWaiting(),
    share: () => begun / parts
  }
}
