import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, afterEach } from "vitest"
import * as World from "../../faults/support/World.js"
import * as Postgres from "../../support/postgres/Postgres.js"
import { use } from "../../support/Use.js"
import * as Rig from "./Rig.js"

/** The base of one test file's services: a chain, a PostgreSQL and a folder. */
export interface Ground {
  readonly folder: string
  readonly world: () => World.World
  readonly freshUrl: () => Promise<string>
  /**
   * A rig on a database; its services end with the test. `others`: tenants in addition to its own, with the same
   * signer.
   */
  readonly rigOn: (
    database: Rig.Database,
    profile?: Partial<World.Profile>,
    others?: ReadonlyArray<World.Tenant>
  ) => Promise<Rig.Rig>
}

/** After each test the chain mines automatically, and no service of the test runs. */
export const perFile = (): Ground => {
  const databases = Postgres.perFile()
  const folder = mkdtempSync(join(tmpdir(), "castellan-replicas-"))
  const rigs: Array<Rig.Rig> = []
  const world = use(World.start)
  afterEach(async () => {
    await world.send("evm_setAutomine", true)
    await Promise.all(rigs.splice(0).map(({ endAll }) => endAll()))
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true })
  })
  return {
    folder,
    world: () => world,
    freshUrl: async () => Redacted.value((await Effect.runPromise(databases.fresh)).url),
    rigOn: async (database, profile, others) => {
      const rig = await Rig.make(world, folder, database, profile, others)
      rigs.push(rig)
      return rig
    }
  }
}
