import { expect, it } from "vitest"
import * as Build from "../../faults/support/Build.js"
import * as Fleet from "../../replicas/support/Fleet.js"
import * as Mixed from "../../replicas/support/Mixed.js"

const wallets = 12

/** `npm run bench:load` measures it at length. */
it("two replicas under mixed load for a minute answer every request, execute what they report, and keep their memory", async () => {
  const build = await Build.make()
  const fleet = await Fleet.start({ build, replicas: 2, wallets, signers: 2, name: "load" })
  try {
    const { executed, latencies, memory, refusals } = await Mixed.run(fleet, {
      callers: 10,
      seconds: 60,
      wallets,
      name: "load"
    })
    // A busy machine may not know an outcome in time; nothing else is refused.
    const known = /(outcome_unknown|hung up|503 unavailable)$/
    expect([...refusals.keys()].filter((what) => !known.test(what))).toEqual([])
    expect([...latencies.keys()].sort()).toEqual(
      ["/execute", ...Object.keys(fleet.reads), "/requests/{requestId}"].sort()
    )
    // Memory that grows with every request would double in the second half of a minute that begins with empty caches.
    for (const n of fleet.replicas.keys()) {
      const [half = 0, end = 0] = [memory.length / 2, memory.length - 1].map((at) => memory[at]?.[n] ?? 0)
      expect(half).toBeGreaterThan(0)
      expect(end).toBeLessThan(2 * half)
    }
    const counts: ReadonlyArray<bigint> = await fleet.world.counter.getFunction("counts")(executed)
    expect(counts.map(Number)).toEqual(executed.map(() => 1))
  } finally {
    await fleet.stop()
    build.remove()
  }
}, 400_000)
