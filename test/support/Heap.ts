import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** Bytes in use after a garbage collection: the heap, and strings outside it. */
export const bytesInUse = (): number => {
  // The first collection may only release strings that the second one frees.
  collect()
  collect()
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
}

export const MiB = 1_024 * 1_024

/** A newly allocated string of `characters` characters. */
export const textOf = (characters: number, digit = "a"): string =>
  Buffer.alloc(characters, digit).toString("latin1")
