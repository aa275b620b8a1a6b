import type { BuildOptions } from "esbuild"

/** How the service's processes are bundled: native and optional packages stay where npm has them. */
export const bundling = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  // Loaded when they are there, or by what is native.
  external: [
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
  ],
  // Packages in the form of CommonJS ask for Node's own modules by `require`.
  banner: {
    js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);'
  },
  logLevel: "warning"
} satisfies BuildOptions
