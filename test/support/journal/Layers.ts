import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as MemoryJournal from "../../../src/adapters/memory/Journal.js"
import * as SqlJournal from "../../../src/adapters/sql/Journal.js"
import * as Sqlite from "../../../src/adapters/sql/Sqlite.js"
import type { Journal } from "../../../src/application/ports/Journal.js"

/** A folder that is removed with its content when the scope ends. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "castellan-journal-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

export const options = { sealingKey: Redacted.make("a secret of the tests that is long enough") }

export const sqliteAt = (filename: string): Layer.Layer<Journal> =>
  Layer.fresh(SqlJournal.layer(options).pipe(Layer.provide(Sqlite.layer({ filename })), Layer.orDie))

/** A file of its own for every time it is provided. */
export const sqlite: Layer.Layer<Journal> = Layer.unwrapScoped(
  Effect.map(temporaryFolder, (folder) => sqliteAt(join(folder, "journal.db")))
)

export const memory: Layer.Layer<Journal> = Layer.fresh(MemoryJournal.layer)

export const adapters = [
  { name: "memory", layer: memory },
  { name: "SQLite", layer: sqlite }
]
