import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type BuildOptions, build, type Plugin } from "esbuild"
import { bundling } from "./Bundling.js"
import { bundled } from "./Licences.js"

/**
 * Puts the service's process, the command line and what they load into a few files in the place of those that `tsc` has
 * built: a thousand modules less to find and to read, and of packages that nothing else needs the parts in use, so that
 * nobody has to install them. Native and optional packages stay where npm has them. `npx tsx tools/bundle.ts FOLDER`.
 */

const [folder = fileURLToPath(new URL("../dist", import.meta.url))] = process.argv.slice(2)
const hosts = join(folder, "hosts")

/**
 * A module that looks for files beside itself still finds them: each file of the bundle stands in a folder of `hosts`, from
 * which the way to the module's own place is the same.
 */
const places: Plugin = {
  name: "places",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      if (!path.startsWith(folder)) return undefined
      const contents = readFileSync(path, "utf8")
      if (!contents.includes("import.meta.url")) return undefined
      const own = `new URL(${JSON.stringify(relative(join(hosts, "node"), path).replace(/^(?!\.)/, "../node/"))}, import.meta.url).href`
      return { contents: contents.replaceAll("import.meta.url", own), resolveDir: dirname(path) }
    })
  }
}

const common = { ...bundling, allowOverwrite: true, metafile: true } satisfies BuildOptions

const processes = await build({
  ...common,
  entryPoints: { "node/main": join(hosts, "node/main.js"), "cli/castellan": join(hosts, "cli/castellan.js") },
  outdir: hosts,
  splitting: true,
  chunkNames: "node/service-[hash]",
  plugins: [places]
})

/** Modules that programs that embed castellan load when they want them, each with what stands in its folder. */
const late = ["adapters/cluster/Replicas.js", "hosts/admin/Admin.js", "hosts/telemetry/Otlp.js"].map((path) =>
  join(folder, path)
)

/** Other modules of castellan, and what those programs install anyway, stay as they are. */
const embedded: Plugin = {
  name: "embedded",
  setup: ({ onResolve }) => {
    onResolve({ filter: /^(effect|@effect\/(platform|sql))(\/|$)|^node:/ }, () => ({ external: true }))
    onResolve({ filter: /^\.\.\// }, ({ importer, path }) => {
      const home = late.map(dirname).find((at) => importer.startsWith(`${at}/`))
      if (home === undefined) return undefined
      const from = relative(home, join(dirname(importer), path))
      return from.startsWith("../") ? { external: true, path: from } : undefined
    })
  }
}

const parts = await build({
  ...common,
  entryPoints: late,
  outdir: folder,
  outbase: folder,
  plugins: [embedded]
})

/** The modules of the command line are in the bundle now, and nobody's else. */
for (const entry of readdirSync(join(hosts, "cli")))
  if (entry !== "castellan.js") rmSync(join(hosts, "cli", entry), { recursive: true })

/** The folders of the packages of which there are parts in the bundle. */
const packages = new Set(
  [processes, parts]
    .flatMap(({ metafile }) => Object.values(metafile.outputs))
    .flatMap(({ inputs }) =>
      Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => {
        const found = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]
        return found === undefined || bytesInOutput === 0 ? [] : [found]
      })
    )
)

const manifestOf = (path: string) => JSON.parse(readFileSync(join(path, "package.json"), "utf8"))
const installed = manifestOf(fileURLToPath(new URL("..", import.meta.url)))
const undeclared = Object.keys(installed.devDependencies).filter(
  (name) => !bundled.includes(name) && [...packages].some((path) => path.endsWith(`node_modules/${name}`))
)
if (undeclared.length > 0) throw new Error(`tools/bundled.json lacks ${undeclared.join(", ")}`)

const notice = (path: string): string => {
  const at = fileURLToPath(new URL(path, pathToFileURL(`${process.cwd()}/`)))
  const { license, name, version } = manifestOf(at)
  const texts = readdirSync(at)
    .filter((file) => /^(licen[cs]e|notice)/i.test(file))
    .map((file) => readFileSync(join(at, file), "utf8").trim())
  return [`${name} ${version} (${license})`, ...texts].join("\n\n")
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
