import { readFileSync } from "node:fs"
import type { BuildOptions } from "esbuild"

const manifest: {
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
} = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))

/** Packages that npm puts beside castellan; of others the parts in use are in its own files. */
export const installed: ReadonlyArray<string> = [
  ...Object.keys(manifest.dependencies),
  ...Object.keys(manifest.optionalDependencies)
]

/** What packages in the form of CommonJS ask for Node's own modules by. */
export const requireOf =
  'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);'

/** How the service's processes are bundled, with `effect`: a thousand modules less to find and to read. */
export const bundling = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  external: ["swagger-ui-dist", ...installed.filter((name) => name !== "effect")],
  banner: { js: requireOf },
  logLevel: "warning"
} satisfies BuildOptions
