import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as Journals from "../../support/journal/Journals.js"
import { options } from "../../support/journal/Layers.js"
import * as Build from "./Build.js"
import * as Judge from "./Judge.js"
import * as Scenario from "./Scenario.js"
import * as Seed from "./Seed.js"
import * as World from "./World.js"

export interface Options {
  readonly seeds: ReadonlyArray<number>
  /** Chains that run seeds in parallel. */
  readonly worlds: number
  /** Seeds on one chain before it is replaced: it keeps every state and grows. */
  readonly seedsPerWorld: number
  readonly print: (line: string) => void
  /** The service's logs and the clients' answers, of failing seeds. */
  readonly verbose: boolean
  /** The commit that each process runs until its first end. Default: this version. */
  readonly upgradeFrom?: string | undefined
}

export interface Summary {
  readonly reports: ReadonlyArray<Seed.Report>
  /** Seeds that did not run to their end, with the reason. */
  readonly broken: ReadonlyArray<string>
}

/** Methods of the journal, read from the journal itself. */
export const steps: Promise<ReadonlyArray<string>> = Effect.runPromise(
  Effect.map(Journals.all, (journal) => Object.keys(journal)).pipe(
    Effect.provide(SqlJournal.layer(options).pipe(Layer.provide(Sqlite.layer({ filename: ":memory:" }))))
  )
)

/** Most complaints printed of one seed. */
const mostShown = 20

const total = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((sum, count) => sum + count, 0)

/** All breaches after a seed, each with its kind. */
export const wrongIn = ({ verdict }: Seed.Report): ReadonlyArray<string> =>
  Judge.kinds.flatMap((kind) => verdict[kind].map((text) => `${kind}: ${text}`))

export const passed = ({ broken, reports }: Summary): boolean =>
  broken.length === 0 && reports.every((report) => wrongIn(report).length === 0)

const lineOf = (report: Seed.Report): string => {
  const { deaths, faults, restarts, scenario, seed, works } = report
  const bad = Judge.kinds.flatMap((kind) => {
    const { length } = report.verdict[kind]
    return length === 0 ? [] : [`${kind} ${length}`]
  })
  return [
    `seed ${seed}: done ${works.success}, refused ${works.failure}, faults ${total(faults)}, restarts ${restarts}`,
    bad.length === 0 ? "ok" : `WRONG: ${bad.join(", ")}`,
    `${scenario.store}, ${scenario.others.length + 1} processes, killed ${deaths.join("; ") || "never"}`
  ].join("; ")
}

/** The closing lines: injected faults and their results. */
export const summaryLines = ({ broken, reports }: Summary): ReadonlyArray<string> => {
  const sum = (of: (report: Seed.Report) => number) => reports.reduce((all, report) => all + of(report), 0)
  const happened = new Map<string, number>()
  for (const { deaths, events, faults } of reports)
    for (const [kind, count] of [
      ...faults,
      ...events,
      ...deaths.map((spot) => [`killed ${spot}`, 1] as const)
    ])
      happened.set(kind, (happened.get(kind) ?? 0) + count)
  return [
    `seeds ${reports.length + broken.length}, done ${sum(({ works }) => works.success)}, ` +
      `refused ${sum(({ works }) => works.failure)}, not on purpose ${sum(({ refused }) => refused.length)}, ` +
      `webhooks ${sum(({ messages }) => messages)}`,
    [...happened].map(([kind, count]) => `${kind} ${count}`).join(", "),
    ...Judge.kinds.map((kind) => `${kind} ${sum(({ verdict }) => verdict[kind].length)}`),
    `seeds that did not end ${broken.length}`
  ]
}

/** Runs seeds and prints a line for each. */
export const run = async (options: Options): Promise<Summary> => {
  const { print, seeds, seedsPerWorld, upgradeFrom, verbose, worlds } = options
  const earlier = upgradeFrom === undefined ? undefined : await Build.ofCommit(upgradeFrom)
  const newest = await Build.make()
  const build = earlier === undefined ? newest : { ...newest, earlier: earlier.main }
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
    earlier?.remove()
  }
  return { reports, broken }
}
