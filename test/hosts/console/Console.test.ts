import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { AbiCoder, id } from "ethers"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type { RequestRecord } from "../../../src/application/ports/journal/Requests.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import { PoliciesError } from "../../../src/application/ports/Policies.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Preview from "../../../src/application/preview/Preview.js"
import * as TopUps from "../../../src/application/topups/TopUps.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Admin from "../../../src/hosts/console/Admin.js"
import type { Data } from "../../../src/hosts/console/Data.js"
import { html } from "../../../src/hosts/console/Html.js"
import * as Page from "../../../src/hosts/console/Page.js"
import * as Sessions from "../../../src/hosts/console/Sessions.js"
import * as Empty from "../../support/admin/Data.js"
import * as Make from "../../support/journal/Make.js"

const token = "an operator's token of the console's tests"
const hostile = `<script>alert("1")</script>'&`
const silent = Logger.layer([])

const account = {
  accountId: "acme" as AccountId,
  name: hostile,
  tier: "pro",
  paused: false,
  keys: []
} as const

interface Answer {
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

/** A minimal browser with cookies and forms. */
const browser = (data: Data, linked = false) =>
  Effect.gen(function* () {
    const { url } = yield* Admin.serve({
      host: "127.0.0.1",
      port: 0,
      operators: [
        { name: "ann", token: Redacted.make(token) },
        { name: "bo", token: Redacted.make(`${token} of bo`) }
      ],
      hosts: [],
      linked,
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

/** The account's open transaction of a signer, in a list. */
const pendingOf = (accountId: AccountId, acceptedAt: number) => ({
  number: 1n,
  requestId: "r-1",
  accountId,
  endpoint: "/transactSigner",
  chainId: Make.chainId,
  state: "pending" as const,
  result: null,
  failure: null,
  elements: 1,
  acceptedAt
})

describe("the operator's console", () => {
  const record = (over: Partial<RequestRecord> = {}): RequestRecord => ({
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
    held: null,
    notBefore: null,
    note: null,
    outcome: null,
    ...over
  })

  it.live("counts the age of a lane's work from acceptance, though a replacement was just signed", () =>
    Effect.gen(function* () {
      const now = Date.now()
      const replaced = {
        ...Make.lane,
        nonce: 0n,
        access: { accountId: Make.alice, key: "serviceEoa" as const, rpc: null, trust: "operator" as const },
        state: "signed" as const,
        versions: [Make.signed(0n), Make.signed(0n)],
        signedAt: now,
        ops: [],
        direct: "r-1",
        mined: null
      }
      const pending = pendingOf(Make.alice, now - 600_000)
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        transactions: { ...Empty.empty.transactions, open: Effect.succeed([replaced]) },
        history: { ...Empty.empty.history, find: () => Effect.succeed([pending]) }
      })
      yield* signIn
      expect((yield* get("/console/lanes")).text).toContain("Waits 10 min")
    })
  )

  it.live("sends a style sheet of less than 12 kB", () =>
    Effect.gen(function* () {
      const { get } = yield* browser(Empty.empty)
      expect((yield* get("/console/style.css")).text.length).toBeLessThan(12_000)
    })
  )

  it.live("shows which chain's node is dead", () =>
    Effect.gen(function* () {
      const chain = (chainId: bigint, answerMillis: number | null) => ({
        profile: NetworkProfile.make({ chainId, rpc: Redacted.make("http://node.example") }),
        lowBalance: 0n,
        head: null,
        headAt: null,
        answeredAt: answerMillis,
        answerMillis,
        failing: answerMillis === null ? { since: 1, polls: 3, message: "no" } : null,
        eoas: new Map(),
        deposits: new Map()
      })
      const { situation } = Empty.empty.observer
      const facts = { ...situation().facts, chains: [chain(137n, 12), chain(8453n, null)] }
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        profiles: facts.chains.map(({ profile }) => profile),
        observer: { ...Empty.empty.observer, situation: () => ({ ...situation(), facts }) }
      })
      yield* signIn
      const { text } = yield* get("/console")
      const rows = text.split("<tr").filter((row) => row.includes('href="/console/chains/'))
      expect(rows.map((row) => [row.includes("12 ms"), row.includes("3 polls failed")])).toEqual([
        [true, false],
        [false, true]
      ])
      // The live refresh fills the list of a page that was loaded without an incident.
      expect((yield* get("/console/chains/137")).text).toMatch(
        /<h2 id="inc-t"[^>]*>Incidents<.*id="incidents"/
      )
    })
  )

  it.live("links the treasury's requests, whose account ends with a space", () =>
    Effect.gen(function* () {
      const topUp = pendingOf(TopUps.account, 0)
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        history: {
          ...Empty.empty.history,
          find: ({ accountId = TopUps.account }) =>
            Effect.succeed(accountId === TopUps.account ? [topUp] : [])
        }
      })
      yield* signIn
      const { text } = yield* get("/console/requests")
      const [, link = "", name] = /href="([^"]+account=[^"]+)">([^<]+)</.exec(text) ?? []
      expect(name).toBe("the treasury")
      expect((yield* get(link)).text).toContain("/console/requests/r-1")
    })
  )

