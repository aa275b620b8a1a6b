import { readFileSync } from "node:fs"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { expect, it } from "vitest"
import * as Config from "../../../src/hosts/config/Config.js"

const [, snippet = ""] = /```json\n([\s\S]*?)```/.exec(readFileSync("docs/decision-hook.md", "utf8")) ?? []
const { decisionHook } = JSON.parse(snippet)
const env = {
  DECISION_URL: "https://screen.example/decide",
  DECISION_SECRET: `whsec_${Buffer.alloc(24, 7).toString("base64")}`
}

const read = (more: object, variables: object = {}) =>
  Config.from(
    {
      profile: "development",
      listen: { host: "127.0.0.1", port: 0 },
      database: { path: "castellan.sqlite" },
      keyPepper: "a pepper of sixteen bytes",
      accounts: [],
      providers: [],
      signers: [],
      networks: [],
      decisionHook: { ...decisionHook, ...more }
    } as Config.File,
    { env: { ...env, ...variables } }
  )

const problemsOf = (more: object, variables: object = {}) =>
  Result.match(read(more, variables), {
    onFailure: ({ problems }) => problems.map(({ path }) => path),
    onSuccess: () => []
  })

it("docs/decision-hook.md has a hook that the configuration takes", () => {
  const hook = Result.getOrThrow(read({})).operations.decisionHook
  expect(hook).toMatchObject({ timeoutMillis: 2_000, on: "payments" })
  expect(hook && Redacted.value(hook.url)).toBe(env.DECISION_URL)
})

it("a decision hook has https or http, a secret of Standard Webhooks, and no approval", () => {
  expect(problemsOf({}, { DECISION_URL: "ftp://screen.example" })).toEqual(["decisionHook.url"])
  for (const secret of ["whsec_", "whsec_c2hvcnQ=", "c2hvcnQ=".repeat(8)])
    expect(problemsOf({}, { DECISION_SECRET: secret })).toEqual(["decisionHook.secret"])
  for (const more of [{ onFailure: "ask" }, { on: "some" }, { timeoutMillis: 99 }, { timeoutMillis: 10_001 }])
    expect(problemsOf(more)).not.toEqual([])
})
