import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

/**
 * Reads CPU profiles from `npm run bench -- --profile FOLDER`: `npx tsx bench/profile.ts FOLDER/claim`. Prints self time by
 * package, file and function, and castellan's functions with their callees (once per stack).
 */

interface Node {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: ReadonlyArray<number>
}

interface Profile {
  readonly nodes: ReadonlyArray<Node>
  readonly samples: ReadonlyArray<number>
  readonly timeDeltas: ReadonlyArray<number>
}

const packageOf = ({ functionName, url }: Node["callFrame"]): string => {
  const found = [...url.matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)/g)].at(-1)?.[1]
  if (found !== undefined) return found
  if (url.startsWith("node:")) return "node"
  if (url === "") return functionName.startsWith("(") ? functionName : "(V8 and native)"
  return "castellan"
}

const fileOf = ({ url }: Node["callFrame"]): string =>
  url.replace(/^.*node_modules\//, "").replace(/^file:\/\/.*?\/src\//, "src/")

const placeOf = (frame: Node["callFrame"]): string =>
  `${frame.functionName || "(anonymous)"} ${fileOf(frame)}:${frame.lineNumber + 1}`

const add = (map: Map<string, number>, key: string, value: number) =>
  map.set(key, (map.get(key) ?? 0) + value)

const folder = process.argv[2] ?? "."
const file = readdirSync(folder).find((name) => name.endsWith(".cpuprofile"))
if (file === undefined) throw new Error(`no profile in ${folder}`)
const profile: Profile = JSON.parse(readFileSync(join(folder, file), "utf8"))
const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
const parents = new Map(
  profile.nodes.flatMap(({ children, id }) => (children ?? []).map((child) => [child, id]))
)
const idle = new Set(["(idle)", "(program)", "(root)"])

const [packages, files, functions, inclusive] = [new Map(), new Map(), new Map(), new Map()] as ReadonlyArray<
  Map<string, number>
> as [Map<string, number>, Map<string, number>, Map<string, number>, Map<string, number>]
let busy = 0
for (const [n, id] of profile.samples.entries()) {
  const micros = profile.timeDeltas[n] ?? 0
  const frame = nodes.get(id)?.callFrame
  if (frame === undefined || idle.has(frame.functionName)) continue
  busy += micros
  add(packages, packageOf(frame), micros)
  add(files, fileOf(frame) || frame.functionName, micros)
  add(functions, placeOf(frame), micros)
  const seen = new Set<string>()
  for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
    const above = nodes.get(at)?.callFrame
    if (above !== undefined && above.url !== "") seen.add(placeOf(above))
  }
  for (const place of seen) add(inclusive, place, micros)
}

const print = (title: string, map: ReadonlyMap<string, number>, most: number) => {
  console.log(`\n${title}`)
  const sorted = [...map].sort(([, one], [, other]) => other - one).slice(0, most)
  for (const [name, micros] of sorted)
    console.log(`${((100 * micros) / busy).toFixed(1).padStart(6)} %  ${name}`)
}

console.log(
  `${relative(fileURLToPath(new URL("..", import.meta.url)), file)}: busy for ${(busy / 1e6).toFixed(1)} s`
)
print("by package, self time", packages, 25)
print("by file, self time", files, 30)
print("by function, self time", functions, 40)
const own = new Map([...inclusive].filter(([place]) => place.includes(" src/")))
print("castellan's functions with what they call", own, 60)
const theirs = new Map([...inclusive].filter(([place]) => !place.includes(" src/")))
print("others' functions with what they call", theirs, 60)
