import { createRequire } from "node:module"
import { dirname } from "node:path"
import { SqlError } from "@effect/sql/SqlError"
import { describe, expect, it } from "@effect/vitest"
import * as Binding from "../../../../src/adapters/sql/sqlite/Binding.js"

const require = createRequire(import.meta.url)

const thrown = (run: () => unknown): unknown => {
  try {
    run()
  } catch (cause) {
    return cause
  }
  throw new Error("it did not fail")
}

describe("a binding of SQLite that does not load", () => {
  it("is one that was not built, or for another Node", () => {
    // As better-sqlite3 loads its own.
    const bindings: (options: object) => unknown = createRequire(
      require.resolve("better-sqlite3/package.json")
    )("bindings")
    const absent = thrown(() =>
      bindings({
        bindings: "absent.node",
        module_root: dirname(require.resolve("better-sqlite3/package.json"))
      })
    )
    const other = thrown(() =>
      process.dlopen({ exports: {} }, require.resolve("better-sqlite3/package.json"))
    )
    for (const cause of [
      absent,
      other,
      new SqlError({ cause: absent, message: "the database cannot be opened" })
    ])
      expect(Binding.problem(cause)).toMatch(
        /^better-sqlite3 has no binding for Node .*npm rebuild better-sqlite3/
      )
  })

  it("is no other failure", () => {
    const Database: new (file: string) => unknown = require("better-sqlite3")
    expect(Binding.problem(thrown(() => new Database("/nowhere/at/all")))).toBeNull()
    expect(Binding.problem(undefined)).toBeNull()
  })
})
