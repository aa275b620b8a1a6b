import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure, type Row } from "../harness/Claim.js"
import { closedLoop } from "../harness/Client.js"
import * as Database from "../harness/Database.js"
import * as Disk from "../harness/Disk.js"
import { figure } from "../harness/Stats.js"
import * as Wallets from "../harness/Wallets.js"
import * as World from "../harness/World.js"

/** Cost of an op in the journal, with one caller and with 40: statements, fsyncs, bytes. */

const callers = 40

interface Sample {
  readonly ops: number
  readonly statements: Disk.Statements
  /** Growth of the database, in bytes per op. */
  readonly kept: number
  /** Null without strace. */
  readonly disk: Disk.Writes | null
}

export const claim: Claim = {
  name: "journal",
  title: "Journal cost of an op",
  boundSeconds: 240,
  run: async (context) => {
    const world = await World.start(context)
    const counts = Disk.counted(context)
    const options = { accounts: 1, limits: Castellan.unbound, nodeArgs: counts.nodeArgs, env: counts.env }
    const castellan = await Castellan.start(context, world, options)
    const salts = Array.from({ length: callers }, (_, n) => `journal ${n}`)
    await Wallets.create(world, castellan, salts)

    const ops = async (at: number, most: number): Promise<number> => {
      const to = Wallets.recipient()
      const load = await closedLoop({ callers: at, millis: 60_000, most }, async (caller) => {
        await Wallets.execute(world, castellan, [salts[caller] ?? ""], to)
      })
      ensure((await world.balance(to)) === load.done, "not every transfer arrived once")
      return load.done
    }
    const strace = Disk.traceable()
    const sample = async (at: number, most: number): Promise<Sample> => {
      const before = await counts.read()
      const size = Database.bytes(castellan.database)
      const done = await ops(at, most)
      const kept = (Database.bytes(castellan.database) - size) / done
      const statements = Disk.minus(await counts.read(), before)
      let traced = 0
      const disk = strace
        ? await Disk.traced(castellan.pid, castellan.database, async () => {
            traced = await ops(at, most)
          })
        : null
      return {
        ops: done,
        statements,
        kept,
        disk: disk === null ? null : { fsyncs: disk.fsyncs / traced, bytes: disk.bytes / traced }
      }
    }
    await ops(callers, context.size(400, 40))
    const alone = await sample(1, context.size(60, 3))
    const together = await sample(callers, context.size(800, 40))
    ensure(alone.statements.writes > 0, "no statement was counted")
    return {
      rows: [...rowsOf("sequential", alone, null), ...rowsOf("at 40 callers", together, 0.2)],
      notes: [
        "A module loaded before the service counts statements at node:sqlite. In a separate run, strace counts fsyncs and bytes for the files of the database: the write-ahead log, and pages moved from it into the database.",
        ...(strace ? [] : ["This machine has no strace: fsyncs and bytes are not known."])
      ],
      raw: { alone, together }
    }
  }
}

const rowsOf = (
  when: string,
  { disk, kept, ops, statements }: Sample,
  fsyncDemand: number | null
): ReadonlyArray<Row> => {
  const each = (value: number) => figure(value / ops)
  const row = (what: string, castellan: string, demand: string, met: boolean | null): Row => ({
    what: `${what} an op, ${when}`,
    castellan,
    against: "-",
    ratio: "-",
    demand,
    met
  })
  const { commits, reads, writes } = statements
  const sizes =
    disk === null
      ? []
      : [
          row(
            "fsyncs",
            figure(disk.fsyncs),
            fsyncDemand === null ? "-" : `at most ${fsyncDemand}`,
            fsyncDemand === null ? null : disk.fsyncs <= fsyncDemand
          ),
          row("bytes written to disk", `${figure(disk.bytes / 1_000)} kB`, "-", null)
        ]
  return [
    row("statements", `${each(writes)} writes, ${each(reads)} reads, ${each(commits)} commits`, "-", null),
    ...sizes,
    row("bytes by which the database grows,", `${figure(kept / 1_000)} kB`, "at most 3 kB", kept <= 3_000)
  ]
}
