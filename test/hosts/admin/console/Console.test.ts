import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { JournalError } from "../../../../src/application/ports/journal/JournalError.js"
import type { AccountId } from "../../../../src/application/ports/Tenants.js"
import * as Admin from "../../../../src/hosts/admin/Admin.js"
import type { Data } from "../../../../src/hosts/admin/console/Data.js"
import { html } from "../../../../src/hosts/admin/console/Html.js"
import * as Page from "../../../../src/hosts/admin/console/Page.js"
import * as Sessions from "../../../../src/hosts/admin/console/Sessions.js"
import * as Empty from "../../../support/admin/Data.js"
import * as Make from "../../../support/journal/Make.js"

const token = "an operator's token of the console's tests"
const hostile = `<script>alert("1")</script>'&`
const silent = Logger.layer([])

const account = { accountId: "acme" as AccountId, name: hostile, tier: "pro", paused: false } as const

interface Answer {
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

/** A minimal browser with cookies and forms. */
const browser = (data: Data) =>
  Effect.gen(function* () {
    const { url } = yield* Admin.serve({
      host: "127.0.0.1",
      port: 0,
      token: Redacted.make(token),
      hosts: [],
      data
    })
    let cookie = ""
    const send = (path: string, init: RequestInit): Effect.Effect<Answer> =>
      Effect.promise(async () => {
        const answer = await fetch(`${url}${path}`, {
          redirect: "manual",
          ...init,
          headers: { ...(cookie !== "" && { cookie }), ...init.headers }
        })
        const set = answer.headers.get("set-cookie")
        if (set !== null) cookie = set.split(";")[0] ?? ""
        return { status: answer.status, text: await answer.text(), headers: answer.headers }
      })
    const get = (path: string, headers: Readonly<Record<string, string>> = {}) => send(path, { headers })
    const post = (
      path: string,
      fields: Readonly<Record<string, string>>,
      headers: Readonly<Record<string, string>> = {}
    ) => send(path, { method: "POST", body: new URLSearchParams(fields), headers })
    const signIn = post("/console/sign-in", { token })
    const formToken = Effect.map(
      get("/console/accounts"),
      ({ text }) => /name="formToken" value="([^"]+)"/.exec(text)?.[1] ?? ""
    )
    return { formToken, get, post, signIn, url }
  })

