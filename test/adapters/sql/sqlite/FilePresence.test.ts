import { describe, expect, it } from "vitest"
import * as FilePresence from "../../../../src/adapters/sql/sqlite/FilePresence.js"

const failing = (code: string) => () => {
  throw Object.assign(new Error(code), { code })
}

describe("the file of a database in use", () => {
  it("distinguishes lost file rights from a deleted or replaced file", () => {
    expect(FilePresence.faultOf("1:2", () => "1:2")).toBeNull()
    for (const code of ["EACCES", "EPERM"])
      expect(FilePresence.faultOf("1:2", failing(code))).toMatchObject({
        what: "is no longer readable",
        remedy: expect.stringContaining("rights")
      })
    for (const identity of [failing("ENOENT"), () => "1:3"])
      expect(FilePresence.faultOf("1:2", identity)).toMatchObject({ what: "was removed or replaced" })
  })
})
