import { readFileSync } from "node:fs"
import type { BuildOptions } from "esbuild"

const { peerDependencies }: { readonly peerDependencies: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8")
)

/**
 * Bundles a program's modules and the used parts of packages into few files: a thousand fewer files to find and read, and
 * half the memory. Packages with CommonJS, native or optional parts stay outside.
 */
export const joined = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node22",
  splitting: true,
  external: [...["hash-wasm", "secp256k1", "swagger-ui-dist", "undici"], ...Object.keys(peerDependencies)],
  // CommonJS packages load Node's modules with `require`.
  banner: {
    js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);'
  },
  logLevel: "warning"
} satisfies BuildOptions
