import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

interface Ban {
  readonly name: string
  readonly where: RegExp
  readonly pattern: RegExp
  /** Code that must be caught, so that the ban is known to work. */
  readonly planted: string
  /** The searched part of a file. Default: code without comments and string literals. */
  readonly read?: (text: string) => string
}

const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|[^:"'`])\/\/.*$/gm, "$1")

const withoutText = (code: string): string => code.replace(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g, '""')

const everywhere = /^src\//
const domain = /^src\/domain\//
/** EventLoop.ts concerns the event loop itself, and is tested under any host. */
const pure = /^src\/(domain|application)\/(?!runtime\/EventLoop\.ts$)/

const bans: ReadonlyArray<Ban> = [
  { name: "wall clock", where: pure, pattern: /\bDate\.now\b|\bnew Date\b/, planted: "const t = Date.now()" },
  { name: "performance clock", where: pure, pattern: /\bperformance\.now\b/, planted: "performance.now()" },
  { name: "randomness", where: pure, pattern: /\bMath\.random\b/, planted: "Math.random()" },
  {
    name: "platform randomness",
    where: domain,
    pattern: /\brandomBytes\b|\bgetRandomValues\b|\brandomUUID\b/,
    planted: "crypto.getRandomValues(bytes)"
  },
  { name: "the process", where: pure, pattern: /\bprocess\b\s*[.[]/, planted: "process.env.X" },
  { name: "global state", where: pure, pattern: /\bglobalThis\b/, planted: "globalThis.fetch(url)" },
  {
    name: "running effects",
    where: pure,
    // A fiber that outlives its parent runs with the parent's services.
    pattern: /\bEffect\.run(?!ForkWith\(fiber\.context\))[A-Z]/,
    planted: "Effect.runForkWith(context)(program)"
  },
  {
    name: "timers",
    where: pure,
    pattern: /\bset(Timeout|Interval|Immediate)\s*\(/,
    planted: "setTimeout(f)"
  },
  {
    name: "the effect barrel",
    where: everywhere,
    read: withoutComments,
    pattern: /from\s+["']effect["']|import\(\s*["']effect["']\s*\)/,
    planted: 'import { Effect } from "effect"'
  },
  {
    name: "any",
    where: everywhere,
    pattern: /\bas\s+any\b|:\s*any\b|<any\b|\bany>/,
    planted: "const x = y as any"
  },
  {
    name: "casts through unknown",
    where: everywhere,
    pattern: /\bas\s+unknown\s+as\b/,
    planted: "y as unknown as X"
  },
  {
    name: "EntryPoint version by name",
    // Differences between versions are fields of EntryPointSpec.
    where: /^src\/(?!domain\/erc4337\/entrypoint\/)/,
    read: withoutComments,
    pattern: /["'`](v0\.\d+|0\.[6-9])["'`]|\b[vV]ersion\s*[!=]==\s*["'`]/,
    planted: 'version === "v0.6" ? 20 : 52'
  },
  // These hide in comments.
  {
    name: "compiler escapes",
    where: everywhere,
    read: (text) => text,
    pattern: /@ts-(ignore|expect-error|nocheck)/,
    planted: "// @ts-ignore"
  },
  {
    name: "left-overs",
    where: everywhere,
    read: (text) => text,
    pattern: /\b(TODO|FIXME|XXX|HACK)\b/,
    planted: ["// TO", "DO later"].join("")
  }
]

const everyFile = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(root.length).replaceAll("\\", "/"))

const sources = everyFile
  .filter((path) => path.endsWith(".ts") && !path.endsWith(".generated.ts"))
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }))

describe("source text", () => {
  it("is found", () => {
    expect(sources.length).toBeGreaterThan(50)
  })

  for (const ban of bans) {
    const read = ban.read ?? ((text: string) => withoutText(withoutComments(text)))
    it(`source text has no ${ban.name}`, () => {
      const offenders = sources
        .filter(({ path, text }) => ban.where.test(path) && ban.pattern.test(read(text)))
        .map(({ path }) => path)
      expect(offenders).toEqual([])
    })
    it(`would be caught with ${ban.name}`, () => {
      expect(ban.pattern.test(read(ban.planted))).toBe(true)
    })
  }
})

/** Rooms in which one file is all of a technology. */
const single = ["src/adapters/native", "src/adapters/redis"]

/** The package's surface, and the modules that choose the adapters. */
const joining = ["src/index.ts", "src/hosts/Running.ts", "src/hosts/Wiring.ts"]

const mostFiles = 15
const mostImports = 41

/** Folders with too many files or a single one. */
const misshapen = (paths: ReadonlyArray<string>): ReadonlyArray<string> => {
  const files = new Map<string, number>()
  const parents = new Set<string>()
  for (const path of paths) {
    const folder = path.slice(0, path.lastIndexOf("/"))
    files.set(folder, (files.get(folder) ?? 0) + 1)
    parents.add(folder.slice(0, folder.lastIndexOf("/")))
  }
  return [...files].flatMap(([folder, count]) =>
    count > mostFiles || (count === 1 && !parents.has(folder)) ? [folder] : []
  )
}

const importsOf = (text: string): number =>
  new Set([...text.matchAll(/^(?:import|export|\}) (?:[^"]* )?from "([^"]+)"/gm)].map(([, from]) => from))
    .size

describe("the shape of the source", () => {
  it("source folders have 2 to 15 files", () => {
    const found = misshapen(everyFile.filter((path) => !path.endsWith(".generated.ts")))
    expect(found.filter((folder) => !single.includes(folder))).toEqual([])
  })

  it("a crowded folder and a folder of one file would be caught", () => {
    const crowd = Array.from({ length: mostFiles + 1 }, (_, n) => `src/crowded/File${n}.ts`)
    expect(misshapen([...crowd, "src/lonely/File.ts", "src/fine/A.ts", "src/fine/B.ts"])).toEqual([
      "src/crowded",
      "src/lonely"
    ])
  })

  it(`source files import at most ${mostImports} modules`, () => {
    const greedy = sources.filter(({ text }) => importsOf(text) > mostImports).map(({ path }) => path)
    expect(greedy.filter((path) => !joining.includes(path))).toEqual([])
  })

  it("imports of every form are counted, each module once", () => {
    const text = [
      'import type { A } from "./A.js"',
      'import * as B from "./B.js"',
      'import {\n  type C,\n  d\n} from "./C.js"',
      'export * as B from "./B.js"'
    ].join("\n")
    expect(importsOf(text)).toBe(3)
  })

  it("requests and failures have one file of their name", () => {
    for (const name of ["Requests.ts", "Failure.ts"])
      expect(everyFile.filter((path) => path.endsWith(`/${name}`))).toHaveLength(1)
  })
})