describe("the operator's console", () => {
  it.live("shows a held request with its reason and the commands to decide it", () =>
    Effect.gen(function* () {
      const held = {
        requestId: "r-1",
        accountId: account.accountId,
        endpoint: "/execute",
        idempotency: null,
        elements: 1,
        metadata: {},
        lane: Make.lane,
        body: null,
        acceptedAt: 0,
        ops: [],
        signed: [],
        failed: [],
        txHashes: [],
        cancelled: null,
        held: `it may be done <already>`,
        notBefore: null,
        note: null,
        outcome: null
      }
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        requests: { request: () => Effect.succeed(held) }
      })
      yield* signIn
      const { text } = yield* get("/console/requests/r-1")
      for (const part of [
        ">held<",
        "it may be done &lt;already&gt;",
        "castellan requests release r-1",
        "castellan requests drop r-1"
      ])
        expect(text).toContain(part)
    }).pipe(Effect.provide(silent))
  )

  it.live("shows no data without the token", () =>
    Effect.gen(function* () {
      const { get, post, signIn } = yield* browser({ ...Empty.empty, accounts: [account] })
      const first = yield* get("/console")
      expect([first.status, first.text.includes("Sign in")]).toEqual([200, true])
      for (const path of ["/console/accounts", "/console/requests/1", "/console/nothing"])
        expect([path, (yield* get(path)).status]).toEqual([path, 401])
      expect((yield* post("/console/sign-in", { token: "another" })).status).toBe(401)
      expect((yield* post("/console/pause", { kind: "account", subject: "acme" })).status).toBe(401)
      const answer = yield* signIn
      expect([answer.status, answer.headers.get("location")]).toEqual([303, "/console"])
      const cookie = answer.headers.get("set-cookie") ?? ""
      for (const part of ["HttpOnly", "SameSite=Strict", "Path=/console", "Max-Age=28800"])
        expect(cookie).toContain(part)
      expect(cookie).not.toContain(token)
      expect((yield* get("/console/accounts")).status).toBe(200)
    }).pipe(Effect.provide(silent))
  )

  it.live("shows webhooks of all accounts, discarded events and the actors of changes", () =>
    Effect.gen(function* () {
      const webhook = {
        webhookId: "w1",
        accountId: account.accountId,
        url: Redacted.make("https://hooks.example/with-a-key-in-it"),
        kinds: [],
        state: "failing",
        createdAt: 0,
        waiting: 7,
        dead: 1
      } as const
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        webhooks: {
          list: () => Effect.succeed([webhook]),
          oldest: Effect.succeed(1),
          dead: () =>
            Effect.succeed([
              {
                requestId: "r1",
                endpoint: "/execute",
                chainId: 1n,
                metadata: {},
                event: { sequence: 3, kind: "final" as const, data: {}, at: 0 },
                attempts: 20,
                failingSince: 0,
                lastError: hostile
              }
            ]),
          changes: () =>
            Effect.succeed([
              {
                at: 0,
                webhookId: "w1",
                watchId: "watch-1",
                accountId: account.accountId,
                what: "failing" as const,
                by: "service"
              }
            ])
        }
      })
      yield* signIn
      const { status, text } = yield* get("/console/webhooks")
      expect(status).toBe(200)
      for (const part of ["https://hooks.example", "failing", "w1", "watch-1", "r1", "service", "20"])
        expect(text).toContain(part)
      for (const hidden of ["with-a-key-in-it", hostile]) expect(text).not.toContain(hidden)
    }).pipe(Effect.provide(silent))
  )

  it.live("sign-out ends the session", () =>
    Effect.gen(function* () {
      const { formToken, get, post, signIn } = yield* browser(Empty.empty)
      yield* signIn
      const own = yield* formToken
      expect((yield* post("/console/sign-out", { formToken: own })).status).toBe(303)
      expect((yield* get("/console/lanes")).status).toBe(401)
    }).pipe(Effect.provide(silent))
  )

  it.live("accepts a form only from its own pages and its own session", () =>
    Effect.gen(function* () {
      const thrown: Array<string> = []
      const { formToken, post, signIn, url } = yield* browser({
        ...Empty.empty,
        tenants: {
          ...Empty.empty.tenants,
          pause: ({ kind, subject }) => Effect.sync(() => void thrown.push(`${kind} ${subject}`))
        }
      })
      yield* signIn
      const fields = { formToken: yield* formToken, kind: "chain", subject: "1" }
      for (const [headers, given] of [
        [{ origin: "https://evil.example" }, fields],
        [{ origin: "null" }, fields],
        [{ "sec-fetch-site": "cross-site" }, fields],
        [{}, { ...fields, formToken: "guessed" }],
        [{}, { kind: "chain", subject: "1" }]
      ] as const)
        expect((yield* post("/console/pause", given, headers)).status).toBe(403)
      expect(thrown).toEqual([])
      const done = yield* post("/console/pause", fields, { origin: url, "sec-fetch-site": "same-origin" })
      expect([done.status, thrown]).toEqual([303, ["chain 1"]])
      expect((yield* post("/console/pause", { ...fields, kind: "other" })).status).toBe(400)
      expect((yield* post("/console/pause", { ...fields, subject: "x".repeat(10_000) })).status).toBe(413)
    }).pipe(Effect.provide(silent))
  )

  it.live("states that a form is a dry run by default", () =>
    Effect.gen(function* () {
      const asked: Array<boolean> = []
      const { formToken, post, signIn } = yield* browser({
        ...Empty.empty,
        unstick: (_lane, dryRun) =>
          Effect.sync(() => {
            asked.push(dryRun)
            return { replaced: [], left: [{ nonce: 7n, reason: hostile }] }
          })
      })
      yield* signIn
      const fields = { formToken: yield* formToken, chain: "1", signer: `0x${"11".repeat(20)}` }
      const { text } = yield* post("/console/unstick", fields)
      expect(text).toContain("Dry run: no transaction was sent.")
      expect(text).not.toContain("<script>")
      yield* post("/console/unstick", { ...fields, dryRun: "0" })
      yield* post("/console/unstick", { ...fields, dryRun: "false" })
      expect(asked).toEqual([true, true, false])
      expect((yield* post("/console/unstick", { ...fields, signer: "0x" })).status).toBe(400)
    }).pipe(Effect.provide(silent))
  )

  it.live("escapes foreign input as text", () =>
    Effect.gen(function* () {
      const { get, signIn } = yield* browser({ ...Empty.empty, accounts: [account] })
      yield* signIn
      const { headers, text } = yield* get("/console/accounts")
      expect(text).toContain("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;")
      expect(text).not.toContain("<script")
      expect(headers.get("content-security-policy")).toContain("default-src 'none'")
      expect(headers.get("cache-control")).toBe("no-store")
      const { text: requests } = yield* get(`/console/requests?account=${encodeURIComponent(hostile)}`)
      expect(requests).not.toContain("<script")
    }).pipe(Effect.provide(silent))
  )

  it.live("reports unreadable and missing data", () =>
    Effect.gen(function* () {
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        transactions: {
          ...Empty.empty.transactions,
          open: Effect.fail(new JournalError({ message: "the journal's store failed" }))
        }
      })
      yield* signIn
      const lanes = yield* get("/console/lanes")
      expect([lanes.status, lanes.text.includes("the journal&#39;s store failed")]).toEqual([503, true])
      for (const path of [
        "/console/nothing",
        "/console/lanes/x/y",
        "/console/accounts/1",
        "/console/requests/unknown",
        "/console/lanes/1/2/3"
      ])
        expect([path, (yield* get(path)).status]).toEqual([path, 404])
      expect((yield* get("/")).headers.get("location")).toBe("/console")
    }).pipe(Effect.provide(silent))
  )
})

