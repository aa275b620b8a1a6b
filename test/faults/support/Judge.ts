import type { Wallet } from "ethers"
import { essence, exchange } from "./Client.js"
import * as Receiver from "./Receiver.js"
import { type Asked, run as runWorkload, type Setting, type Work } from "./Workload.js"

/** Breaches after a run. All lists are empty when every accepted write reached the chain exactly once. */
export interface Verdict {
  /** Reported as done, and not on the chain. */
  readonly lost: ReadonlyArray<string>
  /** More than once on the chain. */
  readonly duplicated: ReadonlyArray<string>
  /** Reported as failed and yet on the chain: the caller would send it again. */
  readonly misreported: ReadonlyArray<string>
  /** On the chain without its dependency. */
  readonly orphaned: ReadonlyArray<string>
  /** Unfilled nonces, on the chain or in the journal. */
  readonly gaps: ReadonlyArray<string>
  /** Requests without an end, and lanes that no longer work. */
  readonly stuck: ReadonlyArray<string>
  /** Other breaches: another answer to the same key, a 500, a crash. */
  readonly breaches: ReadonlyArray<string>
  /** Events of accepted requests that reached no webhook. */
  readonly undelivered: ReadonlyArray<string>
  /** Webhooks that overtook another one of their request. */
  readonly outOfOrder: ReadonlyArray<string>
  /** Webhooks of events that did not happen. */
  readonly invented: ReadonlyArray<string>
}

export const kinds = [
  "lost",
  "duplicated",
  "misreported",
  "orphaned",
  "gaps",
  "stuck",
  "breaches",
  "undelivered",
  "outOfOrder",
  "invented"
] as const

const describe = (work: Work, count: number): string =>
  `${work.kind} of request ${work.request} (${work.deed}) said ${work.said} (${work.why}), counted ${count}: ${work.id}`

/** Times that each piece of work is on the chain. */
const countsOf = async ({ world }: Setting, works: ReadonlyArray<Work>): Promise<ReadonlyArray<number>> => {
  const counted = works.filter(({ kind }) => kind === "count")
  const counts: ReadonlyArray<bigint> = await world.counter.getFunction("counts")(counted.map(({ id }) => id))
  return Promise.all(
    works.map(async (work) => {
      if (work.kind === "count") return Number(counts[counted.indexOf(work)])
      return (await world.provider.getCode(work.id)) === "0x" ? 0 : 1
    })
  )
}

/** Longest time of one execution without faults, including the take-over of a dead process's lanes. */
const laneMillis = 40_000

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** The remaining entries after a bounded wait for an empty list. */
const eventually = async (look: () => Promise<ReadonlyArray<string>>): Promise<ReadonlyArray<string>> => {
  const end = Date.now() + 8_000
  for (;;) {
    const found = await look()
    if (found.length === 0 || Date.now() > end) return found
    await pause(100)
  }
}

/**
 * Requests every answer again: it must be the same. An answer from before its transaction settled may differ; the last
 * answer counts.
 */
const repeats = async (
  { scenario, supervisor }: Setting,
  asked: ReadonlyArray<Asked>
): Promise<ReadonlyArray<string>> => {
  const early = scenario.confirmations < scenario.settledDepth
  const found = await Promise.all(
    asked
      .filter(({ answer }) => answer.status === 200)
      .map(async ({ answer, hear, question }) => {
        const again = await exchange(supervisor, { ...question, patience: 20_000 })
        const same = again !== null && essence(again) === essence(answer)
        if (early && again?.status === 200) hear(again)
        if (same || (early && again?.status === 200)) return []
        return [`${question.path} ${question.key} again: ${JSON.stringify(again)?.slice(0, 300)}`]
      })
  )
  return found.flat()
}

/** Longest wait for full delivery: claims of a dead process pass to another after a minute. */
const deliveryMillis = 120_000

/** Waits until every event of the journal has arrived, and compares the arrivals with the journal. */
const webhooks = async ({ receiver, store }: Setting): Promise<Receiver.Findings> => {
  const end = Date.now() + deliveryMillis
  for (;;) {
    const { ended, events } = await store.events()
    const arrivals = [...receiver.arrivals()]
    const found = Receiver.judge(events, ended, arrivals)
    const isLate = Date.now() > end
    if ((found.undelivered.length === 0 && found.invented.length === 0) || isLate) return found
    await pause(200)
  }
}

/** Compares the service's answers with the chain, and checks that every lane still works. */
export const judge = async (
  setting: Setting,
  signers: ReadonlyArray<Wallet>,
  works: ReadonlyArray<Work>,
  asked: ReadonlyArray<Asked>,
  violations: ReadonlyArray<string>
): Promise<Verdict> => {
  const { store, supervisor, world } = setting
  const end = Date.now() + laneMillis
  const last = await Promise.all(
    signers.map((_, signer) =>
      runWorkload(
        { ...setting, deadline: () => end },
        {
          at: 0,
          endpoint: "execute",
          signer,
          ops: [{ wallet: signer, deed: "hit" }],
          patience: 20_000,
          isAsync: false,
          twin: false
        },
        1_000 + signer
      )
    )
  )
  const lanes = last.flatMap(({ works }) => works)
  const gaps = await Promise.all(
    signers.map(({ address }, signer) =>
      eventually(async () => {
        const [latest, pending] = await Promise.all([
          world.provider.getTransactionCount(address, "latest"),
          world.provider.getTransactionCount(address, "pending")
        ])
        const open = (await store.holes(address)).map(
          (hole) => `lane ${signer}: ${hole}, the chain is at ${latest}`
        )
        return latest === pending ? open : [...open, `lane ${signer}: latest ${latest}, pending ${pending}`]
      })
    )
  )
  const repeated = await repeats(setting, asked)
  const all = [...works, ...lanes]
  const counts = await countsOf(setting, all)
  const countOf = (id: string) => counts[all.findIndex((work) => work.id === id)] ?? 0
  const where = (wrong: (work: Work, count: number) => boolean): ReadonlyArray<string> =>
    all.flatMap((work, index) => {
      const count = counts[index] ?? 0
      return wrong(work, count) ? [describe(work, count)] : []
    })
  return {
    lost: where(({ said }, count) => said === "success" && count === 0),
    duplicated: where((_, count) => count > 1),
    misreported: where(({ said }, count) => said === "failure" && count > 0),
    orphaned: where(({ after }, count) => count > 0 && after !== null && countOf(after) === 0),
    gaps: gaps.flat(),
    stuck: [
      ...where(({ said }) => said === "nothing"),
      ...lanes.filter(({ said }) => said === "failure").map((work) => `the lane ${describe(work, 0)}`)
    ],
    breaches: [...repeated, ...violations, ...supervisor.complaints()],
    ...(await webhooks(setting))
  }
}
