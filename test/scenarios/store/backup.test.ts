import { copyFileSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterAll, describe, expect, it } from "vitest"
import * as World from "../../faults/support/World.js"
import * as Rig from "../../replicas/support/Rig.js"
import * as Programs from "../../support/postgres/Programs.js"
import * as Server from "../../support/postgres/Server.js"
import * as Finished from "../../support/process/Finished.js"
import { use } from "../../support/Use.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-backup-"))
const world = use(World.start)
const server = use(Server.start)

afterAll(async () => {
  rmSync(folder, { recursive: true })
})

/** A database, with its backup and restore as docs/operations.md describes them. */
interface Kept {
  readonly database: Rig.Database
  readonly save: () => Promise<void>
  readonly restore: () => Promise<Rig.Database>
}

/** The client's programs are in the server's folder, which the PATH may have by a link. */
const program = async (name: string, ...args: ReadonlyArray<string>) => {
  const beside = dirname(realpathSync(join(Programs.folder() ?? "", "postgres")))
  const { status, stderr } = await Finished.finished(join(beside, name), args, folder)
  if (status !== 0) throw new Error(stderr)
}

const stores: Readonly<Record<string, () => Promise<Kept>>> = {
  SQLite: async () => {
    const [path, saved] = [join(folder, "live.sqlite"), join(folder, "saved.sqlite")]
    return {
      database: { path },
      save: async () => {
        const live = new DatabaseSync(path, { timeout: 5_000 })
        live.exec(`vacuum into '${saved}'`)
        live.close()
      },
      restore: async () => {
        for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true })
        copyFileSync(saved, path)
        return { path }
      }
    }
  },
  PostgreSQL: async () => {
    const url = await Effect.runPromise(Server.createDatabase(server, "live"))
    const saved = join(folder, "saved.dump")
    return {
      database: { url },
      save: () => program("pg_dump", "--format=custom", `--file=${saved}`, `--dbname=${url}`),
      restore: async () => {
        const empty = await Effect.runPromise(Server.createDatabase(server, "restored"))
        await program("pg_restore", "--exit-on-error", `--dbname=${empty}`, saved)
        return { url: empty }
      }
    }
  }
}

describe.each(Object.keys(stores))("an old backup of %s", (kind) => {
  it("is compared with the chain: no nonce is reused, known work is not repeated, and new work continues", async () => {
    const kept = await stores[kind]?.()
    if (kept === undefined) throw new Error("no such store")
    const rig = await Rig.make(world, folder, kept.database)
    const ids = ["before", "under way", "after", "new"].map((name) => hashOf(`${kind} ${name}`))
    const [before = "", underWay = "", after = "", fresh = ""] = ids
    try {
      const first = await rig.begin()
      await rig.prepare(first)
      const known = await rig.insist(() => first, "/execute", "before", rig.hit(0, before))
      expect(known).toMatchObject({ status: 200, body: { status: 1 } })

      // In the backup it is signed and sent, without its outcome.
      await world.send("evm_setAutomine", false)
      const sent = rig.exchange(first, "/execute", "under-way", rig.hit(1, underWay))
      await expect.poll(rig.pooled, { timeout: 20_000 }).toBe(1)
      await kept.save()
      await world.send("evm_setAutomine", true)
      await world.send("evm_mine")
      expect(await sent).toMatchObject({ status: 200, body: { status: 1 } })
      for (const n of [2, 3, 4])
        expect(
          await rig.insist(
            () => first,
            "/execute",
            `after-${n}`,
            rig.hit(n, n === 2 ? after : hashOf(`${kind} ${n}`))
          )
        ).toMatchObject({ status: 200, body: { status: 1 } })
      const transactions = await rig.transactions()
      await rig.end(first)

      const at = await kept.restore()
      const second = await rig.begin({}, world.chain.url, at)
      const again = (key: string, n: number, id: string) =>
        rig.insist(() => second, "/execute", key, rig.hit(n, id))
      const next = await again("new", 5, fresh)
      expect(next).toMatchObject({ status: 200, body: { status: 1 } })
      expect((await again("before", 0, before)).body).toEqual(known.body)
      expect(await again("under-way", 1, underWay)).toMatchObject({ status: 200, body: { status: 1 } })
      // One transaction for the new work, at the chain's next nonce, and no other one.
      expect(await rig.transactions()).toBe(transactions + 1)
      expect(await Promise.all(ids.map(rig.count))).toEqual([1, 1, 1, 1])
    } finally {
      await rig.endAll()
      await world.send("evm_setAutomine", true)
    }
  }, 180_000)
})