  it.live("offers to release or drop a held request where it reports the incident", () =>
    Effect.gen(function* () {
      const held = {
        kind: "request-held" as const,
        chainId: 1n,
        subject: "r-1",
        level: "stops" as const,
        figures: {},
        since: 1
      }
      const { situation } = Empty.empty.observer
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        observer: { ...Empty.empty.observer, situation: () => ({ ...situation(), incidents: [held] }) }
      })
      yield* signIn
      const { text } = yield* get("/console")
      for (const part of ["/console/release", "/console/drop", 'name="request" value="r-1"'])
        expect(text).toContain(part)
    })
  )

  it.live("shows spending rules with the use of their limits, and accounts whose rules are unreadable", () =>
    Effect.gen(function* () {
      const policy = {
        mode: "enforce",
        expiresAt: 0,
        rules: [],
        limits: [
          { name: "gas", chain: "1", asset: "fees", per: "day", max: 4n * 10n ** 18n },
          { name: "batch", chain: "1", asset: "calls", per: "request", max: 50n }
        ]
      } as const
      const version = {
        accountId: account.accountId,
        layer: "operator",
        subject: "key:21ca2b88d8bd",
        version: 7,
        content: policy,
        countedAs: "key:21ca2b88d8bd",
        at: 0,
        by: hostile,
        requestId: null
      } as const
      const asked: Array<string> = []
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        budgets: {
          ...Empty.empty.budgets,
          figures: ({ name }) =>
            Effect.sync(() => {
              asked.push(name)
              return { held: 10n ** 18n, booked: 2n * 10n ** 18n }
            })
        },
        policies: {
          changes: () => Effect.succeed({ latest: 2, accounts: [account.accountId, Make.bob] }),
          current: (accountId) =>
            accountId === Make.bob
              ? Effect.fail(new PoliciesError({ reason: "unreadable", message: "version 3 is damaged" }))
              : Effect.succeed([
                  version,
                  { ...version, subject: "wallet:*", version: 2 },
                  {
                    ...version,
                    subject: "list:many",
                    content: { addresses: Array(100).fill(Make.entryPoint) }
                  }
                ])
        }
      })
      yield* signIn
      const { text } = yield* get("/console/rules")
      for (const part of [
        "Rules of bob refuse all its writes: version 3 is damaged",
        "<code>key:21ca2b88d8bd</code>",
        "&quot;max&quot;: &quot;4000000000000000000&quot;",
        "characters: castellan policies show has it.",
        "enforce, rules: 0, limits: 2",
        'aria-label="gas: 75 %"',
        "3 ETH",
        "4 ETH <small>day</small>",
        "per request",
        "per wallet",
        "50 calls"
      ])
        expect(text).toContain(part)
      expect(text).not.toContain(hostile)
      expect(asked).toEqual(["policy operator key:21ca2b88d8bd gas"])
    })
  )

  it.live("shows what an open request would move, with doubts and missing previews", () =>
    Effect.gen(function* () {
      const [token, wallet, to] = [0x70, 0x0a, 0x03].map((digits) => Make.address(digits))
      const change = (token: string, amount: string) => ({
        kind: token === "native" ? ("native" as const) : ("erc20" as const),
        token,
        from: String(wallet),
        to: String(to),
        amount,
        id: null
      })
      const preview = {
        basis: "simulation" as const,
        block: "24000000",
        transfers: [change(String(token), "250"), change("native", "1000000000000000")],
        approvals: [
          {
            kind: "erc20" as const,
            token: String(token),
            spender: String(to),
            amount: "9",
            isUnlimited: true
          }
        ],
        net: [{ token: String(token), delta: "-250", isVerified: false }],
        fees: { payer: String(wallet), most: "3000000000000000", expected: "2000000000000000" },
        tokens: {}
      }
      let shown = record({
        elements: 2,
        previews: Preview.write([
          { index: 0, preview, previewError: null },
          { index: 1, preview: null, previewError: "the call would revert: <b>no</b>" }
        ])
      })
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        requests: { ...Empty.empty.requests, request: () => Effect.succeed(shown) }
      })
      yield* signIn
      const page = Effect.map(get("/console/requests/r-1"), ({ text }) =>
        text.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ")
      )
      const seen = yield* page
      for (const part of [
        "Expected changes simulated on block 24,000,000, before acceptance",
        "− 250",
        "+ 0.001 ETH",
        "may take all",
        "Operation 0: balances differ from the tokens' logs",
        "Operation 1: the call would revert: &lt;b&gt;no&lt;/b&gt;",
        "At most 0.003 ETH",
        "Expected 0.002 ETH"
      ])
        expect(seen).toContain(part)
      shown = record()
      expect(yield* page).not.toContain("Expected changes")
    }).pipe(Effect.scoped)
  )

  it.live("shows the policies that bound a request at its acceptance, with links to the rules", () =>
    Effect.gen(function* () {
      const name = { layer: "operator" as const, subject: "key:21ca2b88d8bd", version: 7 }
      const policies = [name, { layer: "account" as const, subject: hostile, version: 12 }]
      let shown = record({ policies })
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        requests: { ...Empty.empty.requests, request: () => Effect.succeed(shown) }
      })
      yield* signIn
      const boxOf = ({ text }: Answer) =>
        /<section class="box" id="spending-rules".*?<\/section>/s.exec(text)?.[0]
      const box = boxOf(yield* get("/console/requests/r-1")) ?? ""
      const cells = [...box.matchAll(/<t[hd][^>]*>(?:<div>)?(.*?)(?:<\/div>)?<\/t[hd]>/gs)].map(
        ([, cell = ""]) => cell.replace(/<[^>]*>/g, "")
      )
      expect(cells.slice(3, 6)).toEqual(["key:21ca2b88d8bd", "operator", "7"])
      expect(cells.slice(7)).toEqual(["account", "12"])
      expect(box).not.toContain(hostile)
      const [, link = "", anchor] = /href="([^"#]+)#([^"]+)"/.exec(box) ?? []
      expect((yield* get(link)).text).toContain(`id="${anchor}"`)
      shown = record()
      expect(boxOf(yield* get("/console/requests/r-1"))).toBeUndefined()
    }).pipe(Effect.scoped)
  )

  it.live("shows why a request is held, and releases or drops it once", () =>
    Effect.gen(function* () {
      let shown = record({ held: "it may be done <already>" })
      const done: Array<string> = []
      const { formToken, get, post, signIn } = yield* browser({
        ...Empty.empty,
        requests: { ...Empty.empty.requests, request: () => Effect.succeed(shown) },
        recovery: {
          unhold: (requestId) =>
            Effect.sync(() => {
              done.push(`release ${requestId}`)
              return true
            })
        },
        operators: {
          ...Empty.empty.operators,
          record: ({ act, operator, reason, subject }) =>
            Effect.sync(() => void done.push(`${operator} ${act} ${subject}: ${reason}`))
        }
      })
      yield* signIn
      const { text } = yield* get("/console/requests/r-1")
      for (const part of ["Held: it may be done &lt;already&gt;", "Release…", "Drop…"])
        expect(text).toContain(part)
      const fields = { formToken: yield* formToken, request: "r-1" }
      // Nothing is done without a reason.
      for (const reason of ["", "no", "x".repeat(501)])
        expect((yield* post("/console/release", { ...fields, reason })).status).toBe(400)
      expect(done).toEqual([])
      const released = yield* post("/console/release", { ...fields, reason: "the payment is missing" })
      expect(released.headers.get("location")).toBe("/console/requests/r-1?done=released")
      expect(done).toEqual(["ann release r-1: the payment is missing", "release r-1"])
      shown = record()
      const again = yield* post("/console/drop", { ...fields, reason: "the payment is missing" })
      expect([again.status, done.length]).toEqual([400, 2])
      // A replacement of other requests' transactions cannot be taken back.
      shown = record({ endpoint: "/unstuck" })
      const cancelled = yield* post("/console/cancel", { ...fields, reason: "it is not wanted" })
      expect([cancelled.status, done.length]).toEqual([400, 2])
    }).pipe(Effect.provide(silent))
  )

  it.live("decodes what a request asked for, what moved and what it cost", () =>
    Effect.gen(function* () {
      const [wallet, token, to] = [Make.address(1), Make.address(2), Make.address(3)]
      const word = (value: bigint | string) => BigInt(value).toString(16).padStart(64, "0")
      const opHash = Make.word(9)
      const txHash = Make.word(8)
      const answer = {
        status: 1,
        txHash,
        cumulativeGasUsed: 100,
        gasUsed: 100,
        effectiveGasPrice: "2000000000",
        returnData: [{ "0": { userOpHash: opHash, success: true, error: null, result: "0x01", txHash } }],
        logs: [
          {
            address: token,
            topics: [id("Transfer(address,address,uint256)"), `0x${word(wallet)}`, `0x${word(to)}`],
            data: `0x${word(250_000_000n)}`
          },
          {
            address: Make.entryPoint,
            topics: [
              id("UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)"),
              opHash,
              `0x${word(wallet)}`,
              `0x${word(0n)}`
            ],
            data: `0x${word(0n)}${word(1n)}${word(3_000_000_000_000_000n)}${word(1n)}`
          }
        ],
        txHashes: [txHash]
      }
      const shown = record({
        body: JSON.stringify({
          operations: [
            {
              salt: "alice",
              to: token,
              funcSignature: "transfer(address to, uint256 amount)",
              funcParams: [to, "250000000"]
            }
          ],
          settings: { rpc: "http://node.example/with-a-key" }
        }),
        metadata: { order: "INV-1" },
        ops: [
          {
            accountId: account.accountId,
            requestId: "r-1",
            index: 0,
            userOpHash: opHash,
            space: Make.space(1),
            nonceKey: 0n,
            sequence: 0n,
            returned: null,
            state: "settled",
            txHash,
            success: true,
            revertData: null
          }
        ],
        txHashes: [txHash],
        outcome: JSON.stringify({ answer })
      })
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        call: (_, __, data) =>
          Effect.succeed(
            Hex.unsafe(
              data === id("symbol()").slice(0, 10)
                ? AbiCoder.defaultAbiCoder().encode(["string"], ["USDC"])
                : `0x${word(6n)}`
            )
          ),
        requests: {
          ...Empty.empty.requests,
          request: () => Effect.succeed(shown),
          events: () =>
            Effect.succeed([
              { sequence: 1, kind: "accepted", data: {}, at: 1 },
              { sequence: 2, kind: "final", data: {}, at: 35 }
            ])
        }
      })
      yield* signIn
      const { status, text } = yield* get("/console/requests/r-1")
      const seen = text.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ")
      expect(status).toBe(200)
      for (const part of [
        "transfer 250 USDC to 0x0000…0003",
        "Succeeded",
        "order INV-1",
        "+ 250 USDC",
        "− 250 USDC",
        "0.003 ETH",
        "100 at 2 gwei",
        "35 ms from acceptance to the end",
        "00:00:00.035"
      ])
        expect(seen).toContain(part)
      expect(text).not.toContain("with-a-key")
    }).pipe(Effect.provide(silent))
  )

  it.live("shows a refused request with its answer, and finds it by its id", () =>
    Effect.gen(function* () {
      const refusal = {
        requestId: "r-2",
        accountId: account.accountId,
        endpoint: "/execute",
        chainId: 8_453n,
        code: "insufficient_funds",
        message: hostile,
        answer: JSON.stringify({ error: hostile }),
        at: 0
      }
      const { get, signIn } = yield* browser({
        ...Empty.empty,
        refusal: (requestId) => Effect.succeed(requestId === "r-2" ? refusal : null)
      })
      yield* signIn
      for (const path of ["/console/requests/r-2", "/console/search?q=r-2"]) {
        const { status, text } = yield* get(path)
        expect([path, status, text.includes("insufficient_funds")]).toEqual([path, 200, true])
        expect(text).not.toContain(hostile)
      }
      expect((yield* get("/console/requests/r-3")).status).toBe(404)
    }).pipe(Effect.provide(silent))
  )

  it.live("revokes a key once its id was typed", () =>
    Effect.gen(function* () {
      const hash = "ab".repeat(32)
      const ended: Array<string> = []
      const { formToken, get, post, signIn } = yield* browser({
        ...Empty.empty,
        accounts: [{ ...account, keys: [{ hash, scopes: ["read"] }] }],
        tenants: {
          ...Empty.empty.tenants,
          endKey: (key) => Effect.sync(() => void ended.push(key.hash))
        }
      })
      yield* signIn
      const id = hash.slice(0, 12)
      expect((yield* get("/console/accounts")).text).toContain(`Type ${id} to confirm`)
      const fields = { formToken: yield* formToken, key: id, reason: "it was found in a log" }
      expect((yield* post("/console/revoke", { ...fields, typed: "" })).status).toBe(400)
      expect((yield* post("/console/revoke", { ...fields, key: "other", typed: "other" })).status).toBe(400)
      expect(ended).toEqual([])
      expect((yield* post("/console/revoke", { ...fields, typed: id })).status).toBe(303)
      expect(ended).toEqual([hash])
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

  it.live("a link signs in where the console says so, with the token only", () =>
    Effect.gen(function* () {
      const path = (sent: string) => `/console/sign-in?token=${encodeURIComponent(sent)}`
      const closed = yield* browser(Empty.empty)
      expect((yield* closed.get(path(token))).status).toBe(401)
      const { get } = yield* browser(Empty.empty, true)
      expect((yield* get(path("another"))).status).toBe(401)
      expect((yield* get(path(token), { "sec-fetch-site": "cross-site" })).status).toBe(401)
      const answer = yield* get(path(token))
      expect([answer.status, answer.headers.get("location")]).toEqual([303, "/console"])
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
      const reason = "the chain has halted"
      const fields = { formToken: yield* formToken, kind: "chain", subject: "1", reason }
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
      const reason = "it waits for ever"
      const fields = { formToken: yield* formToken, chain: "1", signer: `0x${"11".repeat(20)}` }
      const { text } = yield* post("/console/unstick", fields)
      expect(text).toContain("Nothing was signed or sent yet.")
      expect(text).not.toContain("<script>")
      yield* post("/console/unstick", { ...fields, dryRun: "0" })
      expect((yield* post("/console/unstick", { ...fields, dryRun: "false" })).status).toBe(400)
      yield* post("/console/unstick", { ...fields, dryRun: "false", reason })
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
      expect(text).not.toContain("<script>")
      expect(headers.get("content-security-policy")).toContain("default-src 'none'")
      expect(headers.get("cache-control")).toBe("no-store")
      const { text: requests } = yield* get(`/console/requests?account=${encodeURIComponent(hostile)}`)
      expect(requests).not.toContain("<script>")
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
    const first = sessions.begin("ann", 0)
    expect(sessions.find(first, Sessions.life * 1_000 - 1)).not.toBeNull()
    expect(sessions.find(first, Sessions.life * 1_000)).toBeNull()
    const secrets = Array.from({ length: 33 }, () => sessions.begin("ann", 0))
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
    expect([-1, 89, 90, 5_399, 5_400, 129_599, 129_600].map(Page.age)).toEqual([
      "0 s",
      "89 s",
      "2 min",
      "90 min",
      "2 h",
      "36 h",
      "2 d"
    ])
    expect(
      [0n, 10n ** 18n, 1_234_567_890_123_456_789_012n, 10n ** 12n - 1n, -5n * 10n ** 17n].map((wei) =>
        Page.coins(wei, 1n)
      )
    ).toEqual(["0 ETH", "1 ETH", "1,234.5678 ETH", "0.000000999 ETH", "−0.5 ETH"])
  })
})
