import { readFileSync } from "node:fs"

/** CPU nanoseconds of the main thread, without compiler and garbage collector; null where unsupported. */
const ofThread = (): number | null => {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0])
  } catch {
    return null
  }
}

/** CPU time so far, in milliseconds: of this thread if known, otherwise of the process. */
export const soFar = (): number => {
  const nanos = ofThread()
  if (nanos !== null) return nanos / 1_000_000
  const { system, user } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Milliseconds of work: for bounds that quadratic work exceeds many times. */
export const of = (body: () => void): number => {
  const before = soFar()
  body()
  return soFar() - before
}
