import type { Setup } from "./Model.js"

/** A bench run: the model's input and the measured result. */
export interface Point {
  readonly name: string
  readonly setup: Setup
  readonly measured: { readonly perSecond: number; readonly p50?: number }
}

/** Gas of a transaction with ERC-20 transfers of ECDSA wallets at v0.7: docs/contracts.md, for one op and per op of ten. */
export const gas = { base: 65_977, perOp: 32_420 }

/** docs/gas.md: ratio of gas limit to use for a bundle of forty, with default buffers. */
export const limitRatio = 2.31

export const plain: Setup = {
  cpuMillisPerOp: 10,
  processors: 1,
  waitMillis: 0,
  signers: 1,
  inFlight: 16,
  blockSeconds: 2,
  blockGas: 30_000_000,
  blockShare: 1,
  transactionGas: 2 ** 24,
  gas,
  limitRatio,
  opsPerTransaction: Number.POSITIVE_INFINITY,
  demand: { callers: 40 },
  seconds: 60
}

/**
 * Processor time of the service per op, in ms, on 23 November 2026:
 *
 * - `withReads`: single requests over PostgreSQL, with the reads and lookups of `bench:load`
 * - `atReplicas`: likewise at three replicas, two without the lane
 * - `shared`: single requests of forty callers of one account, on SQLite
 * - `ofForty`: forty ops in a request, on SQLite
 */
export const cpuMillis = { withReads: 22.4, atReplicas: 51.2, shared: 8.86, ofForty: 2.5 }

/**
 * The bench of forty callers ran on a busy machine: the service's processor share is derived from its throughput (ops a
 * second times processor time per op), and the model yields the latency. In the mixed load the service had a processor to
 * itself: the model yields both.
 */
const processorShare = (39.4 * cpuMillis.shared) / 1_000

export const points: ReadonlyArray<Point> = [
  {
    name: "40 callers, an op a request, a block for each transaction",
    setup: { ...plain, blockSeconds: 0, cpuMillisPerOp: cpuMillis.shared / processorShare },
    measured: { perSecond: 39.4, p50: 925 }
  },
  {
    name: "30 callers of mixed load, a block a second, two signers",
    setup: {
      ...plain,
      blockSeconds: 1,
      signers: 2,
      cpuMillisPerOp: cpuMillis.withReads,
      demand: { callers: 30 }
    },
    measured: { perSecond: 29.3, p50: 941 }
  }
]
