import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as DevFile from "../../../../src/hosts/cli/dev/DevFile.js"
import type { DevInfo } from "../../../../src/hosts/cli/dev/DevStack.js"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "castellan-dev-file-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const info = { baseUrl: "http://127.0.0.1:8080" } as DevInfo

describe("the file of a development stack", () => {
  it.effect("the dev file is readable only by its owner and removed with the stack", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const mode = yield* Effect.scoped(
        Effect.map(DevFile.publish(at, info), (file) => statSync(file).mode & 0o777)
      )
      expect(mode).toBe(0o600)
      expect(readdirSync(at)).toEqual([])
    })
  )

  it.effect("an unwritable dev file fails with the system's code and leaves no other files", () =>
    Effect.gen(function* () {
      const at = yield* folder
      mkdirSync(DevFile.path(at), { recursive: true })
      const { message } = yield* Effect.flip(DevFile.publish(at, info))
      expect(message).toBe(`${DevFile.path(at)} cannot be written (EISDIR)`)
      expect(readdirSync(join(at, ".castellan"))).toEqual(["dev.json"])
    })
  )
})
