import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"

/** Later commits keep the form; the history before is not rewritten. */
const last = "bf3ff870"

const form = /^[a-z0-9-]+: [^A-Z]/
const mostCharacters = 72

const isKept = (subject: string): boolean => form.test(subject) && subject.length <= mostCharacters

const git = (...args: ReadonlyArray<string>): string | null => {
  try {
    const cwd = fileURLToPath(new URL("../..", import.meta.url))
    return execFileSync("git", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
  } catch {
    return null
  }
}

const log = git("log", "--no-merges", "--format=%s", `${last}..HEAD`)

describe("commits", () => {
  it.skipIf(log === null)("subjects have the form `area: imperative`, at most 72 characters", () => {
    const subjects = (log ?? "").split("\n").filter((subject) => subject !== "")
    expect(subjects.filter((subject) => !isKept(subject))).toEqual([])
  })

  it("commits of another form are found", () => {
    expect(isKept("lanes: renumber ops behind a rejected op")).toBe(true)
    expect(isKept("Renumber ops")).toBe(false)
    expect(isKept("lanes: Renumber ops")).toBe(false)
    expect(isKept(`lanes: ${"x".repeat(66)}`)).toBe(false)
  })
})
