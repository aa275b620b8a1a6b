import { join } from "node:path"
import { id as hashOf } from "ethers"
import { describe, expect, it } from "vitest"
import * as Random from "../../faults/support/Random.js"
import * as Ground from "../../replicas/support/Ground.js"
import * as Rig from "../../replicas/support/Rig.js"

const { folder, freshUrl, rigOn, world } = Ground.perFile()

/** `npm run test:faults` has the large one. */
const operations = process.env.CASTELLAN_TEST_LONG === undefined ? 60 : 200

describe("two services on one PostgreSQL database", { timeout: 400_000 }, () => {
  it(`execute each of ${operations} operations once, at whichever of them, while one is replaced by a third`, async () => {
    const rig = await rigOn({ url: await freshUrl() })
    const first = await rig.begin(Rig.slowSigner)
    const second = await rig.begin(Rig.slowSigner)
    await rig.prepare(first)
    const random = Random.make("two services")
    let serving: ReadonlyArray<Rig.Running> = [first, second]
    const ids = Array.from({ length: operations }, (_, n) => hashOf(`two services ${n}`))
    let done = 0
    const met = new Map<string, number>()
    const hear = (answer: Rig.Answer | null) => {
      const what = answer === null ? "no answer" : `${answer.status} ${answer.body.code ?? ""}`
      met.set(what, (met.get(what) ?? 0) + 1)
    }
    const began = performance.now()
    const executed = ids.map(async (id, n) => {
      const answer = await rig.insist(
        () => random.pick(serving),
        "/execute",
        `hit-${n}`,
        rig.hit(n, id),
        hear
      )
      done += 1
      return answer
    })
    await expect.poll(() => done, { timeout: 150_000 }).toBeGreaterThan(operations / 6)
    const third = await rig.begin(Rig.slowSigner)
    serving = [second, third]
    await rig.end(first)
    const answers = await Promise.all(executed)
    const seconds = (performance.now() - began) / 1_000
    const counts = await Promise.all(ids.map(rig.count))
    const once = counts.filter((count) => count === 1).length
    const transactions = await rig.transactions()
    console.log(
      `${operations} operations in ${seconds.toFixed(1)} s and ${transactions} transactions: executed once ${once}, ` +
        `never ${counts.filter((count) => count === 0).length}, more often ${counts.filter((count) => count > 1).length}; ` +
        `answers: ${[...met].map(([what, count]) => `${what.trim()} ${count}`).join(", ")}`
    )
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: { status: 1 } })
    expect(counts).toEqual(ids.map(() => 1))
    // A success, or an answer that allows a repeat.
    for (const what of met.keys())
      expect([
        "200 ",
        "422 outcome_unknown",
        "503 unavailable",
        "503 shutting_down",
        "503 overloaded",
        "no answer"
      ]).toContain(what)
    await expect.poll(rig.open, { timeout: 20_000 }).toEqual([])
  })

  it("with other keys leave each other's requests alone", async () => {
    const url = await freshUrl()
    const [mine, theirs] = [await rigOn({ url }), await rigOn({ url })]
    const first = await mine.begin()
    const other = await theirs.begin()
    await mine.prepare(first)
    await theirs.prepare(other)
    const [own, foreign] = [hashOf("own"), hashOf("foreign")]
    await world().send("evm_setAutomine", false)
    const pending = mine.exchange(first, "/execute", "pending", mine.hit(0, own))
    await expect.poll(mine.pooled, { timeout: 20_000 }).toBeGreaterThan(0)
    await mine.end(first)
    expect((await pending).body.code).toBe("outcome_unknown")
    await world().send("evm_setAutomine", true)
    await world().send("evm_mine")
    // Long after its sweeps saw the transaction.
    for (const n of [1, 2, 3])
      expect(
        (await theirs.insist(() => other, "/execute", `foreign-${n}`, theirs.hit(n, hashOf(`foreign ${n}`))))
          .body
      ).toMatchObject({ status: 1 })
    // Now the only service, the other one has finished the transactions on their way; the remaining work needs the key.
    const transactions = async () => (await mine.open()).filter((text) => text.startsWith("transaction"))
    await expect.poll(transactions, { timeout: 60_000 }).toEqual([])
    const again = await mine.begin()
    expect(await mine.insist(() => again, "/execute", "pending", mine.hit(0, own))).toMatchObject({
      status: 200,
      body: { status: 1 }
    })
    expect([await mine.count(own), await theirs.count(foreign)]).toEqual([1, 0])
  })
})

describe("two services on one file of SQLite", { timeout: 120_000 }, () => {
  it("are one: the second does not start, reports the cause, and starts once the first has ended", async () => {
    const rig = await rigOn({ path: join(folder, "one.sqlite") })
    const first = await rig.begin()
    await expect(rig.begin()).rejects.toThrow(/another process uses the database file .*one\.sqlite/)
    await rig.prepare(first)
    await rig.end(first)
    const second = await rig.begin()
    const id = hashOf("after the first")
    expect(await rig.insist(() => second, "/execute", "hit", rig.hit(0, id))).toMatchObject({ status: 200 })
    expect(await rig.count(id)).toBe(1)
  })
})
