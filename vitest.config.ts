import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import Sequencer from "./test/support/run/Sequencer.js"

const source = (path: string) => fileURLToPath(new URL(`src/${path}`, import.meta.url))

export default defineConfig({
  // The package under its own name, as programs that embed it write it.
  resolve: {
    alias: [
      { find: /^castellan$/, replacement: source("index.ts") },
      { find: /^castellan\/client$/, replacement: source("client/Client.ts") },
      { find: /^castellan\/http$/, replacement: source("hosts/web/Http.ts") },
      { find: /^castellan\/passkeys$/, replacement: source("client/Passkeys.ts") },
      { find: /^castellan\/promise$/, replacement: source("hosts/web/Promise.ts") }
    ]
  },
  test: {
    include: ["test/**/*.test.ts"],
    // Setup files one after the other: each undoes and wraps what those before it have left as it was.
    sequence: { setupFiles: "list", sequencer: Sequencer },
    setupFiles: ["test/support/run/setup.ts", "test/support/secrets/setup.ts", "test/support/http/setup.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    poolOptions: { forks: { maxForks: 3 } },
    reporters: ["default"]
  }
})
