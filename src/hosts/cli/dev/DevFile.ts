import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { DevInfo } from "./DevStack.js"

/** File in which `castellan dev` publishes its addresses and keys. */
export const path = (folder: string): string => join(folder, ".castellan", "dev.json")

const textOf = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return "null"
  }
}

/** The stack running in this folder; null: none. */
export const read = (folder: string): DevInfo | null => {
  try {
    return JSON.parse(textOf(path(folder)))
  } catch {
    return null
  }
}

/**
 * Writes the file atomically and readable only by its owner. Removes it when the scope closes, unless another stack has
 * replaced it.
 */
export const publish = (
  folder: string,
  info: DevInfo
): Effect.Effect<string, { readonly message: string }, Scope.Scope> => {
  const file = path(folder)
  const text = `${JSON.stringify(info, null, 2)}\n`
  const fresh = `${file}.${process.pid}`
  return Effect.acquireRelease(
    Effect.try({
      try: () => {
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
        chmodSync(dirname(file), 0o700)
        writeFileSync(fresh, text, { mode: 0o600 })
        renameSync(fresh, file)
        return file
      },
      catch: (cause) => {
        if (existsSync(fresh)) rmSync(fresh)
        const code = cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : ""
        return { message: `${file} cannot be written${code}` }
      }
    }),
    () =>
      Effect.sync(() => {
        if (textOf(file) !== text) return
        rmSync(file)
        if (readdirSync(dirname(file)).length === 0) rmdirSync(dirname(file))
      })
  )
}
