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

/** Processor time of an op that is a request of its own, and of one of forty in a request: docs/performance.md. */
export const cpuMillis = { alone: 57.6, ofForty: 9.03 }

/**
 * docs/performance.md, 22 November 2026, on a machine that was busy. How much of a processor the service got is taken
 * from the first figure alone (ops a second times processor time an op); everything else is the model's.
 */
const processorShare = (8.8 * cpuMillis.alone) / 1_000

export const points: ReadonlyArray<Point> = [
  {
    name: "40 callers, an op a request, a block for each transaction",
    setup: { ...plain, blockSeconds: 0, cpuMillisPerOp: cpuMillis.alone / processorShare },
    measured: { perSecond: 8.8, p50: 4_019 }
  },
  {
    name: "one caller, forty ops a request, a block for each transaction",
    setup: { ...plain, blockSeconds: 0, cpuMillisPerOp: cpuMillis.ofForty / processorShare },
    measured: { perSecond: 50.3 }
  }
]
