import { expect, it } from "vitest"
import * as Faults from "../../replicas/support/Faults.js"
import * as Proof from "../../replicas/support/Proof.js"
import * as Verdict from "../../replicas/support/Verdict.js"

/** A rolling restart on a loaded machine: an op takes longer than a replica's end, or its client, waits. */
const byWaiting = /^a client of the rolling restart met: (hung up|422 outcome_unknown)$/

/** A short form of `npm run test:replicas`, which has more ops and longer faults. */
it("three replicas execute every op once and report it, whichever of them dies, hangs or is cut off", async () => {
  const { met, rolling, takeOvers, verdict } = await Proof.run({
    ops: 120,
    wallets: 24,
    clients: 16,
    seed: "1",
    durations: Faults.short,
    limitMillis: 900_000,
    print: (line) => console.log(line)
  })
  // A loaded machine may take longer than a request waits: a request refused then is not executed either.
  const breaches = verdict.breaches.filter((breach) => !byWaiting.test(breach))
  for (const kind of Verdict.kinds)
    if (kind !== "refused") {
      const found = { ...verdict, breaches }[kind]
      expect(found, `${kind}: ${found.join("; ")}`).toEqual([])
    }
  expect(verdict.refused.length).toBeLessThan(30)
  // Another replica continued with the lanes of every client's op.
  expect(takeOvers.map(({ millis }) => millis === null)).toEqual([false, false, false])
  // A replaced replica answers its open requests, and temporarily refuses new ones.
  expect([...rolling.keys()]).not.toContain("connection lost")
  // A run without faults would prove nothing.
  expect(met.get("503 unavailable") ?? 0).toBeGreaterThan(0)
}, 1_500_000)
