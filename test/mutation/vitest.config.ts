import { defineConfig } from "vitest/config"

/** The tests of pure code, without the setup of other tests. */
export default defineConfig({
  test: {
    include: [
      "test/domain/**/*.test.ts",
      "test/adapters/native/*.test.ts",
      "test/application/chain/**/*.test.ts",
      "test/application/intake/**/*.test.ts",
      "test/application/lanes/monitor/*.test.ts",
      "test/application/watches/Cursor.test.ts"
    ],
    testTimeout: 60_000
  }
})
