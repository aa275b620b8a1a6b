import { writeFileSync } from "node:fs"
import * as Build from "../faults/Build.js"
import * as Random from "../faults/Random.js"
import * as Fleet from "./Fleet.js"
import * as Load from "./Load.js"
import type { Replica } from "./Replica.js"

/** How long each fault lasts, milliseconds. */
export interface Durations {
  readonly killed: number
  readonly stopped: number
  readonly withoutDatabase: number
  readonly withoutNode: number
  readonly withoutRedis: number
}

export const full: Durations = {
  killed: 15_000,
  stopped: 60_000,
  withoutDatabase: 30_000,
  withoutNode: 30_000,
  withoutRedis: 15_000
}

/** Longer than a process keeps its lanes that gives no sign of life. */
export const short: Durations = {
  killed: 12_000,
  stopped: 15_000,
  withoutDatabase: 15_000,
  withoutNode: 6_000,
  withoutRedis: 4_000
}

export interface Options {
  readonly ops: number
  readonly wallets: number
  readonly seed: string
  readonly durations: Durations
  readonly print: (line: string) => void
}

/** What is wrong after a run, by kind: all lists are empty when every op was executed once and said so. */
export interface Verdict {
  /** Said to be executed, and not on the chain. */
  readonly lost: ReadonlyArray<string>
  readonly duplicated: ReadonlyArray<string>
  /** Said to have failed, and on the chain; or said to be in another transaction than it is. */
  readonly misreported: ReadonlyArray<string>
  /** Not executed, and said so: each of these ops could have been. */
  readonly refused: ReadonlyArray<string>
  /** Nonces that nothing fills, and what the journal has open in the end. */
  readonly gaps: ReadonlyArray<string>
  /** Without a final answer. */
  readonly stuck: ReadonlyArray<string>
  /** Answers that no client may get, and processes that ended by themselves. */
  readonly breaches: ReadonlyArray<string>
}

export const kinds = ["lost", "duplicated", "misreported", "refused", "gaps", "stuck", "breaches"] as const

export interface TakeOver {
  readonly fault: string
  readonly millis: number | null
}

export interface Report {
  readonly verdict: Verdict
  /** Of each fault that takes the lanes of their owner. */
  readonly takeOvers: ReadonlyArray<TakeOver>
  /** What clients met in the rolling restart, and how often. */
  readonly rolling: ReadonlyMap<string, number>
  readonly met: ReadonlyMap<string, number>
}

interface Phase {
  readonly name: string
  readonly from: number
  readonly to: number
}

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const tally = (texts: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}

const told = (counts: ReadonlyMap<string, number>): string =>
  [...counts].map(([what, count]) => `${what} ${count}`).join(", ")

