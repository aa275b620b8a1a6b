import * as Castellan from "../harness/Castellan.js"
import type { Claim, Row } from "../harness/Claim.js"
import * as Fastify from "../harness/Fastify.js"
import * as Requests from "../harness/Requests.js"
import { alternate, figure, median, ratio } from "../harness/Stats.js"
import * as World from "../harness/World.js"

/** Cost of a refused request: the cheaper, the less one caller can take from the others. */

const plain = '{"chainId":31337}'
const bodyLimit = 65_536
/** An account over its limit is served again when a minute begins. */
const limited: Requests.Kind = { statuses: [429], body: plain, key: null, others: 60 }

/** For castellan and fastify alike. */
const kinds: Readonly<Record<string, Requests.Kind>> = {
  "401, an unknown key": { statuses: [401], body: plain, key: `cst_${"0".repeat(43)}` },
  "400, a body against the schema": { statuses: [400], body: '{"chainId":{"not":"an id"}}', key: null },
  "413 (400 here), a body of 70 kB": {
    // castellan has no 413: a body that is too long gets 400 `body_too_large`.
    statuses: [400, 413],
    body: JSON.stringify({ chainId: "1".repeat(70_000) }),
    key: null
  }
}

export const claim: Claim = {
  name: "refusals",
  title: "Refused requests",
  boundSeconds: 240,
  run: async (context) => {
    const world = await World.start(context)
    const limits = { concurrentRequests: 2_048, bodyBytes: bodyLimit, anonymousPerMinute: 1_000_000 }
    const config = { limits }
    const open = await Castellan.start(context, world, { accounts: 400, config, profile: "refusals" })
    // The tier with the lowest limits, exhausted immediately.
    const shut = await Castellan.start(context, world, { accounts: 1, tier: "free", config })
    const peer = context.peers
      ? {
          open: await Fastify.start(context, { accounts: 400, perMinute: 1_000_000, bodyLimit }),
          shut: await Fastify.start(context, { accounts: 1, perMinute: 60, bodyLimit })
        }
      : null
    const millis = context.size(2_500, 300)
    const rows: Array<Row> = []
    const raw: Record<string, unknown> = {}
    for (const [what, kind] of Object.entries({ "429, an account over its limit": limited, ...kinds })) {
      const warm = context.size(20_000, 200)
      const serverOf = (server: { readonly open: Requests.Server; readonly shut: Requests.Server }) =>
        kind.statuses.includes(429) ? server.shut : server.open
      const of = (server: Parameters<typeof serverOf>[0]) => () =>
        Requests.measure(serverOf(server), millis, kind)
      await Requests.measure(serverOf({ open, shut }), warm, kind, 8_000)
      if (peer !== null) await Requests.measure(serverOf(peer), warm, kind, 8_000)
      const contenders: Record<string, () => Promise<Requests.Sample>> = {
        castellan: of({ open, shut }),
        ...(peer !== null && { fastify: of(peer) })
      }
      const samples: Readonly<Record<string, ReadonlyArray<Requests.Sample>>> = await alternate(
        context.rounds,
        contenders
      )
      const rate = (name: string) => median((samples[name] ?? []).map(({ perCpuSecond }) => perCpuSecond))
      const share = rate("castellan") / rate("fastify")
      raw[what] = samples
      rows.push({
        what: `${what}: for a second of the server's CPU`,
        castellan: `${figure(rate("castellan"))} (${figure(1_000 / rate("castellan"))} ms each)`,
        against: peer === null ? "not measured" : `fastify ${figure(rate("fastify"))}`,
        ratio: peer === null ? "-" : ratio(share),
        demand: "at least 0.5 x",
        met: peer === null ? null : share >= 0.5
      })
    }
    await open.stop()
    return { rows, notes, raw }
  }
}

const notes = [
  "16 callers in a closed loop over kept-alive connections; castellan writes its log and counts its figures as always. fastify's 429 are those of @fastify/rate-limit."
]
