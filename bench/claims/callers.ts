import * as Effect from "effect/Effect"
import { Wallet } from "ethers"
import * as Programs from "../../test/support/postgres/Programs.js"
import * as Server from "../../test/support/postgres/Server.js"
import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure } from "../harness/Claim.js"
import { closedLoop } from "../harness/Client.js"
import type { Context } from "../harness/Context.js"
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
  boundSeconds: 480,
  run: async (context) => {
    const world = await World.start(context)
    const most = context.size(Number.MAX_SAFE_INTEGER, 40)
    const millis = context.size(8_000, 20_000)
    /** Starts a service with a wallet for each caller; `execute` sends one caller's request. */
    const begin = async (name: string, options: Partial<Castellan.Options> = {}) => {
      const accounts = options.accounts ?? 1
      const service = await Castellan.start(context, world, {
        accounts,
        signers: accounts,
        limits: Castellan.unbound,
        profile: name,
        ...options
      })
      const salts = Array.from({ length: callers }, (_, n) => `${name} ${n}`)
      const as = salts.map((_, n) => Castellan.as(service, n % accounts))
      if (accounts === 1) await Wallets.create(world, service, salts)
      else for (const [n, salt] of salts.entries()) await Wallets.create(world, as[n] ?? service, [salt])
      const eoas = Array.from({ length: accounts }, (_, n) => new Wallet(Castellan.signerKey(n)).address)
      const count = async () =>
        (await Promise.all(eoas.map((eoa) => world.provider.getTransactionCount(eoa)))).reduce(
          (sum, nonce) => sum + nonce,
          0
        )
      const run = async (millis: number, most: number): Promise<Sample> => {
        const to = Wallets.recipient()
        const cpu = Processes.cpuMillis(service.pid)
        const sent = await count()
        const load = await closedLoop({ callers, millis, most }, async (caller) => {
          await Wallets.execute(world, as[caller] ?? service, [salts[caller] ?? ""], to)
        })
        const used = Processes.cpuMillis(service.pid) - cpu
        const arrived = await world.balance(to)
        ensure(arrived === load.done, `${arrived} transfers arrived of ${load.done}`)
        return sampleOf(load.done, load.seconds, used, load.latencies, (await count()) - sent)
      }
      return { run, stop: service.stop }
    }
    /** Warms the JIT up: the first ops are slower for every contender. */
    const warm = async ({ run }: Awaited<ReturnType<typeof begin>>) => {
      if (!context.quick) await run(20_000, 1_500)
    }
    const other = async (name: string, options: Partial<Castellan.Options>): Promise<Sample> => {
      const service = await begin(name, options)
      await warm(service)
      const sample = await service.run(millis, most)
      await service.stop()
      return sample
    }
    const others = {
      accounts: await other("accounts", { accounts: callers }),
      postgres: await onPostgres(context, (url) => other("postgres", { config: { database: { url } } }))
    }
    const castellan = await begin("callers")
    await castellan.run(20_000, context.size(100, 1))
    const fresh = await castellan.run(20_000, context.size(400, 40))
    await warm(castellan)
    if (!context.peers) {
      const castellans = [await castellan.run(millis, most)]
      return {
        rows: rowsOf(castellans, [], [], fresh, others),
        notes,
        raw: { castellan: castellans, fresh, ...others }
      }
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
      castellan: () => castellan.run(millis, most),
      raw: rawRun,
      alto: altoRun
    })
    alto.resume()
    await castellan.stop()
    return {
      rows: rowsOf(samples.castellan, samples.raw, samples.alto, fresh, others),
      notes,
      raw: { ...samples, fresh, ...others }
    }
  }
}

/** Null where PostgreSQL is not installed. */
const onPostgres = async <A>(context: Context, run: (url: string) => Promise<A>): Promise<A | null> => {
  if (Programs.folder() === undefined) return null
  const server = await Server.start()
  context.defer(server.stop)
  return run(await Effect.runPromise(Server.createDatabase(server, "callers")))
}

const rowsOf = (
  castellan: ReadonlyArray<Sample>,
  raw: ReadonlyArray<Sample>,
  alto: ReadonlyArray<Sample>,
  fresh: Sample,
  { accounts, postgres }: { readonly accounts: Sample; readonly postgres: Sample | null }
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
  const variant = (what: string, sample: Sample | null) => ({
    what,
    castellan:
      sample === null ? "not measured" : `${figure(sample.perSecond)}/s, ${figure(sample.cpuMillis)} ms CPU`,
    against: `castellan with one account, on SQLite: ${figure(own)}/s`,
    ratio: sample === null ? "-" : ratio(sample.perSecond / own),
    demand: "at least 0.5 x",
    met: sample === null ? null : sample.perSecond / own >= 0.5
  })
  return [
    {
      what: "ops a second, against permissionless and alto",
      castellan: `${figure(own)}/s`,
      against: against(`${figure(bundler)}/s`),
      ratio: measured ? ratio(own / bundler) : "-",
      demand: "at least 15 x",
      met: measured ? own / bundler >= 15 : null
    },
    {
      what: "ops a second, against viem alone with 10 a transaction",
      castellan: `${figure(own)}/s`,
      against: against(`${figure(theirs)}/s`),
      ratio: measured ? ratio(own / theirs) : "-",
      demand: "at least 0.5 x",
      met: measured ? own / theirs >= 0.5 : null
    },
    {
      what: "CPU of the service an op",
      castellan: `${figure(of(castellan, "cpuMillis"))} ms`,
      against: against(
        `alto ${figure(of(alto, "cpuMillis"))} ms, viem's client ${figure(of(raw, "cpuMillis"))} ms`
      ),
      ratio: measured ? ratio(of(castellan, "cpuMillis") / of(alto, "cpuMillis")) : "-",
      demand: "at most 2 ms",
      met: of(castellan, "cpuMillis") <= 2
    },
    {
      what: "the same after the first 100 ops of a service",
      castellan: `${figure(fresh.cpuMillis)} ms`,
      against: "-",
      ratio: "-",
      demand: "at most 3 ms",
      met: fresh.cpuMillis <= 3
    },
    variant("ops a second, 40 accounts with a signer each", accounts),
    variant("ops a second, on PostgreSQL", postgres),
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
  "All callers are those of one account, whose own limits do not bind: ops of an account share transactions. castellan is measured after 1,500 ops; the CPU of a fresh service is that of the 400 ops after its first 100. Each of 40 accounts has its own signer, so its ops share transactions with no other account's.",
  "The service is a separate process with SQLite on disk, API keys, rate limits and a log line a request. alto runs with its defaults and without the rules of ERC-7562, which anvil cannot trace. It is stopped during the other measurements. viem without a service signs ops with fixed gas, keeps nonces itself, simulates nothing and stores nothing."
]
