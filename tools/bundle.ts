import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { build, type Plugin } from "esbuild"

/**
 * Puts the service's process and what it loads into a few files beside the entry that `tsc` has built: a thousand
 * modules less to find and to read, and nothing of packages that is not used. Native and optional packages stay where
 * npm has them. `npx tsx tools/bundle.ts FOLDER`: `FOLDER/hosts/node/main.js` becomes the bundle's entry.
 */

const [folder = fileURLToPath(new URL("../dist", import.meta.url))] = process.argv.slice(2)
const outdir = join(folder, "hosts/node")

/** Loaded when they are there, or by what is native. */
const external = [
  "@aws-sdk/*",
  "@azure/*",
  "@fireblocks/*",
  "@google-cloud/*",
  "better-sqlite3",
  "ioredis",
  "pg",
  "pg-cursor",
  "pkcs11js",
  "swagger-ui-dist",
  "undici"
]

/** A module that looks for files beside itself still finds them: `import.meta.url` is where the bundle is. */
const places: Plugin = {
  name: "places",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      if (!path.startsWith(folder)) return undefined
      const contents = readFileSync(path, "utf8")
      if (!contents.includes("import.meta.url")) return undefined
      const own = `new URL(${JSON.stringify(relative(outdir, path))}, import.meta.url).href`
      return { contents: contents.replaceAll("import.meta.url", own), resolveDir: dirname(path) }
    })
  }
}

const { metafile } = await build({
  entryPoints: { main: join(outdir, "main.js") },
  outdir,
  allowOverwrite: true,
  bundle: true,
  splitting: true,
  metafile: true,
  chunkNames: "service-[hash]",
  format: "esm",
  platform: "node",
  target: "node20",
  external,
  plugins: [places],
  // Packages in the form of CommonJS ask for Node's own modules by `require`.
  banner: {
    js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);'
  },
  logLevel: "warning"
})

/** The folders of the packages of which there are parts in the bundle. */
const packages = new Set(
  Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => {
      const found = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]
      return found === undefined || bytesInOutput === 0 ? [] : [found]
    })
  )
)

const notice = (path: string): string => {
  const at = fileURLToPath(new URL(path, pathToFileURL(`${process.cwd()}/`)))
  const manifest = join(at, "package.json")
  if (!existsSync(manifest)) throw new Error(`${path} is no package`)
  const { license, name, version } = JSON.parse(readFileSync(manifest, "utf8"))
  const texts = readdirSync(at)
    .filter((file) => /^(licen[cs]e|notice)/i.test(file))
    .map((file) => readFileSync(join(at, file), "utf8").trim())
  return [`${name} ${version} (${license})`, ...texts].join("\n\n")
}

writeFileSync(
  join(outdir, "LICENSES.txt"),
  `Packages of which there are parts in the files of this folder, and their licences.\n\n${[...packages]
    .sort()
    .map(notice)
    .join(`\n\n${"-".repeat(80)}\n\n`)}\n`
)
