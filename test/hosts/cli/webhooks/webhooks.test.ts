import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { make } from "../../../support/accounts/Castellan.js"
import * as CommandLine from "../../../support/process/CommandLine.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-webhooks-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Made {
  readonly webhookId: string
  readonly secret: string
}

it.live("webhooks are added, listed, paused, rotated and removed by command, and show no secret twice", () =>
  Effect.gen(function* () {
    const { env } = make(folder, {})
    const run = (line: string) => CommandLine.run(line.split(" "), env)
    const json = <A>(line: string) => Effect.map(run(`${line} --json`), (text): A => JSON.parse(text))
    yield* run("accounts create acme --name Acme --tier pro")
    const path = "/hook/with-a-key-in-it"
    const { secret, webhookId } = yield* json<Made>(
      `webhooks add acme https://example.com${path} --kind final --kind reopened`
    )
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const listed = yield* run("webhooks list --account acme --json")
    expect(JSON.parse(listed)).toMatchObject([
      {
        webhookId,
        account: "acme",
        origin: "https://example.com",
        kinds: ["final", "reopened"],
        state: "enabled",
        waiting: 0,
        dead: 0
      }
    ])
    const shown = yield* run(`webhooks show ${webhookId}`)
    for (const text of [listed, shown])
      for (const hidden of [secret, path]) expect(text).not.toContain(hidden)
    expect(yield* run(`webhooks pause ${webhookId}`)).toBe(`webhook ${webhookId} is paused`)
    expect(yield* json("webhooks list")).toMatchObject([{ state: "paused" }])
    yield* run(`webhooks resume ${webhookId}`)
    const rotated = yield* json<Made>(`webhooks rotate ${webhookId} --overlap 1`)
    expect(rotated.secret).not.toBe(secret)
    expect(yield* run(`webhooks dead ${webhookId}`)).toBe("there are no undeliverable events")
    expect(yield* run(`webhooks redeliver ${webhookId}`)).toBe("0 events are sent once more")
    const refusals = {
      "webhooks add missing https://example.com/": "there is no account called missing",
      "webhooks add acme http://127.0.0.1/": "URL: the address is not allowed",
      "webhooks add acme http://169.254.169.254/": "URL: the address is not allowed",
      "webhooks add acme ftp://example.com/": "URL: expected an http or https URL",
      "webhooks add acme https://example.com/ --kind everything": "--kind: expected one of accepted",
      "webhooks pause none": "there is no webhook none",
      [`webhooks rotate ${webhookId} --overlap 1000`]: "--overlap: expected 0 to 720 hours"
    }
    for (const [line, text] of Object.entries(refusals)) expect(yield* Effect.flip(run(line))).toContain(text)
    const database = readFileSync(join(folder, "castellan.sqlite"))
    for (const hidden of [secret, rotated.secret, path]) expect(database.includes(hidden)).toBe(false)
    for (let n = 1; n < 10; n++) yield* run("webhooks add acme https://example.com/")
    expect(yield* Effect.flip(run("webhooks add acme https://example.com/"))).toContain("at most 10 webhooks")
    expect(yield* run(`webhooks remove ${webhookId}`)).toBe(`webhook ${webhookId} is removed`)
    expect(yield* json<ReadonlyArray<unknown>>("webhooks list")).toHaveLength(9)
  })
)