describe("sessions", () => {
  it("sessions end after their time, the oldest first when there are too many", () => {
    const sessions = Sessions.make()
    const first = sessions.begin(0)
    expect(sessions.find(first, Sessions.life * 1_000 - 1)).not.toBeNull()
    expect(sessions.find(first, Sessions.life * 1_000)).toBeNull()
    const secrets = Array.from({ length: 33 }, () => sessions.begin(0))
    expect(secrets.map((secret) => sessions.find(secret, 1) !== null)).toEqual([
      false,
      ...Array.from({ length: 32 }, () => true)
    ])
    expect(new Set(secrets.map((secret) => sessions.find(secret, 1)?.formToken)).size).toBe(33)
  })

  it("sign-in accepts twenty tokens a minute", () => {
    const sessions = Sessions.make()
    expect(Array.from({ length: 21 }, () => sessions.mayTry(0)).filter((may) => may)).toHaveLength(20)
    expect(sessions.mayTry(30_000)).toBe(false)
    expect(sessions.mayTry(100_000)).toBe(true)
  })
})

describe("a page", () => {
  it("a page escapes values and lists of values everywhere", () => {
    expect(html`<a href="${`"'`}">${["<", html`<b>`, 1n, null, 2]}</a>`.text).toBe(
      `<a href="&quot;&#39;">&lt;<b>12</a>`
    )
  })

  it("formats ages and wei in readable units", () => {
    expect([-1, 119, 120, 7_199, 7_200, 172_799, 172_800].map(Page.age)).toEqual([
      "0 s",
      "119 s",
      "2 min",
      "119 min",
      "2 h",
      "47 h",
      "2 d"
    ])
    expect([0n, 10n ** 18n, 1_234_567_890_123_456_789n, 10n ** 12n - 1n].map(Page.native)).toEqual([
      "0",
      "1",
      "1.234567",
      "0"
    ])
  })
})
