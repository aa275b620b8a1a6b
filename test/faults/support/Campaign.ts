import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as Sqlite from "../../../src/adapters/sql/Sqlite.js"
import * as Journals from "../../support/journal/Journals.js"
import { options } from "../../support/journal/Layers.js"
import * as Build from "./Build.js"
import * as Judge from "./Judge.js"
import * as Scenario from "./Scenario.js"
import * as Seed from "./Seed.js"
import * as World from "./World.js"

export interface Options {
  readonly seeds: ReadonlyArray<number>
  /** Chains that run seeds beside each other. */
  readonly worlds: number
  /** Seeds on one chain before it is replaced: it keeps every state and grows. */
  readonly seedsPerWorld: number
  readonly print: (line: string) => void
  /** The service's logs and what the clients met, of failing seeds. */
  readonly verbose: boolean
}

/** What all seeds together came to. */
export interface Summary {
  /** Methods of the journal. */
  readonly steps: ReadonlyArray<string>
  readonly reports: ReadonlyArray<Seed.Report>
  /** Seeds that did not even run to their end, with the reason. */
  readonly broken: ReadonlyArray<string>
  readonly millis: number
}

/** Methods of the journal: those that it has, not those that somebody wrote down. */
export const steps: Promise<ReadonlyArray<string>> = Effect.runPromise(
  Effect.map(Journals.all, (journal) => Object.keys(journal)).pipe(
    Effect.provide(SqlJournal.layer(options).pipe(Layer.provide(Sqlite.layer({ filename: ":memory:" }))))
  )
)

/** Most complaints printed of one seed. */
const mostShown = 20

const add = (into: Map<string, number>, from: ReadonlyMap<string, number>) => {
  for (const [kind, count] of from) into.set(kind, (into.get(kind) ?? 0) + count)
}

const texts = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([kind, count]) => `${kind} ${count}`)
    .join(", ")

const total = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((sum, count) => sum + count, 0)

const tallied = (list: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const text of list) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}

/** All that is wrong after a seed, each with its kind. */
export const wrongIn = ({ verdict }: Seed.Report): ReadonlyArray<string> =>
  Judge.kinds.flatMap((kind) => verdict[kind].map((text) => `${kind}: ${text}`))

export const passed = ({ broken, reports }: Summary): boolean =>
  broken.length === 0 && reports.every((report) => wrongIn(report).length === 0)

const lineOf = (report: Seed.Report): string => {
  const { deaths, faults, millis, restarts, scenario, seed, works } = report
  const { events, mining, nodeReplacedAt, others, outages, remote, settledDepth, store, version } = scenario
  const around = [
    store,
    ...(others.length > 0 ? [`${others.length + 1} processes`] : []),
    version,
    ...(remote ? ["remote"] : []),
    ...outages.map(({ how }) => how),
    ...(nodeReplacedAt === null ? [] : ["node replaced"]),
    ...(events.some((event) => event.kind === "reorg" && event.depth >= settledDepth) ? ["deep reorg"] : [])
  ]
  const wrong = wrongIn(report)
  const bad = Judge.kinds
    .filter((kind) => report.verdict[kind].length > 0)
    .map((kind) => `${kind} ${report.verdict[kind].length}`)
  return [
    `seed ${String(seed).padStart(4)}`,
    mining.mode.padEnd(8),
    `done ${works.success} refused ${works.failure}`.padEnd(19),
    `faults ${total(faults)}`.padEnd(10),
    `restarts ${restarts}`,
    `${(millis / 1_000).toFixed(1)} s`.padStart(7),
    wrong.length === 0 ? "ok" : `WRONG: ${bad.join(", ")}`,
    `(${around.join(", ")})`,
    deaths.length === 0 ? "" : `(killed ${deaths.join("; ")})`
  ].join("  ")
}

/** The lines at the end: what was thrown at the service, and what became of it. */
export const summaryLines = ({ broken, millis, reports, steps }: Summary): ReadonlyArray<string> => {
  const [faults, events] = [new Map<string, number>(), new Map<string, number>()]
  for (const report of reports) {
    add(faults, report.faults)
    add(events, report.events)
  }
  const sum = (of: (report: Seed.Report) => number) => reports.reduce((all, report) => all + of(report), 0)
  const deaths = tallied(reports.flatMap((report) => report.deaths))
  const missed = [...steps, "send"]
    .flatMap((step) => [`before ${step}`, `after ${step}`])
    .filter((spot) => !deaths.has(spot))
  return [
    `seeds ${reports.length + broken.length}, operations ${sum(({ works }) => works.success + works.failure + works.nothing)} ` +
      `(done ${sum(({ works }) => works.success)}, refused ${sum(({ works }) => works.failure)}, ` +
      `of these not on purpose ${sum(({ refused }) => refused.length)}), restarts ${sum(({ restarts }) => restarts)}`,
    `faults ${total(faults)}: ${texts(faults)}`,
    `besides: ${texts(events)}`,
    `surroundings: ${texts(tallied(reports.flatMap(({ scenario: { others, remote, store, version } }) => [store, version, ...(remote ? ["remote bundler"] : []), ...(others.length > 0 ? ["two processes"] : [])])))}`,
    `killed: ${texts(deaths)}`,
    `never killed: ${missed.join(", ") || "nowhere"}`,
    `webhooks sent ${sum(({ messages }) => messages)}`,
    ...Judge.kinds.map((kind) => `${kind} ${sum(({ verdict }) => verdict[kind].length)}`),
    `seeds that did not end ${broken.length}`,
    `${(millis / 1_000).toFixed(0)} s`
  ]
}

/** Runs seeds and prints a line for each. */
export const run = async ({ print, seeds, seedsPerWorld, verbose, worlds }: Options): Promise<Summary> => {
  const began = Date.now()
  const build = await Build.make()
  const names = await steps
  const reports: Array<Seed.Report> = []
  const broken: Array<string> = []
  const left = [...seeds]
  const worker = async () => {
    while (left.length > 0) {
      const world = await World.start()
      try {
        for (let n = 0; n < seedsPerWorld; n += 1) {
          const seed = left.shift()
          if (seed === undefined) break
          try {
            const report = await Seed.run(world, build, Scenario.make(seed, names))
            reports.push(report)
            print(lineOf(report))
            for (const wrong of wrongIn(report).slice(0, mostShown)) print(`    ${wrong}`)
            if (verbose)
              for (const line of [JSON.stringify(report.scenario), ...report.met, report.log]) print(line)
          } catch (error) {
            broken.push(`seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`)
            print(`seed ${String(seed).padStart(4)}  BROKEN  ${broken.at(-1)}`)
            break
          }
        }
      } finally {
        await world.stop()
      }
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.min(worlds, seeds.length) }, worker))
  } finally {
    build.remove()
  }
  return { steps: names, reports, broken, millis: Date.now() - began }
}
