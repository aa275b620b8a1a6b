import { Wallet } from "ethers"
import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure, type Row } from "../harness/Claim.js"
import { closedLoop } from "../harness/Client.js"
import type { Context } from "../harness/Context.js"
import * as Database from "../harness/Database.js"
import * as Processes from "../harness/Processes.js"
import * as Requests from "../harness/Requests.js"
import { figure, median, ratio } from "../harness/Stats.js"
import * as Wallets from "../harness/Wallets.js"
import * as World from "../harness/World.js"

/** Growth of costs with the elements of a request, requests in the journal, lanes and accounts. */

interface Point {
  readonly size: number
  /** CPU of the service for the measured work, in ms. */
  readonly cpuMillis: number
}

/** Median CPU of the service per call of `work`, in ms. */
const cpuOf = async (
  castellan: Castellan.Castellan,
  rounds: number,
  times: number,
  work: () => Promise<unknown>
): Promise<number> => {
  const samples: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const before = Processes.cpuMillis(castellan.pid)
    for (let n = 0; n < times; n++) await work()
    samples.push((Processes.cpuMillis(castellan.pid) - before) / times)
  }
  return median(samples)
}

const shown = (points: ReadonlyArray<Point>): string =>
  points.map(({ cpuMillis, size }) => `${size.toLocaleString("en-US")}: ${figure(cpuMillis)} ms`).join(", ")

const elements = async (context: Context): Promise<readonly [Row, unknown]> => {
  const world = await World.start(context)
  const castellan = await Castellan.start(context, world, { accounts: 20 })
  const salts = Array.from({ length: context.size(32, 4) }, (_, n) => `element ${n}`)
  await Wallets.create(world, castellan, salts)
  const to = Wallets.recipient()
  let sent = 0
  const points: Array<Point> = []
  for (const size of context.quick ? [1, 8] : [1, 16, 64, 256]) {
    const some = Array.from({ length: size }, (_, n) => salts[n % salts.length] ?? "")
    const work = async () => {
      await Wallets.execute(world, castellan, some, to)
      sent += size
    }
    await work()
    const times = Math.max(1, Math.floor(context.size(96, 1) / size))
    points.push({ size, cpuMillis: (await cpuOf(castellan, context.rounds, times, work)) / size })
  }
  ensure((await world.balance(to)) === sent, "not every transfer arrived once")
  const [first, second] = [points[1]?.cpuMillis ?? 0, points.at(-1)?.cpuMillis ?? 0]
  return [
    row("an op of an execute with 1 to 256", points, second / first, "at most 1.1 x from 16 to 256", 1.1),
    points
  ]
}

const requests = async (context: Context): Promise<readonly [Row, unknown]> => {
  const world = await World.start(context)
  let castellan = await Castellan.start(context, world, { accounts: 20 })
  await Wallets.create(world, castellan, ["journal"])
  const to = Wallets.recipient()
  let sent = 0
  const execute = async () => {
    await Wallets.execute(world, castellan, ["journal"], to)
    sent += 1
  }
  const points: Array<Point> = []
  const starts: Array<number> = []
  for (const size of context.quick ? [1_000] : [1_000, 10_000, 100_000, 1_000_000]) {
    await execute()
    await castellan.stop()
    Database.fill(castellan.database, size)
    castellan = await Castellan.start(context, world, { accounts: 20, again: castellan })
    starts.push(castellan.readyMillis)
    await cpuOf(castellan, 1, context.size(60, 1), execute)
    points.push({ size, cpuMillis: await cpuOf(castellan, context.rounds, context.size(40, 1), execute) })
  }
  ensure((await world.balance(to)) === sent, "not every transfer arrived once")
  const growth = (points.at(-1)?.cpuMillis ?? 0) / (points[0]?.cpuMillis ?? 1)
  const note = `; ready after ${starts.map((millis) => `${figure(millis)} ms`).join(", ")}`
  return [
    row("an execute alone, requests in the journal", points, growth, "at most 2 x", 2, note),
    { points, starts }
  ]
}

