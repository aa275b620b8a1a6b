import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Answered } from "../../support/http/Service.js"
import { facts, refusal } from "./InMemory.js"

const subject = "key:21ca2b88d8bd"
const token = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"

const policy = {
  mode: "enforce",
  expiresAt: 0,
  rules: [
    {
      name: "suppliers",
      effect: "allow",
      match: { kinds: ["erc20.transfer"], tokens: [token], to: ["list:suppliers"], maxAmount: "5000" }
    }
  ],
  limits: [
    { name: "usdc", chain: "8453", asset: token, per: "day", max: "20000" },
    { name: "batch", chain: "8453", asset: "calls", per: "request", max: "50" }
  ]
}

const read = ({ status, text }: Answered) => [status, JSON.parse(text)]

const fact = facts("/policies")

describe("spending rules over HTTP", () => {
  fact("PUT adds versions, which GET shows, and the same content adds none", (put) =>
    Effect.gen(function* () {
      const set = (content: object) =>
        Effect.map(put(`/${subject}`, content), (answer) => {
          const [status, { warnings, ...version }] = read(answer)
          return [status, version, warnings]
        })
      const missing = [
        "rules[0].match.to: there is no list:suppliers",
        "limits[0].chain: the service has no network 8453",
        "limits[1].chain: the service has no network 8453"
      ]
      const [status, first, warnings] = yield* set(policy)
      expect([status, first, warnings]).toEqual([
        200,
        {
          subject,
          version: 1,
          policy,
          at: expect.any(Number),
          by: "account",
          requestId: expect.any(String)
        },
        missing
      ])
      expect(Math.abs(first.at - Date.now() / 1_000)).toBeLessThan(60)
      expect(yield* set(policy)).toEqual([200, first, missing])
      const [, second] = yield* set({ ...policy, mode: "observe" })
      expect(second).toMatchObject({ version: 2, policy: { mode: "observe" } })
      const list = { addresses: [token] }
      yield* put("/list:suppliers", list)
      expect(read(yield* put(""))).toMatchObject([
        200,
        {
          policies: [
            { subject, version: 2 },
            { subject: "list:suppliers", policy: list }
          ]
        }
      ])
      expect(read(yield* put(`/${subject}`))).toEqual([200, second])
      expect(read(yield* put(`/${subject}?version=1`))).toEqual([200, first])
      const [, removed] = read(yield* put(`/${subject}`, undefined, { method: "DELETE" }))
      expect(removed).toMatchObject({ version: 3, policy: null })
      expect(read(yield* put(`/${subject}?version=3`))).toEqual([200, removed])
      for (const answer of [
        yield* put(`/${subject}`),
        yield* put(`/${subject}`, undefined, { method: "DELETE" }),
        yield* put(`/${subject}?version=9`),
        yield* put(`/${subject}/usage`)
      ])
        expect(refusal(answer)).toEqual([404, "policy_not_found"])
    })
  )

  fact("PUT warns of ends that are past or in milliseconds, and of chains that rules name", (put) =>
    Effect.gen(function* () {
      const own = (expiresAt: number, chain = "31337") => ({
        mode: "enforce",
        expiresAt,
        rules: [{ name: "all", effect: "allow", match: { kinds: ["native"], chains: [chain] } }]
      })
      const warnings = (content: object) =>
        Effect.map(put(`/${subject}`, content), (answer) => read(answer)[1].warnings)
      const now = Math.floor(Date.now() / 1_000)
      expect(yield* warnings(own(0))).toEqual([])
      expect(yield* warnings(own(now + 86_400))).toEqual([])
      expect(yield* warnings(own(now))).toEqual(["expiresAt: it is in the past, so everything is refused"])
      expect(yield* warnings(own(now * 1_000))).toEqual([
        "expiresAt: it is more than a hundred years ahead; expected Unix seconds"
      ])
      expect(yield* warnings(own(0, "1"))).toEqual(["rules[0].match.chains: the service has no network 1"])
    })
  )

  fact("If-Match replaces one version only", (put) =>
    Effect.gen(function* () {
      const at = (version: string, mode: string) =>
        put(`/${subject}`, { ...policy, mode }, { headers: { "if-match": version } })
      expect(refusal(yield* at('"1"', "enforce"))).toEqual([
        400,
        "version_mismatch",
        "If-Match: there is no version"
      ])
      expect((yield* at('"0"', "enforce")).status).toBe(200)
      expect((yield* at('"1"', "observe")).status).toBe(200)
      expect(refusal(yield* at('"1"', "enforce"))).toEqual([
        400,
        "version_mismatch",
        "If-Match: version 2 is the current one"
      ])
      for (const text of ["2", "*", '"1", "2"', 'W/"2"', '"02"', ""])
        expect([text, ...refusal(yield* at(text, "enforce"))]).toEqual([
          text,
          400,
          "invalid_request",
          'If-Match: expected one version in quotes, for example "7"'
        ])
      const removing = { method: "DELETE", headers: { "if-match": '"1"' } }
      expect(refusal(yield* put(`/${subject}`, undefined, removing))[1]).toBe("version_mismatch")
      expect(read(yield* put(`/${subject}`))).toMatchObject([
        200,
        { version: 2, policy: { mode: "observe" } }
      ])
    })
  )

  fact("usage shows each limit with its window; a wallet falls back to wallet:*", (put) =>
    Effect.gen(function* () {
      yield* put(`/${subject}`, policy)
      const limits = [
        { limit: "usdc", chain: "8453", asset: token, window: "day", max: "20000", held: "0", booked: "0" },
        {
          limit: "batch",
          chain: "8453",
          asset: "calls",
          window: "request",
          max: "50",
          held: null,
          booked: null
        }
      ]
      expect(read(yield* put(`/${subject}/usage`))).toEqual([200, { subject, version: 1, limits }])
      yield* put("/wallet:*", policy)
      expect(read(yield* put(`/wallet:${token.toLowerCase()}/usage`))).toEqual([
        200,
        { subject: "wallet:*", version: 1, limits }
      ])
      expect(refusal(yield* put("/wallet:*/usage")).slice(0, 2)).toEqual([400, "invalid_request"])
    })
  )

  fact("hostile subjects and bodies are refused with the field that is wrong", (put) =>
    Effect.gen(function* () {
      for (const text of [
        "key:21CA2B88D8BD",
        "key:",
        "wallet:0x1",
        "list:..%2f",
        "signer:*",
        "Account",
        "list:"
      ])
        expect([text, ...refusal(yield* put(`/${text}`, policy))].slice(0, 3)).toEqual([
          text,
          400,
          "invalid_request"
        ])
      expect(refusal(yield* put("/key:123456789abc", policy))).toEqual([
        400,
        "invalid_request",
        "subject: the account has no key with this id"
      ])
      const wrong = (body: unknown, path = `/${subject}`) => Effect.map(put(path, body), refusal)
      expect(yield* wrong({ ...policy, expires: 1 })).toEqual([
        400,
        "unknown_field",
        "expires: unknown field; did you mean expiresAt?"
      ])
      const [rule] = policy.rules
      expect(yield* wrong({ ...policy, rules: [{ ...rule, effect: "ask" }] })).toMatchObject([
        400,
        "invalid_request",
        expect.stringMatching(/^rules\[0\]\.effect: expected "allow" or "refuse"/)
      ])
      expect(
        yield* wrong({ ...policy, rules: [{ ...rule, match: { ...rule?.match, kinds: ["call"] } }] })
      ).toEqual([400, "invalid_request", "rules[0].match: kind call: expected contracts and selectors"])
      expect(yield* wrong({ ...policy, limits: [...policy.limits, policy.limits[0]] })).toEqual([
        400,
        "invalid_request",
        `limits[${policy.limits.length}]: name: limits[0] has it too`
      ])
      expect(yield* wrong({ addresses: [token] })).toEqual([
        400,
        "invalid_request",
        ": a policy holds rules; addresses belong to a subject list:NAME"
      ])
      expect(yield* wrong(policy, "/list:suppliers")).toEqual([
        400,
        "invalid_request",
        ": a list holds addresses and no rules"
      ])
      const many = (count: number) => ({
        addresses: Array.from({ length: count }, (_, at) => `0x${at.toString(16).padStart(40, "0")}`)
      })
      expect((yield* put("/list:suppliers", many(1_000))).status).toBe(200)
      expect(yield* wrong(many(1_001), "/list:suppliers")).toEqual([
        400,
        "invalid_request",
        "addresses: expected at most 1000 elements"
      ])
      expect(yield* wrong(`${JSON.stringify(policy)}${" ".repeat(65_536)}`)).toEqual([
        400,
        "body_too_large",
        ": expected at most 65536 bytes"
      ])
      expect((yield* put(`/${subject}`)).status).toBe(404)
    })
  )

  fact("an account has a bounded number and size of policies", (put) =>
    Effect.gen(function* () {
      const many = {
        addresses: Array.from({ length: 1_000 }, (_, at) => `0x${at.toString(16).padStart(40, "0")}`)
      }
      for (let at = 0; at < 5; at += 1) expect((yield* put(`/list:l${at}`, many)).status).toBe(200)
      const full = refusal(yield* put("/list:l5", many))
      expect(full).toEqual([
        400,
        "invalid_request",
        ": an account has at most 200 policies and lists, of 262144 characters together"
      ])
      expect((yield* put("/list:l4", { addresses: [] })).status).toBe(200)
      expect((yield* put("/list:l5", many)).status).toBe(200)
    })
  )
})
