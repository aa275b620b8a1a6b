import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure } from "../harness/Claim.js"
import { closedLoop } from "../harness/Client.js"
import * as Processes from "../harness/Processes.js"
import * as Rivals from "../harness/Rivals.js"
import { alternate, figure, median, ratio } from "../harness/Stats.js"
import * as Wallets from "../harness/Wallets.js"
import * as World from "../harness/World.js"

/** One `/execute` with one op at a time, on an idle service. */

interface Sample {
  readonly p50: number
  readonly cpuMillis: number
}

export const claim: Claim = {
  name: "alone",
  title: "One execute alone",
  boundSeconds: 240,
  run: async (context) => {
    const world = await World.start(context)
    const castellan = await Castellan.start(context, world, { accounts: 10, profile: "alone" })
    await Wallets.create(world, castellan, ["alone"])
    const own = (most: number) => async (): Promise<Sample> => {
      const to = Wallets.recipient()
      const cpu = Processes.cpuMillis(castellan.pid)
      const load = await closedLoop({ callers: 1, millis: 30_000, most }, async () => {
        await Wallets.execute(world, castellan, ["alone"], to)
      })
      const cpuMillis = (Processes.cpuMillis(castellan.pid) - cpu) / load.done
      ensure((await world.balance(to)) === load.done, "not every transfer arrived once")
      return { p50: median(load.latencies), cpuMillis }
    }
    if (!context.quick) await own(100)()
    if (!context.peers) {
      const castellans = [await own(context.size(100, 5))()]
      return { rows: rowsOf(castellans, [], []), notes: [], raw: { castellan: castellans } }
    }
    const raw = await Rivals.raw(context, 1)
    const alto = await Rivals.alto(context, 1)
    const rawRun = async (): Promise<Sample> => {
      const found = await raw.run({ perTransaction: 1, millis: 30_000, most: 100, readNonces: true })
      return { p50: median(found.latencies), cpuMillis: found.cpuMillis / found.ops }
    }
    const altoRun = async (): Promise<Sample> => {
      alto.resume()
      const found = await alto.run({ callers: 1, millis: 30_000, most: 30 })
      alto.pause()
      return { p50: median(found.latencies), cpuMillis: found.altoCpuMillis / found.ops }
    }
    await rawRun()
    const samples = await alternate(context.rounds, { castellan: own(100), raw: rawRun, alto: altoRun })
    alto.resume()
    await castellan.stop()
    return { rows: rowsOf(samples.castellan, samples.raw, samples.alto), notes, raw: samples }
  }
}

const rowsOf = (
  castellan: ReadonlyArray<Sample>,
  raw: ReadonlyArray<Sample>,
  alto: ReadonlyArray<Sample>
) => {
  const of = (samples: ReadonlyArray<Sample>, key: keyof Sample) =>
    median(samples.map((sample) => sample[key]))
  const measured = raw.length > 0
  const p50 = of(castellan, "p50")
  const cpu = of(castellan, "cpuMillis")
  return [
    {
      what: "p50, against viem alone with one op a transaction",
      castellan: `${figure(p50)} ms`,
      against: measured ? `${figure(of(raw, "p50"))} ms` : "not measured",
      ratio: measured ? ratio(p50 / of(raw, "p50")) : "-",
      demand: "at most 2.0 x",
      met: measured ? p50 / of(raw, "p50") <= 2 : null
    },
    {
      what: "p50, against permissionless and alto",
      castellan: `${figure(p50)} ms`,
      against: measured ? `${figure(of(alto, "p50"))} ms` : "not measured",
      ratio: measured ? ratio(p50 / of(alto, "p50")) : "-",
      demand: "-",
      met: null
    },
    {
      what: "CPU of the service an op",
      castellan: `${figure(cpu)} ms`,
      against: measured
        ? `viem's client ${figure(of(raw, "cpuMillis"))} ms, alto ${figure(of(alto, "cpuMillis"))} ms`
        : "not measured",
      ratio: measured ? ratio(cpu / of(raw, "cpuMillis")) : "-",
      demand: "at most 8 ms",
      met: cpu <= 8
    }
  ]
}

const notes = [
  "100 requests a round, one after the other. viem alone reads the wallet's nonce, signs, sends and asks for the receipt: three calls."
]
