import { readFileSync } from "node:fs"

/** Nanoseconds that the process's main thread has run, where the system tells; without compiler and garbage collector. */
const ofThread = (): number | null => {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0])
  } catch {
    return null
  }
}

/** Milliseconds of work so far: of this thread, else of the process. What else the machine does is no part of it. */
export const soFar = (): number => {
  const nanos = ofThread()
  if (nanos !== null) return nanos / 1_000_000
  const { system, user } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Milliseconds of work that something takes: for bounds that a square or worse goes over many times. */
export const of = (body: () => void): number => {
  const before = soFar()
  body()
  return soFar() - before
}
