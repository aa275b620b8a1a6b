import { writeFileSync } from "node:fs"
import * as Build from "../../faults/support/Build.js"
import * as Random from "../../faults/support/Random.js"
import * as Faults from "./Faults.js"
import * as Fleet from "./Fleet.js"
import * as Load from "./Load.js"
import * as Verdict from "./Verdict.js"

export interface Options {
  readonly ops: number
  readonly wallets: number
  readonly clients: number
  readonly seed: string
  readonly durations: Faults.Durations
  /** After this time an op without an answer has none. */
  readonly limitMillis: number
  /** The commit that the replicas run until the rolling restart replaces them by this version. Default: this version. */
  readonly upgradeFrom?: string | undefined
  readonly print: (line: string) => void
}

export interface Report {
  readonly verdict: Verdict.Verdict
  /** For each fault that takes the owner's lanes. */
  readonly takeOvers: ReadonlyArray<Faults.TakeOver>
  /** Clients' answers in the rolling restart, and their counts. */
  readonly rolling: ReadonlyMap<string, number>
  readonly met: ReadonlyMap<string, number>
}

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const tally = (texts: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}

const seconds = (millis: number): string => (millis / 1_000).toFixed(1)

/** After the last fault, ops without an answer for this long are stuck. */
const standstillMillis = 90_000

/** Final ops, after the last fault: some of each signer. */
const lastOps = 10

const progressMillis = 15_000

/** Waits for all answers, or until no more come. A loaded machine is slow. */
const settled = async (load: Load.Load, deadline: number): Promise<void> => {
  let last = { done: load.done(), at: performance.now() }
  while (
    load.done() < load.total() &&
    performance.now() < deadline &&
    performance.now() - last.at < standstillMillis
  ) {
    await pause(200)
    if (load.done() > last.done) last = { done: load.done(), at: performance.now() }
  }
  load.end()
}

/** Open work of the lanes after the last request, once it no longer changes. */
const gapsOf = async (fleet: Fleet.Fleet): Promise<ReadonlyArray<string>> => {
  let last = { open: "", at: performance.now() }
  for (;;) {
    const open = [...(await fleet.open())]
    for (const { address } of fleet.signers) {
      const [latest, pending] = await Promise.all([
        fleet.world.provider.getTransactionCount(address, "latest"),
        fleet.world.provider.getTransactionCount(address, "pending")
      ])
      if (latest !== pending) open.push(`${address}: latest ${latest}, pending ${pending}`)
    }
    const now = open.join()
    if (now !== last.open) last = { open: now, at: performance.now() }
    if (open.length === 0 || performance.now() - last.at > standstillMillis) return open
    await pause(500)
  }
}

const prove = async (
  fleet: Fleet.Fleet,
  next: Build.Build | null,
  random: Random.Random,
  options: Options
): Promise<Report> => {
  const { clients, durations, limitMillis, ops: count, print, seed, wallets } = options
  const name = `replicas-${seed}`
  const began = performance.now()
  const deadline = began + limitMillis
  const breaches: Array<string> = []
  const faults = Faults.make(fleet, random.fork("faults"), durations, { breaches, deadline, next })
  const asked = { name, overMillis: Faults.lengthOf(durations), wallets, clients }
  const load = Load.start(fleet, random.fork("load"), count, {
    ...asked,
    share: faults.share,
    wants: faults.isWaiting
  })
  const progress = setInterval(
    () =>
      print(
        `${seconds(performance.now() - began)} s: ${load.done()} of ${load.total()} ops answered, ` +
          `${load.underWay()} under way; fault: ${faults.current()}`
      ),
    progressMillis
  )
  try {
    await faults.run()
    print(
      `faults over after ${seconds(performance.now() - began)} s, ${load.done()} of ${load.total()} ops answered`
    )
    await settled(load, deadline)
  } finally {
    clearInterval(progress)
    load.end()
  }
  const ops = await load.ops
  const took = performance.now() - began
  // Later work finds every lane in order.
  const last = Load.start(fleet, random.fork("last"), lastOps, {
    ...asked,
    name: `${name}-last`,
    overMillis: 0
  })
  await settled(last, Number.POSITIVE_INFINITY)
  const all = [...ops, ...(await last.ops)]
  const gaps = await gapsOf(fleet)
  const found = await Verdict.hits(fleet)
  const whileIn = ({ from, to }: Faults.Phase) => load.met.filter(({ at }) => at >= from && at < to)
  const restart = faults.phases.find((phase) => phase.name === Faults.rolling)
  const met = tally([...load.met, ...last.met].map(({ what }) => what))
  const rolling = tally((restart === undefined ? [] : whileIn(restart)).map(({ what }) => what))
  const verdict = Verdict.of(all, found, { all: met, rolling }, { breaches, gaps })
  for (const { from, name, to } of faults.phases) print(`${name}: ${seconds(to - from)} s`)
  for (const { fault, millis } of faults.takeOvers)
    print(
      `lanes of the one ${fault} were another's after ${millis === null ? "no time" : `${seconds(millis)} s`}`
    )
  for (const { isLost } of faults.pauses)
    print(`the one held up for 2 seconds ${isLost ? "lost its lanes" : "kept its lanes"}`)
  print(`${ops.length} ops of ${wallets} wallets in ${seconds(took)} s`)
  print(`clients met ${[...met].map(([what, times]) => `${what} ${times}`).join(", ")}`)
  print(Verdict.kinds.map((kind) => `${kind} ${verdict[kind].length}`).join(", "))
  for (const kind of Verdict.kinds) for (const line of verdict[kind].slice(0, 10)) print(`${kind}: ${line}`)
  return { verdict, takeOvers: faults.takeOvers, rolling, met }
}

/**
 * Executes ops while replicas, database, node and Redis fail one after the other, then reads their outcomes from the
 * chain.
 */
export const run = async (options: Options): Promise<Report> => {
  const { seed, upgradeFrom, wallets } = options
  const builds = upgradeFrom === undefined ? [] : [await Build.ofCommit(upgradeFrom)]
  const newest = await Build.make()
  builds.push(newest)
  let fleet: Fleet.Fleet | null = null
  try {
    fleet = await Fleet.start({
      build: builds[0] ?? newest,
      replicas: 3,
      wallets,
      signers: 2,
      name: `replicas-${seed}`
    })
    return await prove(
      fleet,
      upgradeFrom === undefined ? null : newest,
      Random.make(`replicas ${seed}`),
      options
    )
  } finally {
    const logs = process.env.CASTELLAN_TEST_LOGS
    if (logs !== undefined && fleet !== null)
      writeFileSync(logs, fleet.replicas.map((each) => `=== ${each.name}\n${each.log()}`).join(""))
    await fleet?.stop()
    for (const build of builds) build.remove()
  }
}
