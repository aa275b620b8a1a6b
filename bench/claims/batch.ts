import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure } from "../harness/Claim.js"
import * as Processes from "../harness/Processes.js"
import * as Rivals from "../harness/Rivals.js"
import { alternate, figure, median, ratio } from "../harness/Stats.js"
import * as Wallets from "../harness/Wallets.js"
import * as World from "../harness/World.js"

/** One request of 40 ops, and one request for 40 wallets, against viem with 40 ops in a transaction. */

const size = 40

interface Sample {
  readonly perSecond: number
  readonly cpuMillis: number
}

export const claim: Claim = {
  name: "batch",
  title: "One request of 40 elements",
  boundSeconds: 240,
  run: async (context) => {
    const world = await World.start(context)
    const castellan = await Castellan.start(context, world, { accounts: 10, profile: "batch" })
    const salts = Array.from({ length: size }, (_, n) => `batch ${n}`)
    await Wallets.create(world, castellan, salts)
    const times = context.size(8, 1)

    const timed = async (elements: number, work: () => Promise<void>): Promise<Sample> => {
      const cpu = Processes.cpuMillis(castellan.pid)
      const began = performance.now()
      await work()
      const seconds = (performance.now() - began) / 1_000
      return {
        perSecond: elements / seconds,
        cpuMillis: (Processes.cpuMillis(castellan.pid) - cpu) / elements
      }
    }
    const execute = async (): Promise<Sample> => {
      const to = Wallets.recipient()
      const sample = await timed(size * times, async () => {
        for (let n = 0; n < times; n++) await Wallets.execute(world, castellan, salts, to)
      })
      ensure((await world.balance(to)) === size * times, "not every transfer arrived once")
      return sample
    }
    let created = 0
    const create = async (): Promise<Sample> => {
      const fresh = Array.from({ length: times }, () =>
        Array.from({ length: size }, () => `created ${created++}`)
      )
      const wallets = (await Promise.all(fresh.map((part) => Wallets.predict(world, castellan, part)))).flat()
      await world.fund(wallets)
      const sample = await timed(size * times, async () => {
        for (const part of fresh) {
          const accounts = part.map((salt) => ({ salt, walletCustody: 1 }))
          const body = { accounts, settings: castellan.settings }
          const { status } = await castellan.ok<Wallets.TransactionResult>("/create", body)
          ensure(status === 1, "wallets were not created")
        }
      })
      await World.ensureCode(world, wallets)
      return sample
    }
    if (!context.quick) {
      await execute()
      await create()
    }
    if (!context.peers) {
      const samples = { execute: [await execute()], create: [await create()], raw: [], rawCreate: [] }
      return { rows: rowsOf(samples), notes, raw: samples }
    }
    const raw = await Rivals.raw(context, size)
    const rawRun = async (): Promise<Sample> => {
      const found = await raw.run({ perTransaction: size, millis: 60_000, most: 8, readNonces: false })
      return { perSecond: found.ops / found.seconds, cpuMillis: found.cpuMillis / found.ops }
    }
    const rawCreate = async (): Promise<Sample> => {
      const found = await raw.create({ perTransaction: size, transactions: times })
      return { perSecond: found.ops / found.seconds, cpuMillis: found.cpuMillis / found.ops }
    }
    await rawRun()
    await rawCreate()
    const samples = await alternate(context.rounds, { execute, create, raw: rawRun, rawCreate })
    await castellan.stop()
    return { rows: rowsOf(samples), notes, raw: samples }
  }
}

const rowsOf = (
  samples: Readonly<Record<"execute" | "create" | "raw" | "rawCreate", ReadonlyArray<Sample>>>
) => {
  const of = (name: keyof typeof samples, key: keyof Sample) =>
    median(samples[name].map((sample) => sample[key]))
  const measured = samples.raw.length > 0
  const contenders = [
    ["execute", "raw", "ops a second, 40 a request", "40 transfers a transaction"],
    ["create", "rawCreate", "wallets created a second, 40 a request", "40 SimpleAccounts by one handleOps"]
  ] as const
  return contenders.map(([name, rival, what, how]) => {
    const share = of(name, "perSecond") / of(rival, "perSecond")
    return {
      what,
      castellan: `${figure(of(name, "perSecond"))}/s, ${figure(of(name, "cpuMillis"))} ms CPU each`,
      against: measured
        ? `viem alone, ${how}: ${figure(of(rival, "perSecond"))}/s, ${figure(of(rival, "cpuMillis"))} ms CPU each`
        : "not measured",
      ratio: measured ? ratio(share) : "-",
      demand: "at least 0.5 x",
      met: measured ? share >= 0.5 : null
    }
  })
}

const notes = [
  "Balances and code are checked on the chain. viem alone signs with fixed gas, simulates nothing and stores nothing."
]
