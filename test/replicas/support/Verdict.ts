import type * as Fleet from "./Fleet.js"
import type * as Load from "./Load.js"

/** Breaches after a run, by kind: all lists are empty when every op was executed once and reported so. */
export interface Verdict {
  /** Reported as executed, and not on the chain. */
  readonly lost: ReadonlyArray<string>
  readonly duplicated: ReadonlyArray<string>
  /** Reported as failed, and on the chain; or reported in a wrong transaction. */
  readonly misreported: ReadonlyArray<string>
  /** Not executed, and reported so: each of these ops could have been. */
  readonly refused: ReadonlyArray<string>
  /** Unfilled nonces, and the journal's open work in the end. */
  readonly gaps: ReadonlyArray<string>
  /** Without a final answer. */
  readonly stuck: ReadonlyArray<string>
  /** Answers that no client may get, and processes that ended by themselves. */
  readonly breaches: ReadonlyArray<string>
}

export const kinds = ["lost", "duplicated", "misreported", "refused", "gaps", "stuck", "breaches"] as const

export type Found = ReadonlyMap<string, ReadonlyArray<string>>

/** Every exchange with the counter contract, by the id that it counted: the chain's own word. */
export const hits = async ({ world }: Fleet.Fleet): Promise<Found> => {
  const topic = world.counter.interface.getEvent("Hit")?.topicHash ?? ""
  const logs = await world.provider.getLogs({
    address: await world.counter.getAddress(),
    topics: [topic],
    fromBlock: 0
  })
  const found = new Map<string, Array<string>>()
  for (const { topics, transactionHash } of logs) {
    const id = topics[1] ?? ""
    found.set(id, [...(found.get(id) ?? []), transactionHash])
  }
  return found
}

const judge = (ops: ReadonlyArray<Load.Op>, found: Found): Omit<Verdict, "gaps" | "breaches"> => {
  const where = (isWrong: (op: Load.Op, hashes: ReadonlyArray<string>) => boolean) =>
    ops.flatMap((op) => {
      const hashes = found.get(op.id) ?? []
      return isWrong(op, hashes) ? [`${op.id}: ${op.answer}, found in ${hashes.join(", ") || "none"}`] : []
    })
  return {
    lost: where(({ said }, hashes) => said === "success" && hashes.length === 0),
    duplicated: where((_, hashes) => hashes.length > 1),
    misreported: where(
      ({ said, txHash }, hashes) =>
        hashes.length > 0 && (said === "failure" || (said === "success" && !hashes.includes(txHash ?? "")))
    ),
    refused: where(({ said }, hashes) => said === "failure" && hashes.length === 0),
    stuck: where(({ said }) => said === "nothing")
  }
}

/** Answers that no client may receive, whatever has failed. */
const forbidden = /^(500|401|403|404|503 without Retry-After)/

/**
 * Answers to a client of a replica that is replaced: final ones, and 503 with `Retry-After` when it must use another
 * replica.
 */
const allowedWhileReplaced = /^(200|202|503) /

export const of = (
  ops: ReadonlyArray<Load.Op>,
  found: Found,
  met: { readonly all: ReadonlyMap<string, number>; readonly rolling: ReadonlyMap<string, number> },
  { breaches, gaps }: Pick<Verdict, "breaches" | "gaps">
): Verdict => {
  const strangers = [...found.keys()].filter((id) => !ops.some((op) => op.id === id))
  return {
    ...judge(ops, found),
    gaps,
    breaches: [
      ...breaches,
      ...[...met.all.keys()]
        .filter((what) => forbidden.test(what))
        .map((what) => `a client was answered ${what}`),
      ...[...met.rolling.keys()]
        .filter((what) => !allowedWhileReplaced.test(`${what} `))
        .map((what) => `a client of the rolling restart met: ${what}`),
      ...strangers.map((id) => `${id} was executed without a request`)
    ]
  }
}
