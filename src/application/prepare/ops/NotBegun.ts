import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import type { Block } from "../../ports/chain/ChainRpc.js"
import type { Window } from "../../ports/journal/Records.js"
import type { Schedule } from "../../ports/journal/Requests.js"
import { hasBegun } from "./Windows.js"

/** The chain's clock, from its latest block. */
export type Clock = Pick<Block, "timestamp">

/** The last second that a request can wait for, in 2286. Times in milliseconds are later, and would never come. */
const latestSeconds = 9_999_999_999

/** Shortest and longest poll interval for a chain whose clock is behind, milliseconds. */
const shortestMillis = 1_000
const longestMillis = 30_000

/**
 * Selects the elements whose windows have not begun by the chain's clock, with the Unix seconds that they wait for.
 * Elements that are executed together wait for the last of them. `isApart`: each waits for its own window and those of
 * its dependencies. A window after `latestSeconds` is not waited for.
 */
export const until = (
  elements: ReadonlyArray<number>,
  windowOf: (index: number) => Window | null,
  dependencies: Dependencies.Dependencies,
  { isApart, timestamp, version }: Clock & { readonly isApart: boolean; readonly version: Version }
): ReadonlyMap<number, number> => {
  const own = (index: number) => {
    const { validAfter = 0 } = windowOf(index) ?? {}
    return hasBegun(validAfter, { timestamp }, version) ? 0 : validAfter
  }
  const planned = elements.filter((index) => own(index) <= latestSeconds)
  const times = new Map(planned.map((index) => [index, own(index)]))
  if (isApart)
    for (const index of Dependencies.order(dependencies, planned))
      times.set(index, Math.max(times.get(index) ?? 0, times.get(dependencies[index] ?? -1) ?? 0))
  else {
    const components = Dependencies.components(dependencies)
    const last = new Map<number, number>()
    for (const [index, time] of times) {
      const component = components[index] ?? index
      last.set(component, Math.max(last.get(component) ?? 0, time))
    }
    for (const index of planned) times.set(index, last.get(components[index] ?? index) ?? 0)
  }
  return new Map([...times].filter(([, time]) => time > 0))
}

/** When waiting elements resume: with their first by the chain's clock, later if it lags the service's. */
export const schedule = (
  scheduled: ReadonlyMap<number, number>,
  { timestamp }: Clock,
  now: number
): Schedule => {
  const notBefore = Math.min(...scheduled.values())
  const left = Math.min(Math.max((notBefore - timestamp) * 1_000, shortestMillis), longestMillis)
  const ahead = Math.max(timestamp * 1_000 - now, 0)
  return { notBefore, dueAt: Math.max(notBefore * 1_000 - ahead + shortestMillis, now + left) }
}
