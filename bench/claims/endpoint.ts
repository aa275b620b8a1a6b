import * as Castellan from "../harness/Castellan.js"
import type { Claim } from "../harness/Claim.js"
import * as Fastify from "../harness/Fastify.js"
import * as Requests from "../harness/Requests.js"
import { alternate, figure, median, ratio } from "../harness/Stats.js"
import * as World from "../harness/World.js"

/** An almost empty endpoint: the cost of HTTP, key, limits, schema, metrics and log line. */

const accounts = 400
const kind: Requests.Kind = { statuses: [200], body: '{"chainId":31337}', key: null }

export const claim: Claim = {
  name: "endpoint",
  title: "A trivial endpoint",
  boundSeconds: 120,
  run: async (context) => {
    const world = await World.start(context)
    const castellan = await Castellan.start(context, world, { accounts, profile: "endpoint" })
    const millis = context.size(4_000, 500)
    const own = () => Requests.measure(castellan, millis, kind)
    // Warms the JIT up, which takes thousands of requests.
    await Requests.measure(castellan, context.size(40_000, 300), kind, 15_000)
    if (!context.peers) {
      const samples = { castellan: [await own()], fastify: [] }
      return { rows: rowsOf(samples), notes, raw: samples }
    }
    const limits = { accounts, perMinute: 1_000_000, bodyLimit: 2 ** 20 }
    const fastify = await Fastify.start(context, limits)
    const theirs = () => Requests.measure(fastify, millis, kind)
    await Requests.measure(fastify, 40_000, kind, 15_000)
    const samples = await alternate(context.rounds, { castellan: own, fastify: theirs })
    await castellan.stop()
    return { rows: rowsOf(samples), notes, raw: samples }
  }
}

const rowsOf = (samples: Readonly<Record<"castellan" | "fastify", ReadonlyArray<Requests.Sample>>>) => {
  const of = (name: keyof typeof samples, key: keyof Requests.Sample) =>
    median(samples[name].map((sample) => sample[key]))
  const measured = samples.fastify.length > 0
  const share = of("castellan", "perCpuSecond") / of("fastify", "perCpuSecond")
  return [
    {
      what: "requests for a second of the server's CPU",
      castellan: figure(of("castellan", "perCpuSecond")),
      against: measured ? `fastify ${figure(of("fastify", "perCpuSecond"))}` : "not measured",
      ratio: measured ? ratio(share) : "-",
      demand: "at least 0.5 x",
      met: measured ? share >= 0.5 : null
    },
    {
      what: "requests a second, 16 callers",
      castellan: figure(of("castellan", "perSecond")),
      against: measured ? `fastify ${figure(of("fastify", "perSecond"))}` : "not measured",
      ratio: measured ? ratio(of("castellan", "perSecond") / of("fastify", "perSecond")) : "-",
      demand: "-",
      met: null
    }
  ]
}

const notes = [
  "`POST /getbundleraddress` with a body, 400 API keys in turn. fastify has a key looked up by its HMAC, @fastify/rate-limit by account, schemas of body and answer, and pino's line a request on disk."
]
