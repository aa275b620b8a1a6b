import { readdirSync, readFileSync, readlinkSync } from "node:fs"

const mayRead = (read: () => string): string => {
  try {
    return read()
  } catch {
    // It has ended, or is another user's.
    return ""
  }
}

/**
 * The processes that use a folder for their temporary files or work in it. A chain or a database that was started in a
 * process group of its own outlives a test process that was killed. None where there is no /proc.
 */
export const of = (folder: string): ReadonlyArray<number> => {
  const isOurs = (pid: number): boolean =>
    mayRead(() => readFileSync(`/proc/${pid}/environ`, "latin1"))
      .split("\0")
      .includes(`TMPDIR=${folder}`) ||
    mayRead(() => readlinkSync(`/proc/${pid}/cwd`)).startsWith(`${folder}/`)
  try {
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => Number.isInteger(pid) && pid !== process.pid && isOurs(pid))
  } catch {
    return []
  }
}

/** Ends them; the result says how many there were. */
export const end = (folder: string): number => {
  const survivors = of(folder)
  for (const pid of survivors)
    try {
      process.kill(pid, "SIGKILL")
    } catch {
      // It has just ended by itself.
    }
  return survivors.length
}
