/** Retry pauses, each twice as long as the one before. */
export interface Backoff {
  readonly firstMillis: number
  readonly longestMillis: number
}

/** The pause after this many failures in a row; the first failure is 1. */
export const pauseMillis = ({ firstMillis, longestMillis }: Backoff, failures: number): number =>
  Math.min(firstMillis * 2 ** (failures - 1), longestMillis)
