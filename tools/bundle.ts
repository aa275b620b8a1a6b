import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type BuildOptions, build, type Plugin } from "esbuild"
import { bundling, installed, requireOf } from "./Bundling.js"
import * as Declarations from "./Declarations.js"
import { bundled } from "./Licences.js"

/**
 * Puts what `tsc` has built into few files, with the parts in use of packages that nobody has to install: the service's
 * process and the command line with all that they load, and the modules that programs import. Native and optional
 * packages, and those whose own updates matter to operators, stay where npm has them. Modules and declarations that
 * nothing leads to any more are removed. `npx tsx tools/bundle.ts FOLDER`.
 */

const root = fileURLToPath(new URL("..", import.meta.url))
const [folder = join(root, "dist")] = process.argv.slice(2)
const hosts = join(folder, "hosts")

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly exports: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}
const manifestOf = (path: string): Manifest => JSON.parse(readFileSync(join(path, "package.json"), "utf8"))
const own = manifestOf(root)

/**
 * A module that looks for files beside itself still finds them: it is told its own place from that of the file in which it
 * is now.
 */
const places: Plugin = {
  name: "places",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      if (!path.startsWith(folder)) return undefined
      const contents = readFileSync(path, "utf8")
      if (!contents.includes("import.meta.url")) return undefined
      const at = `new URL(${JSON.stringify(`@built/${relative(folder, path)}`)}, import.meta.url).href`
      return { contents: contents.replaceAll("import.meta.url", at), resolveDir: dirname(path) }
    })
  }
}

const common = {
  ...bundling,
  // Put where it is needed: there are modules that also run without Node.
  banner: {},
  splitting: true,
  outdir: folder,
  outbase: folder,
  plugins: [places]
} satisfies BuildOptions

const bundle = async (options: BuildOptions) => {
  const { metafile, outputFiles } = await build({ ...common, ...options, write: false, metafile: true })
  const files = outputFiles.map(({ path, text }) => {
    const [shebang = ""] = /^#!.*\n/.exec(text) ?? []
    const code = text
      .slice(shebang.length)
      .replaceAll('"@built/', `"${relative(dirname(path), folder).replace(/^(?!\.)/, "./")}/`)
    return { path, text: shebang + (/\b__require = /.test(code) ? `${requireOf}\n` : "") + code }
  })
  return { files, metafile }
}

const processes = await bundle({
  entryPoints: [join(hosts, "node/main.js"), join(hosts, "cli/castellan.js")],
  chunkNames: "hosts/node/service-[hash]"
})

const modules = Object.values(own.exports).filter((path) => path.endsWith(".js"))

/** Modules of castellan that run in browsers stay as they are. */
const isClient = (path: string): boolean => path.startsWith("./dist/client/")

/** Modules that a part of the service loads when it is configured. */
const late = ["adapters/cluster/Replicas.js", "hosts/admin/Admin.js", "hosts/telemetry/Otlp.js"]

/** What programs import shares its modules, and `effect` with the program. */
const library = await bundle({
  entryPoints: [
    ...modules.filter((path) => !isClient(path)).map((path) => join(folder, relative("dist", path))),
    ...late.map((path) => join(folder, path))
  ],
  chunkNames: "modules/[name]-[hash]",
  external: ["swagger-ui-dist", ...installed]
})

const built = new Map([...processes.files, ...library.files].map(({ path, text }) => [path, text]))
for (const [path, text] of built) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

const declarations = Declarations.reachable(
  folder,
  modules.map((path) => join(folder, relative("dist", path).replace(/\.js$/, ".d.ts"))),
  [...installed, ...Object.keys(own.peerDependencies)]
)
for (const entry of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
  const path = join(folder, entry)
  const isKept = entry.endsWith(".d.ts")
    ? declarations.has(path)
    : built.has(path) || /^client\/|\/swagger-ui\//.test(entry)
  if (/\.(js|d\.ts)$/.test(entry) && !isKept) rmSync(path)
}
const prune = (at: string): void => {
  for (const entry of readdirSync(at, { withFileTypes: true }))
    if (entry.isDirectory()) prune(join(at, entry.name))
  if (readdirSync(at).length === 0) rmdirSync(at)
}
prune(folder)

/** The packages of which there are parts in these files, by their places below node_modules. */
const packages = new Set(
  [processes, library]
    .flatMap(({ metafile }) => Object.values(metafile.outputs))
    .flatMap(({ inputs }) =>
      Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => {
        const found = /^.*?node_modules\/((?:.*node_modules\/)?(?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]
        return found === undefined || bytesInOutput === 0 ? [] : [found]
      })
    )
)
for (const name of declarations.packages) packages.add(name)

const undeclared = [...packages].filter((name) => !bundled.includes(name) && !installed.includes(name))
const absent = bundled.filter((name) => !packages.has(name))
if (undeclared.length > 0) throw new Error(`tools/bundled.json lacks ${undeclared.join(", ")}`)
if (absent.length > 0) throw new Error(`tools/bundled.json has ${absent.join(", ")}, which nothing uses`)

const notice = (name: string): string => {
  const at = fileURLToPath(new URL(`node_modules/${name}`, pathToFileURL(root)))
  const { license, version } = manifestOf(at)
  const texts = readdirSync(at)
    .filter((file) => /^(licen[cs]e|notice)/i.test(file))
    .map((file) => readFileSync(join(at, file), "utf8").trim())
  return [`${manifestOf(at).name} ${version} (${license})`, ...texts].join("\n\n")
}

writeFileSync(
  join(folder, "LICENSES.txt"),
  `Packages of which there are parts in the files of this folder and those below it, and their licences.\n\n${[
    ...packages
  ]
    .sort()
    .map(notice)
    .join(`\n\n${"-".repeat(80)}\n\n`)}\n`
)
