import * as Result from "effect/Result"

/**
 * For each element, by index, the one that has to succeed before it is executed; null: none. Each has one at most, so
 * that what hangs together is a tree.
 */
export type Dependencies = ReadonlyArray<number | null>

/** Why these are no dependencies: which element names the wrong one. */
export interface Problem {
  readonly index: number
  readonly message: string
}

/** `Failure`: one is out of range, the element itself, or part of a cycle. */
export const check = (dependencies: Dependencies): Result.Result<void, Problem> => {
  const last = dependencies.length - 1
  for (const [index, on] of dependencies.entries()) {
    if (on === null) continue
    if (last > 0 && (!Number.isInteger(on) || on < 0 || on > last))
      return Result.fail({ index, message: `expected the index of another operation, 0 to ${last}` })
    if (last === 0 && on !== index)
      return Result.fail({ index, message: "there is no other operation on which it could depend" })
    if (on === index) return Result.fail({ index, message: "an operation can not depend on itself" })
  }
  const sound = new Set<number>()
  for (const start of dependencies.keys()) {
    const path: Array<number> = []
    const seen = new Set<number>()
    let at: number | null = start
    while (at !== null && !sound.has(at)) {
      if (seen.has(at)) {
        const cycle = path.slice(path.indexOf(at))
        const index = Math.min(...cycle)
        return Result.fail({
          index,
          message: `operations depend on each other: ${walk(dependencies, index).join(" -> ")}`
        })
      }
      seen.add(at)
      path.push(at)
      at = dependencies[at] ?? null
    }
    for (const index of path) sound.add(index)
  }
  return Result.succeed(undefined)
}

/** Once around the cycle that begins at this element. */
const walk = (dependencies: Dependencies, from: number): ReadonlyArray<number> => {
  const path = [from]
  for (let at = dependencies[from] ?? from; at !== from; at = dependencies[at] ?? from) path.push(at)
  return [...path, from]
}

/** The same without dependencies on what is not among these elements. */
export const within = (dependencies: Dependencies, elements: Iterable<number>): Dependencies => {
  const among: ReadonlySet<number | null> = new Set(elements)
  return dependencies.map((on, index) => (among.has(index) && among.has(on) ? on : null))
}

/**
 * The order in which these elements are executed: as they are given, but each behind the one it depends on. One that
 * comes too early waits until that is done; the others keep their places. All of them, once, if they were `check`ed.
 */
export const order = (
  dependencies: Dependencies,
  elements: Iterable<number> = dependencies.keys()
): ReadonlyArray<number> => {
  const wanted = [...elements]
  const inner = within(dependencies, wanted)
  const position = new Map(wanted.map((index, place) => [index, place]))
  const place = (index: number) => position.get(index) ?? 0
  const followers = new Map<number, Array<number>>()
  const ready: Array<number> = []
  for (const index of wanted) {
    const on = inner[index] ?? null
    if (on === null) ready.push(index)
    else followers.set(on, [...(followers.get(on) ?? []), index])
  }
  const placed: Array<number> = []
  for (let next = ready.shift(); next !== undefined; next = ready.shift()) {
    placed.push(next)
    const freed = followers.get(next)
    if (freed === undefined) continue
    ready.push(...freed)
    ready.sort((a, b) => place(a) - place(b))
  }
  return placed
}

/** For each element, by index, the one at the root of its tree: the same for all that hang together, by however many steps. */
export const components = (dependencies: Dependencies): ReadonlyArray<number> => {
  const root: Array<number> = []
  for (const index of order(dependencies)) {
    const on = dependencies[index] ?? null
    root[index] = on === null ? index : (root[on] ?? on)
  }
  return root
}

/**
 * As `order`, with what hangs together in one piece, where its first element is: for those that do not fit into one
 * transaction otherwise.
 */
export const gathered = (
  dependencies: Dependencies,
  elements: Iterable<number> = dependencies.keys()
): ReadonlyArray<number> => {
  const placed = order(dependencies, elements)
  const root = components(within(dependencies, placed))
  const pieces = new Map<number, Array<number>>()
  for (const index of placed) {
    const at = root[index] ?? index
    const piece = pieces.get(at)
    if (piece === undefined) pieces.set(at, [index])
    else piece.push(index)
  }
  return [...pieces.values()].flat()
}

/** As `order`, with an element behind all that wait for fewer others: for those that are executed one after the other. */
export const layered = (
  dependencies: Dependencies,
  elements: Iterable<number> = dependencies.keys()
): ReadonlyArray<number> => {
  const placed = order(dependencies, elements)
  const depths = new Map<number | null, number>()
  for (const index of placed) depths.set(index, (depths.get(dependencies[index] ?? null) ?? -1) + 1)
  return placed.toSorted((one, other) => (depths.get(one) ?? 0) - (depths.get(other) ?? 0))
}

/** Whether anything depends on anything. */
export const any = (dependencies: Dependencies): boolean => dependencies.some((on) => on !== null)
