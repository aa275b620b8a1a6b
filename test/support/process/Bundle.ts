import { createHash, randomUUID } from "node:crypto"
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { build, type Plugin } from "esbuild"
import { joined } from "../../../tools/Joined.js"

export const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Programs that tests run as processes: a bundle starts in an eighth of the time that `tsx` takes. */
const programs = [
  "src/hosts/cli/castellan.ts",
  "src/hosts/node/main.ts",
  "test/hosts/library/program.ts",
  "test/faults/support/Host.ts",
  "test/support/journal/Contender.ts",
  "test/support/journal/Writer.ts",
  "test/support/memory/LongAnswers.ts",
  "test/replicas/support/Host.ts",
  "tools/demo/demo.ts"
] as const

export type Program = (typeof programs)[number]

/** Path of the program's bundle in a folder of bundles. */
export const place = (folder: string, program: Program): string =>
  join(folder, program.replace(/\.ts$/, ".mjs"))

/** Lets a bundled module find files relative to its source. */
const places: Plugin = {
  name: "places",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8")
      if (!text.includes("import.meta.url")) return undefined
      const contents = text.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href))
      return { contents, loader: "ts", resolveDir: dirname(path) }
    })
  }
}

/** Bundles programs of `sources`, the root of this repository or a copy, into a folder. */
export const into = async (
  folder: string,
  sources: string,
  chosen: ReadonlyArray<Program> = programs
): Promise<void> => {
  await build({
    ...joined,
    entryPoints: chosen.map((program) => join(sources, program)),
    outbase: sources,
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    plugins: [places]
  })
}

const cache = join(root, "node_modules/.cache/castellan")
const prefix = "programs-"
const dayMillis = 86_400_000

/** Changes whenever a bundle's inputs may have changed. */
const ingredients = (): string => {
  const hash = createHash("sha256").update(readFileSync(join(root, "package-lock.json")))
  for (const part of ["src", "tools", "test/support", "test/hosts/library"])
    for (const path of readdirSync(join(root, part), { recursive: true, encoding: "utf8" }).sort())
      if (path.endsWith(".ts")) hash.update(path).update(readFileSync(join(root, part, path)))
  return hash.digest("hex").slice(0, 24)
}

const made = async (): Promise<string> => {
  const folder = join(cache, `${prefix}${ingredients()}`)
  if (existsSync(folder)) return folder
  // Written atomically: other processes may read or build the same bundle.
  const draft = join(cache, `${prefix}${randomUUID()}`)
  await into(draft, root)
  try {
    renameSync(draft, folder)
  } catch (error) {
    rmSync(draft, { recursive: true })
    if (!existsSync(folder)) throw error
  }
  for (const name of readdirSync(cache).filter((each) => each.startsWith(prefix))) {
    const age = Date.now() - (statSync(join(cache, name), { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
    if (age > dayMillis) rmSync(join(cache, name), { recursive: true, force: true })
  }
  return folder
}

let folder: Promise<string> | undefined

/** Path of a bundled program; each program is bundled once for all callers. */
export const of = async (program: Program): Promise<string> => {
  folder ??= made()
  return place(await folder, program)
}
