import type { Setup } from "./Model.js"

/** A run of a bench, as the model is told of it, and what came out. */
export interface Point {
  readonly name: string
  readonly setup: Setup
  readonly measured: { readonly perSecond: number; readonly p50?: number }
}

/** Gas of a transaction with ERC-20 transfers of ECDSA wallets at v0.7: docs/contracts.md, alone and each of ten. */
export const gas = { base: 65_977, perOp: 32_420 }

/** docs/gas.md: what a bundle of forty names as its limit, to what it uses, with the buffers that are the default. */
export const limitRatio = 3.38

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
 * Processor time of the service for an op, 23 November 2026: `withReads` as a request of its own over PostgreSQL, with
 * the reads and look-ups that `bench:load` puts beside it; `atReplicas` the same at three replicas, two of which do not
 * own its lane; `shared` as a request of its own of forty callers of one account, on SQLite; `ofForty` as one of forty
 * in a request.
 */
export const cpuMillis = { withReads: 22.4, atReplicas: 51.2, shared: 8.86, ofForty: 2.5 }

/**
 * Of the bench of forty callers the machine was busy: how much of a processor the service got is taken from its
 * throughput (ops a second times processor time an op), the time until an answer is the model's. Of the mixed load the
 * service had a processor to itself: both figures are the model's.
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
