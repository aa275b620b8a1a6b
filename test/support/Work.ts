/** CPU time so far, in milliseconds: of this thread, or where Node does not know it, of the process. */
export const soFar = (): number => {
  const { system, user } = (process.threadCpuUsage ?? process.cpuUsage)()
  return (user + system) / 1_000
}

/** Milliseconds of work: for bounds that quadratic work exceeds many times. */
export const of = (body: () => void): number => {
  const before = soFar()
  body()
  return soFar() - before
}
