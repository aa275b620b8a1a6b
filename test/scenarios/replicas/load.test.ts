import { expect, it } from "vitest"
import * as Build from "../../support/faults/Build.js"
import * as Fleet from "../../support/replicas/Fleet.js"
import * as Mixed from "../../support/replicas/Mixed.js"

const wallets = 12

/** `npm run bench:load` measures it at length. */
it("two replicas under mixed load answer every request, and execute what they say", async () => {
  const build = Build.make()
  const fleet = await Fleet.start({ build, replicas: 2, wallets, signers: 2, name: "load" })
  try {
    const { executed, latencies, refusals } = await Mixed.run(fleet, {
      callers: 10,
      seconds: 30,
      wallets,
      name: "load"
    })
    // A busy machine may not know an outcome in time; nothing else is refused.
    const known = /(outcome_unknown|hung up|503 unavailable)$/
    expect([...refusals.keys()].filter((what) => !known.test(what))).toEqual([])
    expect([...latencies.keys()].sort()).toEqual(
      ["/execute", ...Object.keys(fleet.reads), "/requests/{requestId}"].sort()
    )
    const counts: ReadonlyArray<bigint> = await fleet.world.counter.getFunction("counts")(executed)
    expect(counts.map(Number)).toEqual(executed.map(() => 1))
  } finally {
    await fleet.stop()
    build.remove()
  }
}, 400_000)
