import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { id as hashOf } from "ethers"
import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import * as World from "../../faults/support/World.js"
import * as Rig from "../../replicas/support/Rig.js"
import * as Postgres from "../../support/postgres/Postgres.js"
import * as CommandLine from "../../support/process/CommandLine.js"
import { use } from "../../support/Use.js"

const databases = Postgres.perFile()
const folder = mkdtempSync(join(tmpdir(), "castellan-copy-"))
const world = use(World.start)
let rig: Rig.Rig

beforeAll(async () => {
  rig = await Rig.make(world, folder, { path: join(folder, "old.sqlite") })
})
afterEach(async () => {
  await rig.endAll()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
})

const freshUrl = async (): Promise<string> => {
  const address = await Effect.runPromise(databases.fresh)
  return "url" in address ? Redacted.value(address.url) : ""
}

const fileOf = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** The command's output so far, without its result. */
let told = ""

/** `castellan store copy`, from the rig's file to this database. */
const copy = (url: string): Promise<string> =>
  Effect.runPromise(
    Effect.catch(
      CommandLine.heard(["store", "copy", fileOf("new.json", rig.file({ url }))], {
        CASTELLAN_CONFIG: fileOf("old.json", rig.file())
      }).pipe(
        Effect.map(({ stderr, stdout }) => {
          told += stderr
          return stdout
        })
      ),
      Effect.succeed
    )
  )

it("a service on a copy of its database in PostgreSQL resumes work under way, and knows finished work", async () => {
  const [done, pending, later] = [hashOf("done"), hashOf("pending"), hashOf("later")]
  const url = await freshUrl()
  const old = await rig.begin()
  await rig.prepare(old)
  const before = await rig.insist(() => old, "/execute", "done", rig.hit(0, done))
  expect(before).toMatchObject({ status: 200, body: { status: 1 } })
  expect(await copy(url)).toMatch(/another process uses the database file/)

  await world.send("evm_setAutomine", false)
  const waiting = rig.exchange(old, "/execute", "pending", rig.hit(1, pending))
  await expect.poll(rig.pooled, { timeout: 20_000 }).toBe(1)
  await rig.end(old)
  expect((await waiting).body.code).toBe("outcome_unknown")
  expect(await copy(url)).toMatch(/^\d+ rows of \d+ tables are copied, and counted in both/)
  expect(told).toMatch(/^requests: \d+ rows$/m)

  const other = await rig.begin({}, world.chain.url, { url })
  // Its trace in the old database is the only one: no process sends it again.
  const answered = rig.insist(() => other, "/execute", "pending", rig.hit(1, pending))
  await world.send("evm_setAutomine", true)
  await world.send("evm_mine")
  expect(await answered).toMatchObject({ status: 200, body: { status: 1 } })
  expect((await rig.insist(() => other, "/execute", "done", rig.hit(0, done))).body).toEqual(before.body)
  const next = await rig.insist(() => other, "/execute", "later", rig.hit(2, later))
  expect(next).toMatchObject({ status: 200, body: { status: 1 } })
  expect(await Promise.all([done, pending, later].map(rig.count))).toEqual([1, 1, 1])
  await rig.end(other)
  expect(await copy(url)).toMatch(/the other database is not empty/)
}, 180_000)

it("a database that cannot be copied is refused before any copying", async () => {
  expect(await copy("postgres://nobody@127.0.0.1:1/none")).toMatch(/cannot use the PostgreSQL server/)
  const env = { CASTELLAN_CONFIG: fileOf("old.json", rig.file()) }
  const run = (text: string) =>
    Effect.runPromise(
      Effect.catch(CommandLine.run(["store", "copy", fileOf("other.json", text)], env), Effect.succeed)
    )
  expect(await run(rig.file())).toMatch(/is one of PostgreSQL/)
  const other = JSON.parse(rig.file({ url: await freshUrl() }))
  expect(await run(JSON.stringify({ ...other, keyPepper: "another pepper, as long" }))).toMatch(/keyPepper/)
})
