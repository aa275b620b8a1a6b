/**
 * Entry checks of a castellan process. It imports nothing: an older Node must parse it and report its version before it
 * meets unsupported syntax.
 */

const needed: readonly [major: number, minor: number] = [22, 19]

/** Problem and remedy for this Node version; null: none. */
export const problem = (version: string): string | null => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return major > needed[0] || (major === needed[0] && minor >= needed[1])
    ? null
    : `castellan needs Node ${needed.join(".")} or later, and this is Node ${version}: run "npm install node@24" in this folder, which npx and npm's scripts prefer to the system's Node`
}

const youngGeneration = "--max-semi-space-size"

/**
 * Megabytes of each half of V8's young generation. On machines with much memory V8 grows it to 64, which a loaded service
 * fills and keeps: most of the process's memory would be uncollected garbage.
 */
const youngMegabytes = 8

/**
 * Growth of V8's old generation between collections, in percent of the live objects. By default V8 lets it become four times
 * as large: a service with 40 MB of live objects would hold 160.
 */
const oldPercent = "--heap-growing-percent=50"

/** Number of glibc's heaps for threads: a heap does not reuse memory that V8's compiler freed in another. */
const arenas = "MALLOC_ARENA_MAX"

/** Node's options with these added; null: the operator has set the young generation. */
export const boundMemory = (
  execArgv: ReadonlyArray<string>,
  nodeOptions: string | undefined
): ReadonlyArray<string> | null =>
  [...execArgv, nodeOptions ?? ""].some((option) => option.replaceAll("_", "-").includes(youngGeneration))
    ? null
    : [`${youngGeneration}=${youngMegabytes}`, oldPercent, ...execArgv]

/** Exits with a message when Node is too old. */
export const check = (): void => {
  const wrong = problem(process.versions.node)
  if (wrong === null) return
  console.error(wrong)
  process.exit(1)
}

/**
 * Replaces the process by one with a bounded heap, because V8 reads the bound only at its start. Process id and streams stay.
 * Without `execve` the process continues unchanged.
 */
export const bound = (): void => {
  const options = boundMemory(process.execArgv, process.env.NODE_OPTIONS)
  // The new process would lose a channel to its parent.
  if (options === null || process.execve === undefined || process.send !== undefined) return
  // Some versions of Node start it with an empty environment by default.
  process.execve(process.execPath, [process.execPath, ...options, ...process.argv.slice(1)], {
    ...process.env,
    [arenas]: process.env[arenas] ?? "2"
  })
}
