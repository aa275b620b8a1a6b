import { readFileSync } from "node:fs"
import type { BuildOptions } from "esbuild"

const { peerDependencies }: { readonly peerDependencies: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8")
)

/**
 * How the modules of a program are joined into few files, with the parts of packages that they use: a thousand files less to
 * find and to read, and half the memory. Packages in the form of CommonJS, with native parts or opt-in stay where they are.
 */
export const joined = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node22",
  splitting: true,
  external: [...["hash-wasm", "secp256k1", "swagger-ui-dist", "undici"], ...Object.keys(peerDependencies)],
  // What packages in the form of CommonJS ask for Node's own modules by.
  banner: {
    js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);'
  },
  logLevel: "warning"
} satisfies BuildOptions
