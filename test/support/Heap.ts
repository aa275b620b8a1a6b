import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** Bytes that are still in use after a collection of garbage: those of the heap and those of texts beside it. */
export const bytesInUse = (): number => {
  // What the first collection finds to be garbage may hold texts that only the second one frees.
  collect()
  collect()
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
}

export const MiB = 1_024 * 1_024

/** A text of its own in memory, of so many characters. */
export const textOf = (characters: number, digit = "a"): string =>
  Buffer.alloc(characters, digit).toString("latin1")