const quantile = (sorted: ReadonlyArray<number>, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0

/** Between two faults: what the last one left is seen to be over. */
const calmMillis = 2_000
const readyMillis = 30_000

/** Every exchange with the counter contract, by the id that it counted: the chain's own word. */
const hits = async ({ world }: Fleet.Fleet): Promise<ReadonlyMap<string, ReadonlyArray<string>>> => {
  const topic = world.counter.interface.getEvent("Hit")?.topicHash ?? ""
  const logs = await world.provider.getLogs({
    address: await world.counter.getAddress(),
    topics: [topic],
    fromBlock: 0
  })
  const found = new Map<string, Array<string>>()
  for (const { topics, transactionHash } of logs) {
    const id = topics[1] ?? ""
    found.set(id, [...(found.get(id) ?? []), transactionHash])
  }
  return found
}

const judge = (
  ops: ReadonlyArray<Load.Op>,
  found: ReadonlyMap<string, ReadonlyArray<string>>
): Omit<Verdict, "gaps" | "breaches"> => {
  const where = (isWrong: (op: Load.Op, hashes: ReadonlyArray<string>) => boolean) =>
    ops.flatMap((op) => {
      const hashes = found.get(op.id) ?? []
      return isWrong(op, hashes) ? [`${op.id}: ${op.answer}, found in ${hashes.join(", ") || "none"}`] : []
    })
  return {
    lost: where(({ said }, hashes) => said === "success" && hashes.length === 0),
    duplicated: where((_, hashes) => hashes.length > 1),
    misreported: where(
      ({ said, txHash }, hashes) =>
        hashes.length > 0 && (said === "failure" || (said === "success" && !hashes.includes(txHash ?? "")))
    ),
    refused: where(({ said }, hashes) => said === "failure" && hashes.length === 0),
    stuck: where(({ said }) => said === "nothing")
  }
}

/** A run's faults, one after the other, in an order that its seed decides. */
const faults = (fleet: Fleet.Fleet, random: Random.Random, durations: Durations, breaches: Array<string>) => {
  const { holders, postgres, redis, replicas, signers } = fleet
  const phases: Array<Phase> = []
  const takeOvers: Array<TakeOver> = []
  const ready = async (replica: Replica) => {
    const end = performance.now() + readyMillis
    while (performance.now() < end) {
      const url = replica.url()
      const health = url === null ? null : await fetch(`${url}/health/ready`).catch(() => null)
      if (health?.status === 200) return
      await pause(100)
    }
    breaches.push(`${replica.name} is not ready ${readyMillis / 1_000} s after its fault`)
  }
  /** The replica that has the lane of one of the signers at this moment. */
  const owner = (): Replica => {
    const process = holders.of(random.pick(signers).address)
    return replicas.find(({ processes }) => processes().includes(process ?? "")) ?? random.pick(replicas)
  }
  const ofOwner =
    (millis: number, begin: (replica: Replica) => Promise<void>, end: (replica: Replica) => Promise<void>) =>
    async (name: string) => {
      const replica = owner()
      const since = performance.now()
      const life = replica.processes().slice(-1)
      await begin(replica)
      await pause(millis)
      // A machine that is busy takes longer.
      while (holders.takeOver(life, since) === null && performance.now() < since + millis + readyMillis)
        await pause(100)
      takeOvers.push({ fault: name, millis: holders.takeOver(life, since) })
      await end(replica)
      await ready(replica)
    }
  const sync =
    (act: (replica: Replica) => void) =>
    async (replica: Replica): Promise<void> =>
      act(replica)
  const all: Readonly<Record<string, (name: string) => Promise<void>>> = {
    killed: ofOwner(
      durations.killed,
      ({ kill }) => kill(),
      ({ begin }) => begin()
    ),
    stopped: ofOwner(
      durations.stopped,
      sync(({ hold }) => hold(true)),
      sync(({ hold }) => hold(false))
    ),
    "without the database": ofOwner(
      durations.withoutDatabase,
      sync(({ database }) => database.cut()),
      sync(({ database }) => database.mend())
    ),
    "without the node": async () => {
      const replica = owner()
      replica.node.cut()
      await pause(durations.withoutNode)
      replica.node.mend()
    },
    "the database restarted": async () => {
      await postgres.crash()
      await Promise.all(replicas.map(ready))
    },
    "Redis away": async () => {
      await redis.end()
      await pause(durations.withoutRedis)
      await redis.begin()
    },
    "a rolling restart": async () => {
      for (const replica of replicas) {
        const how = await replica.drain()
        if (how !== 0) breaches.push(`${replica.name} ended with ${how} when it was replaced`)
        await replica.begin()
        await ready(replica)
      }
    }
  }
  const run = async () => {
    const left = new Set(Object.keys(all))
    while (left.size > 0) {
      await pause(calmMillis)
      const name = random.pick([...left])
      left.delete(name)
      const from = performance.now()
      await all[name]?.(name)
      phases.push({ name, from, to: performance.now() })
    }
  }
  return { run, phases, takeOvers }
}

/** How long the faults take about, milliseconds: the ops are spread over that time. */
const lengthOf = (durations: Durations): number =>
  Object.values(durations).reduce((sum, millis) => sum + millis, 0) + 7 * calmMillis + 20_000

/** Once everything is well, none of the ops that are left has an answer after so long: they are stuck. */
const standstillMillis = 90_000

/** Ops of the end, when nothing fails any more: some of each signer. */
const lastOps = 10

/** Waits for all answers, or until no more come. A machine that is busy takes its time. */
const settled = async (load: Load.Load, count: number): Promise<void> => {
  let last = { done: load.done(), at: performance.now() }
  while (load.done() < count && performance.now() - last.at < standstillMillis) {
    await pause(200)
    if (load.done() > last.done) last = { done: load.done(), at: performance.now() }
  }
  load.end()
}

/** What the lanes have open when nobody asks for anything any more. */
const gapsOf = async (fleet: Fleet.Fleet): Promise<ReadonlyArray<string>> => {
  const end = performance.now() + 20_000
  for (;;) {
    const open = [...(await fleet.open())]
    for (const { address } of fleet.signers) {
      const [latest, pending] = await Promise.all([
        fleet.world.provider.getTransactionCount(address, "latest"),
        fleet.world.provider.getTransactionCount(address, "pending")
      ])
      if (latest !== pending) open.push(`${address}: latest ${latest}, pending ${pending}`)
    }
    if (open.length === 0 || performance.now() > end) return open
    await pause(500)
  }
}

/** Executes ops while replicas, database, node and Redis fail one after the other, and asks the chain what became of them. */
export const run = async ({ durations, ops: count, print, seed, wallets }: Options): Promise<Report> => {
  const build = Build.make()
  const random = Random.make(`replicas ${seed}`)
  const name = `replicas-${seed}`
  const fleet = await Fleet.start({ build, replicas: 3, wallets, signers: 2, name })
  try {
    const breaches: Array<string> = []
    const { phases, run: strike, takeOvers } = faults(fleet, random.fork("faults"), durations, breaches)
    const began = performance.now()
    const overMillis = lengthOf(durations)
    const load = Load.start(fleet, random.fork("load"), count, { name, overMillis, wallets })
    await strike()
    const seconds = (millis: number) => (millis / 1_000).toFixed(1)
    print(
      `faults over after ${seconds(performance.now() - began)} s, ${load.done()} of ${count} ops answered`
    )
    await settled(load, count)
    const ops = await load.ops
    const took = performance.now() - began
    // Work that comes later finds every lane in order.
    const last = Load.start(fleet, random.fork("last"), lastOps, {
      name: `${name}-last`,
      overMillis: 0,
      wallets
    })
    await settled(last, lastOps)
    const all = [...ops, ...(await last.ops)]
    const gaps = await gapsOf(fleet)
    const found = await hits(fleet)
    const strangers = [...found.keys()].filter((id) => !all.some((op) => op.id === id))
    for (const { what } of load.met)
      if (/^(500|401|403|404)/.test(what)) breaches.push(`a client was answered ${what}`)
    const verdict: Verdict = {
      ...judge(all, found),
      gaps,
      breaches: [
        ...new Set(breaches),
        ...strangers.map((id) => `${id} was executed, and nobody asked for it`)
      ]
    }
    const whileIn = ({ from, to }: Phase) =>
      tally(load.met.filter(({ at }) => at >= from && at < to).map(({ what }) => what))
    for (const phase of phases)
      print(`${phase.name}: ${seconds(phase.to - phase.from)} s; clients met ${told(whileIn(phase))}`)
    for (const { fault, millis } of takeOvers)
      print(
        `lanes of the one ${fault}: ${millis === null ? "nobody else's" : `another's after ${seconds(millis)} s`}`
      )
    const sorted = ops.map(({ millis }) => millis).sort((a, b) => a - b)
    const transactions = new Set([...found.values()].flat()).size
    print(
      `${count} ops of ${wallets} wallets in ${seconds(took)} s and ${transactions} transactions; ` +
        `until the final answer p50 ${seconds(quantile(sorted, 0.5))} s, p99 ${seconds(quantile(sorted, 0.99))} s, ` +
        `longest ${seconds(sorted.at(-1) ?? 0)} s`
    )
    print(kinds.map((kind) => `${kind} ${verdict[kind].length}`).join(", "))
    for (const kind of kinds) for (const line of verdict[kind].slice(0, 10)) print(`${kind}: ${line}`)
    const rolling = phases.find((phase) => phase.name === "a rolling restart")
    return {
      verdict,
      takeOvers,
      rolling: rolling === undefined ? new Map() : whileIn(rolling),
      met: tally(load.met.map(({ what }) => what))
    }
  } finally {
    const logs = process.env.CASTELLAN_TEST_LOGS
    if (logs !== undefined)
      writeFileSync(logs, fleet.replicas.map((each) => `=== ${each.name}\n${each.log()}`).join(""))
    await fleet.stop()
    build.remove()
  }
}
