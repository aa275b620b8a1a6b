import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { build, type Plugin } from "esbuild"
import { joined } from "./Joined.js"

/**
 * Bundles the executables, the service's process and the command line, into `dist/executable`, next to the modules that
 * programs import. `dist/hosts` keeps the entry points, which check Node's version before they load anything else.
 * docs/dependencies.md states the savings.
 */

const root = fileURLToPath(new URL("..", import.meta.url))
const dist = join(root, "dist")

/** Lets modules find files relative to their original place. */
const places: Plugin = {
  name: "places",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      const text = path.startsWith(dist) ? readFileSync(path, "utf8") : ""
      if (!text.includes("import.meta.url")) return undefined
      const own = `new URL(${JSON.stringify(`../${relative(dist, path)}`)}, import.meta.url).href`
      return { contents: text.replaceAll("import.meta.url", own), loader: "js" }
    })
  }
}

const { metafile } = await build({
  ...joined,
  entryPoints: ["node/main", "cli/castellan"].map((entry) => join(dist, `hosts/${entry}.js`)),
  outbase: dist,
  outdir: dist,
  allowOverwrite: true,
  chunkNames: "executable/[name]-[hash]",
  // Keeps names, for stack traces.
  minifyWhitespace: true,
  lineLimit: 160,
  plugins: [places],
  metafile: true
})

/** Packages with code in these files, by path below node_modules. */
const packages = new Set(
  Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => {
      const [, found] = /^.*?node_modules\/((?:.*node_modules\/)?(?:@[^/]+\/)?[^/]+)/.exec(path) ?? []
      return found === undefined || bytesInOutput === 0 ? [] : [found]
    })
  )
)

/** A package's name, version, licence and required notices. */
const notice = (place: string): string => {
  const at = join(root, "node_modules", place)
  const { license, name, version } = JSON.parse(readFileSync(join(at, "package.json"), "utf8"))
  const files = readdirSync(at).filter((file) => /^(licen[cs]e|notice)/i.test(file))
  return [
    `${name} ${version} (${license})`,
    ...files.map((file) => readFileSync(join(at, file), "utf8").trim())
  ].join("\n\n")
}

writeFileSync(
  join(dist, "executable/LICENSES.txt"),
  `${["Packages with code in the files of this folder.", ...[...packages].sort().map(notice)].join(
    `\n\n${"-".repeat(80)}\n\n`
  )}\n`
)
