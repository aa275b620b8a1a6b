import { get } from "node:http"
import { text as textOf } from "node:stream/consumers"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Admin from "../../../src/hosts/console/Admin.js"
import * as Data from "../../support/admin/Data.js"

const token = "an operator's token of the tests"

const options: Admin.Options = {
  host: "127.0.0.1",
  port: 0,
  operators: [{ name: "ann", token: Redacted.make(token) }],
  hosts: [],
  linked: false,
  data: {
    ...Data.empty,
    audit: { find: () => Effect.die(new Error("a secret of the audit log")) },
    unstick: () => Effect.succeed({ replaced: [], left: [{ nonce: 7n, reason: "it is mined" }] })
  }
}

const silent = Logger.layer([])

const asked = (path: string, init: RequestInit = {}) =>
  Effect.gen(function* () {
    const { url } = yield* Admin.serve(options)
    const answer = yield* Effect.promise(() =>
      fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } })
    )
    return { answer, text: yield* Effect.promise(() => answer.text()) }
  }).pipe(Effect.provide(silent))

const lane = "chain=1&signer=0x1111111111111111111111111111111111111111"

describe("the routes of the operator's port", () => {
  it.live("routes reject other methods with Allow", () =>
    Effect.gen(function* () {
      for (const [method, path, status, allow] of [
        ["GET", "/metrics", 200, null],
        ["HEAD", "/metrics", 200, null],
        ["POST", "/metrics", 405, "GET, HEAD"],
        ["DELETE", "/audit", 405, "GET, HEAD"],
        ["GET", `/lanes/unstick?${lane}`, 405, "POST"],
        ["POST", `/lanes/unstick?${lane}`, 200, null],
        ["GET", "/metrics/", 404, null],
        ["GET", "/Metrics", 404, null],
        ["GET", "/other", 404, null],
        ["POST", "/other", 405, "GET, HEAD"]
      ] as const) {
        const { answer, text } = yield* asked(path, { method })
        expect([method, path, answer.status, answer.headers.get("allow")]).toEqual([
          method,
          path,
          status,
          allow
        ])
        if (method === "HEAD") expect(text).toBe("")
        expect(answer.headers.get("cache-control")).toBe("no-store")
        expect(answer.headers.get("x-content-type-options")).toBe("nosniff")
        expect(answer.headers.get("content-security-policy")).toBe(
          "default-src 'none'; frame-ancestors 'none'"
        )
      }
    })
  )

  it.live("routes reject an id with a null character, which a database may not accept", () =>
    Effect.gen(function* () {
      for (const name of ["account", "request"]) {
        const { answer, text } = yield* asked(`/audit?${name}=a%00`)
        expect([answer.status, text]).toEqual([400, `{"error":"${name}: expected no null character"}\n`])
      }
    })
  )

  it.live("routes return 500 without detail on a defect in their own code", () =>
    Effect.gen(function* () {
      const { answer, text } = yield* asked("/audit")
      expect([answer.status, answer.headers.get("content-type"), text]).toEqual([
        500,
        "application/json",
        '{"error":"internal error"}\n'
      ])
    })
  )

  it.live("unstick returns the lane's new prices and rejects invalid parameters", () =>
    Effect.gen(function* () {
      expect((yield* asked(`/lanes/unstick?${lane}`, { method: "POST" })).text).toBe(
        '{"replaced":[],"left":[{"nonce":7,"reason":"it is mined"}]}\n'
      )
      const { answer, text } = yield* asked("/lanes/unstick?chain=one", { method: "POST" })
      expect([answer.status, text]).toEqual([
        400,
        `{"error":"chain: expected a chain id, a decimal number, got \\"one\\""}\n`
      ])
    })
  )

  it.live("a request with an unknown host name is rejected, with the setting of the names", () =>
    Effect.gen(function* () {
      const { url } = yield* Admin.serve(options)
      const answer = yield* Effect.promise(
        () =>
          new Promise<{ readonly status: number; readonly text: string }>((resolve) =>
            get(url, { headers: { host: "castellan.internal:9464" } }, async (response) =>
              resolve({ status: response.statusCode ?? 0, text: await textOf(response) })
            )
          )
      )
      expect(answer.status).toBe(421)
      expect(answer.text).toContain("admin.hosts")
    }).pipe(Effect.provide(silent))
  )
})
