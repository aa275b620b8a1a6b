import type * as CountingProxy from "../../tools/CountingProxy.js"
import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure, type Row } from "../harness/Claim.js"
import * as Rivals from "../harness/Rivals.js"
import { ratio } from "../harness/Stats.js"
import * as Wallets from "../harness/Wallets.js"
import * as World from "../harness/World.js"

/** Cost of an op in the node: HTTP round trips and JSON-RPC calls, up to the first receipt. */

interface Cost {
  readonly roundTrips: number
  readonly calls: number
  readonly methods: string
}

const receipt = "eth_getTransactionReceipt"

/** Counts up to the first response with the receipt: the number of polls depends on the chain. */
const costOf = (exchanges: ReadonlyArray<CountingProxy.Exchange>): Cost => {
  const sent = exchanges.findIndex(({ methods }) => methods.includes("eth_sendRawTransaction"))
  const firstReceipt = exchanges.findIndex(({ methods }, n) => n > sent && methods.includes(receipt))
  const counted = sent < 0 || firstReceipt < 0 ? exchanges : exchanges.slice(0, firstReceipt + 1)
  const names = new Map<string, number>()
  for (const { methods } of counted) for (const name of methods) names.set(name, (names.get(name) ?? 0) + 1)
  return {
    roundTrips: counted.length,
    calls: counted.reduce((sum, { methods }) => sum + methods.length, 0),
    methods: [...names].map(([name, count]) => (count === 1 ? name : `${count} ${name}`)).join(", ")
  }
}

/** The run with the fewest round trips: background polls may fall into any run. */
const least = (costs: ReadonlyArray<Cost>): Cost =>
  [...costs].sort((one, other) => one.roundTrips - other.roundTrips || one.calls - other.calls)[0] ?? {
    roundTrips: 0,
    calls: 0,
    methods: ""
  }

const row = (
  what: string,
  own: number,
  demand: number | null,
  against: string,
  theirs: number | null
): Row => ({
  what,
  castellan: String(own),
  against,
  ratio: theirs === null || theirs === 0 ? "-" : ratio(own / theirs),
  demand: demand === null ? "-" : `at most ${demand}`,
  met: demand === null ? null : own <= demand
})

export const claim: Claim = {
  name: "roundTrips",
  title: "Node calls of an op",
  boundSeconds: 120,
  run: async (context) => {
    const world = await World.start(context)
    const proxy = await world.proxy()
    const castellan = await Castellan.start(context, world, { accounts: 10, nodeUrl: proxy.url })
    const salts = Array.from({ length: 10 }, (_, n) => `wallet ${n}`)
    await Wallets.create(world, castellan, salts)
    const to = Wallets.recipient()
    let sent = 0
    const cost = async (ops: number, account = 9): Promise<Cost> => {
      proxy.take()
      await Wallets.execute(world, castellan, salts.slice(0, ops), to, account)
      sent += ops
      return costOf(proxy.take())
    }
    // Accounts share no node state: these have created none of the wallets.
    const firsts: Array<Cost> = []
    for (const account of [7, 8, 9]) firsts.push(await cost(1, account))
    await cost(10)
    const times = context.size(10, 2)
    const [ones, tens]: [Array<Cost>, Array<Cost>] = [[], []]
    for (let n = 0; n < times; n++) {
      ones.push(await cost(1))
      tens.push(await cost(10))
    }
    ensure((await world.balance(to)) === sent, "not every transfer arrived once")
    const [first, one, ten] = [least(firsts), least(ones), least(tens)]

    let alto: Cost | null = null
    let raw: Cost | null = null
    if (context.peers) {
      const proxies: Array<CountingProxy.CountingProxy> = []
      const through = async (other: World.World) => {
        const opened = await other.proxy()
        proxies.push(opened)
        return opened.url
      }
      const viem = await Rivals.raw(context, 1, through)
      const bundler = await Rivals.alto(context, 1, through)
      const costThrough = async (place: number, run: () => Promise<unknown>): Promise<Cost> => {
        const costs: Array<Cost> = []
        for (let n = 0; n < 5; n++) {
          proxies[place]?.take()
          await run()
          costs.push(costOf(proxies[place]?.take() ?? []))
        }
        return least(costs)
      }
      raw = await costThrough(0, () =>
        viem.run({ perTransaction: 1, millis: 9_000, most: 1, readNonces: true })
      )
      alto = await costThrough(1, () => bundler.run({ callers: 1, millis: 9_000, most: 1 }))
    }
    const peers = (key: "roundTrips" | "calls") =>
      alto === null || raw === null
        ? "not measured"
        : `alto with permissionless ${alto[key]}, viem alone ${raw[key]}`
    const more = (ten.calls - one.calls) / 9
    return {
      rows: [
        row(
          "HTTP round trips, an op alone",
          one.roundTrips,
          4,
          peers("roundTrips"),
          alto?.roundTrips ?? null
        ),
        row("HTTP round trips, a bundle of ten", ten.roundTrips, 4, "-", null),
        row("JSON-RPC calls, an op alone", one.calls, 9, peers("calls"), alto?.calls ?? null),
        row("JSON-RPC calls more for each further op of a bundle", Number(more.toFixed(1)), 1, "-", null),
        row("HTTP round trips, the first op of an account through a node", first.roundTrips, 6, "-", null),
        row("JSON-RPC calls, the first op of an account through a node", first.calls, 18, "-", null)
      ],
      notes: [
        "A proxy in front of the node counts from the request to the first call for the receipt, inclusive. The run with the fewest calls counts, of wallets whose account has sent ops through this node before.",
        `An op alone: ${one.methods}.`,
        `A bundle of ten: ${ten.methods}.`,
        `The first op: ${first.methods}.`,
        ...(alto === null ? [] : [`alto with permissionless: ${alto.methods}.`])
      ],
      raw: { firsts, ones, tens, alto, viem: raw }
    }
  }
}