const lanes = async (context: Context): Promise<readonly [Row, unknown]> => {
  const most = context.size(1_000, 10)
  const world = await World.start(context)
  const castellan = await Castellan.start(context, world, { accounts: 20, signers: most })
  await Wallets.create(world, castellan, ["lanes"])
  const to = new Wallet(Castellan.signerKey(2_000_000)).address
  const direct = async (place: number) => {
    const settings = { rpc: world.chain.url, signer: Castellan.signerRef(place) }
    const { status } = await castellan.ok<Wallets.TransactionResult>("/transactSigner", {
      to,
      value: "1",
      settings
    })
    ensure(status === 1, "a signer's transaction failed")
  }
  const execute = () => Wallets.execute(world, castellan, ["lanes"], Wallets.recipient())
  const points: Array<Point> = []
  let opened = 1
  for (const size of [1, Math.sqrt(most) | 0, most]) {
    await closedLoop({ callers: 16, millis: 200_000, most: size - opened }, () => direct(opened++))
    await cpuOf(castellan, 1, context.size(60, 1), execute)
    points.push({ size, cpuMillis: await cpuOf(castellan, context.rounds, context.size(40, 1), execute) })
  }
  const spent = await world.provider.getBalance(to)
  ensure(spent === BigInt(most - 1), `${spent} of ${most - 1} transactions of signers arrived`)
  const growth = (points.at(-1)?.cpuMillis ?? 0) / (points[0]?.cpuMillis ?? 1)
  return [row("an execute alone, EOAs that have submitted", points, growth, "at most 2 x", 2), points]
}

const accounts = async (context: Context): Promise<readonly [Row, unknown]> => {
  const world = await World.start(context)
  const kind: Requests.Kind = { statuses: [200], body: '{"chainId":31337}', key: null }
  const points: Array<Point> = []
  const starts: Array<number> = []
  for (const size of context.quick ? [10] : [100, 1_000, 10_000]) {
    const castellan = await Castellan.start(context, world, { accounts: size })
    starts.push(castellan.readyMillis)
    const server = { ...castellan, keys: castellan.keys.slice(0, 100) }
    await Requests.measure(server, context.size(2_000, 200), kind)
    const samples: Array<number> = []
    for (let round = 0; round < context.rounds; round++)
      samples.push(1_000 / (await Requests.measure(server, context.size(2_000, 200), kind)).perCpuSecond)
    points.push({ size, cpuMillis: median(samples) })
    await castellan.stop()
  }
  const growth = (points.at(-1)?.cpuMillis ?? 0) / (points[0]?.cpuMillis ?? 1)
  const note = `; ready after ${starts.map((millis) => `${figure(millis)} ms`).join(", ")}`
  return [row("a trivial request, accounts", points, growth, "at most 2 x", 2, note), { points, starts }]
}

const row = (
  what: string,
  points: ReadonlyArray<Point>,
  growth: number,
  demand: string,
  most: number,
  note = ""
): Row => ({
  what: `CPU of ${what}`,
  castellan: `${shown(points)}${note}`,
  against: "itself",
  ratio: ratio(growth),
  demand,
  met: points.length > 1 ? growth <= most : null
})

export const claim: Claim = {
  name: "growth",
  title: "Growth",
  boundSeconds: 900,
  run: async (context) => {
    const found: Array<readonly [Row, unknown]> = []
    for (const measure of [elements, requests, lanes, accounts]) {
      found.push(await measure(context))
      context.say(found.at(-1)?.[0].castellan ?? "")
    }
    return {
      rows: found.map(([row]) => row),
      notes: [
        "CPU of the service's process. Requests in the journal are copies of a settled request with its op and its transaction, inserted by SQL while the service was stopped. Each EOA has sent its own transaction. Accounts are in the configuration file. Flat is within 2 times from the first to the last."
      ],
      raw: found.map(([, raw]) => raw)
    }
  }
}
