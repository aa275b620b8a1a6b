import * as Result from "effect/Result"

/**
 * For each element, by index, the element that must succeed before it; null: none. Each has at most one dependency, so
 * dependent elements form trees.
 */
export type Dependencies = ReadonlyArray<number | null>

/** The index of the element with an invalid dependency, and why. */
export interface Problem {
  readonly index: number
  readonly message: string
}

/** `Failure`: a dependency is out of range, the element itself, or part of a cycle. */
export const check = (dependencies: Dependencies): Result.Result<void, Problem> => {
  const last = dependencies.length - 1
  for (const [index, on] of dependencies.entries()) {
    if (on === null) continue
    if (last > 0 && (!Number.isInteger(on) || on < 0 || on > last))
      return Result.fail({ index, message: `expected the index of another operation, 0 to ${last}` })
    if (last === 0 && on !== index)
      return Result.fail({ index, message: "there is no other operation on which it could depend" })
    if (on === index) return Result.fail({ index, message: "an operation cannot depend on itself" })
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

/** The cycle that begins at this element. */
const walk = (dependencies: Dependencies, from: number): ReadonlyArray<number> => {
  const path = [from]
  for (let at = dependencies[from] ?? from; at !== from; at = dependencies[at] ?? from) path.push(at)
  return [...path, from]
}

/** The dependencies among these elements only. */
export const within = (dependencies: Dependencies, elements: Iterable<number>): Dependencies => {
  const among: ReadonlySet<number | null> = new Set(elements)
  return dependencies.map((on, index) => (among.has(index) && among.has(on) ? on : null))
}

/**
 * The execution order of these elements: as given, but each behind its dependency. An element that comes too early waits
 * for its dependency; the others keep their places. Each element once, if the dependencies passed `check`.
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

/** For each element, by index, the root of its tree. */
export const components = (dependencies: Dependencies): ReadonlyArray<number> => {
  const root: Array<number> = []
  for (const index of order(dependencies)) {
    const on = dependencies[index] ?? null
    root[index] = on === null ? index : (root[on] ?? on)
  }
  return root
}

/** As `order`, but each tree in one piece, at the place of its first element: for elements that need several transactions. */
export const orderByTree = (
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

/** As `order`, sorted by depth in the tree: for elements that run one after the other. */
export const orderByDepth = (
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
