import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure } from "../harness/Claim.js"
import { closedLoop } from "../harness/Client.js"
import * as Database from "../harness/Database.js"
import * as Processes from "../harness/Processes.js"
import * as Rivals from "../harness/Rivals.js"
import { alternate, figure, median, quantile, ratio } from "../harness/Stats.js"
import * as Wallets from "../harness/Wallets.js"
import * as World from "../harness/World.js"

/** 40 callers in a closed loop, an ERC-20 transfer per request, 40 wallets, one signer, a block per transaction. */

const callers = 40

interface Sample {
  readonly perSecond: number
  /** CPU of the service per op, in ms; for `raw`, of the signing client. */
  readonly cpuMillis: number
  /** Average ops per transaction, for castellan. */
  readonly perTransaction: number | null
  readonly p50: number
  readonly p95: number
}

const sampleOf = (
  ops: number,
  seconds: number,
  cpu: number,
  latencies: ReadonlyArray<number>,
  transactions: number | null = null
): Sample => ({
  perTransaction: transactions === null ? null : ops / transactions,
  perSecond: ops / seconds,
  cpuMillis: cpu / ops,
  p50: quantile(latencies, 0.5),
  p95: quantile(latencies, 0.95)
})

export const claim: Claim = {
  name: "callers",
  title: "40 parallel callers, one ERC-20 transfer a request",
  boundSeconds: 300,
  run: async (context) => {
    const world = await World.start(context)
    const castellan = await Castellan.start(context, world, {
      accounts: 1,
      limits: Castellan.unbound,
      profile: "callers"
    })
    const salts = Array.from({ length: callers }, (_, n) => `caller ${n}`)
    await Wallets.create(world, castellan, salts)

    const own = (millis: number, most: number) => async (): Promise<Sample> => {
      const to = Wallets.recipient()
      const cpu = Processes.cpuMillis(castellan.pid)
      const sent = Database.transactions(castellan.database)
      const load = await closedLoop({ callers, millis, most }, async (caller) => {
        await Wallets.execute(world, castellan, [salts[caller] ?? ""], to)
      })
      const used = Processes.cpuMillis(castellan.pid) - cpu
      const arrived = await world.balance(to)
      ensure(arrived === load.done, `${arrived} transfers arrived of ${load.done}`)
      const transactions = Database.transactions(castellan.database) - sent
      return sampleOf(load.done, load.seconds, used, load.latencies, transactions)
    }
    const most = context.size(Number.MAX_SAFE_INTEGER, 40)
    // Warms the JIT up: the first ops are slower for every contender.
    if (!context.quick) await own(20_000, 1_500)()
    if (!context.peers) {
      const castellans = [await own(context.size(8_000, 20_000), most)()]
      return { rows: rowsOf(castellans, [], []), notes, raw: { castellan: castellans } }
    }

    const raw = await Rivals.raw(context, callers)
    const alto = await Rivals.alto(context, callers)
    const rawRun = async (): Promise<Sample> => {
      const found = await raw.run({ perTransaction: 10, millis: 4_000, readNonces: false })
      return sampleOf(found.ops, found.seconds, found.cpuMillis, found.latencies)
    }
    const altoRun = async (): Promise<Sample> => {
      alto.resume()
      const found = await alto.run({ callers, millis: 8_000 })
      alto.pause()
      return sampleOf(found.ops, found.seconds, found.altoCpuMillis, found.latencies)
    }
    await rawRun()
    const samples = await alternate(context.rounds, {
      castellan: own(8_000, most),
      raw: rawRun,
      alto: altoRun
    })
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
    median(samples.map((sample) => sample[key] ?? Number.NaN))
  const [own, theirs, bundler] = [castellan, raw, alto].map((samples) => of(samples, "perSecond")) as [
    number,
    number,
    number
  ]
  const measured = raw.length > 0
  const against = (text: string) => (measured ? text : "not measured")
  return [
    {
      what: "ops a second, against permissionless and alto",
      castellan: `${figure(own)}/s`,
      against: against(`${figure(bundler)}/s`),
      ratio: measured ? ratio(own / bundler) : "-",
      demand: "at least 10 x",
      met: measured ? own / bundler >= 10 : null
    },
    {
      what: "ops a second, against viem alone with 10 a transaction",
      castellan: `${figure(own)}/s`,
      against: against(`${figure(theirs)}/s`),
      ratio: measured ? ratio(own / theirs) : "-",
      demand: "at least 0.6 x",
      met: measured ? own / theirs >= 0.6 : null
    },
    {
      what: "CPU of the service an op",
      castellan: `${figure(of(castellan, "cpuMillis"))} ms`,
      against: against(
        `alto ${figure(of(alto, "cpuMillis"))} ms, viem's client ${figure(of(raw, "cpuMillis"))} ms`
      ),
      ratio: measured ? ratio(of(castellan, "cpuMillis") / of(alto, "cpuMillis")) : "-",
      demand: "at most 3 ms",
      met: of(castellan, "cpuMillis") <= 3
    },
    {
      what: "ops in a transaction, on the average",
      castellan: figure(of(castellan, "perTransaction")),
      against: "-",
      ratio: "-",
      demand: "-",
      met: null
    },
    {
      what: "from a request to its answer, p50 and p95",
      castellan: `${figure(of(castellan, "p50"))} and ${figure(of(castellan, "p95"))} ms`,
      against: against(`alto ${figure(of(alto, "p50"))} and ${figure(of(alto, "p95"))} ms`),
      ratio: measured ? ratio(of(castellan, "p50") / of(alto, "p50")) : "-",
      demand: "-",
      met: null
    }
  ]
}

const notes = [
  "Every op is checked on the chain: the recipient holds as many tokens as requests were answered with success.",
  "All callers are those of one account, whose own limits do not bind: ops of an account share transactions. castellan is measured after 1,500 ops: while functions are still compiled, an op costs half as much again.",
  "The service is a separate process with SQLite on disk, API keys, rate limits and a log line a request. alto runs with its defaults and without the rules of ERC-7562, which anvil cannot trace. It is stopped during the other measurements. viem without a service signs ops with fixed gas, keeps nonces itself, simulates nothing and stores nothing."
]
