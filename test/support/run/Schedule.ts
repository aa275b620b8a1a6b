/** A piece of work, and how many processors it keeps busy; `alone`: nothing runs beside it. */
export interface Job {
  readonly processors: number | "alone"
  readonly run: () => Promise<void>
}

/**
 * Runs jobs side by side, begun in their order, as far as the processors go; a job that wants more than there are runs
 * alone. Once `stopped` none begins any more.
 */
export const run = async (
  jobs: ReadonlyArray<Job>,
  processors: number,
  stopped: () => boolean
): Promise<void> => {
  const running = new Map<Job, Promise<void>>()
  const needed = ({ processors: wanted }: Job): number =>
    wanted === "alone" ? processors : Math.min(wanted, processors)
  const inUse = (): number => [...running.keys()].reduce((sum, job) => sum + needed(job), 0)
  for (const job of jobs) {
    while (running.size > 0 && inUse() + needed(job) > processors) await Promise.race(running.values())
    if (stopped()) break
    running.set(
      job,
      job.run().finally(() => running.delete(job))
    )
  }
  await Promise.all(running.values())
}
